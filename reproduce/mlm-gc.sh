#!/usr/bin/env bash
# MLM-GC (Ai and Fang, 2023): Tables 5 (XNLI), 6 (MLQA) and 4 (unsupervised translation).
# The page: reproduce/mlm-gc.md
source "$(dirname "$0")/common.sh"

WIKIPEDIAS=$(either "ar bg de el en es fr hi ru sw th tr ur vi zh" "en de zh")
PAIRS=$(either "MultiUN/ar MultiUN/es MultiUN/fr MultiUN/ru MultiUN/zh EUbookshop/bg EUbookshop/de EUbookshop/el
    OpenSubtitles/th OpenSubtitles/tr OpenSubtitles/vi Tanzil/sw Tanzil/ur GlobalVoices/sw" "EUbookshop/de")
YEARS=$(either "2007 2008 2009 2010 2011 2012 2013 2014 2015 2016 2017" "2016")
small knowledge --workers 1
small prepare --set tokenizer.vocab_size=600
small pretrain --set stages.0.steps=2 --set model.num_layers=2 --set model.hidden_size=32 \
    --set model.num_heads=2 --set batch.row_length=128 --set batch.rows=4 --set batch.micro_rows=4 \
    --set loader.num_workers=0 --set logging.validate_examples=2
small finetune --set epochs=1 --set batch_size=8 --set learning_rate=0.01 \
    --set warmup_steps=0 --set max_length=128 --set stride=16 --set n_best=2

step fetch $(for code in $WIKIPEDIAS; do echo "wikipedia-dump:$code"; done) $(opus_names $PAIRS) iitb \
    $(for year in $YEARS; do echo "newscrawl:de/$year newscrawl:en/$year"; done) \
    newscrawl:ro/2016 cc100:ne floresv1 xnli mlqa squad --out data

# --- Tables 5 and 6: XNLI's fifteen languages --------------------------------------------------
file dumps.yaml <<END
wikipedia:
$(for code in $WIKIPEDIAS; do echo "  '$code': [$(dump "$code")]"; done)
END
step knowledge extract dumps.yaml --out tables --workers "$WORKERS"

file prepare.yaml <<END
sources:
  wiki:
    files:
$(for code in $WIKIPEDIAS; do echo "      '$code': [$(extracted "$code")]"; done)
$(opus_sources $PAIRS)
  iitb: {kind: pairs, format: moses, files: {en-hi: [data/iitb/IITB.en-hi.en, data/iitb/IITB.en-hi.hi]}}
tokenizer: {model: bpe, vocab_size: 80000, pretokenize: {"*": moses, th: thai, zh: zh}}
END
step prepare prepare.yaml --out corpus --workers "$WORKERS"
step cooccurrence count corpus --workers "$WORKERS"

for recipe in ablations/mlm-gc-none xlm+pmi mlm-gc ablations/mlm-gc-none+tlm mlm-gc+tlm; do
    run=runs/$(basename "$recipe")
    step pretrain "$recipe" --corpus corpus --out "$run" --resume
    step finetune "$run" --tasks xnli,mlqa --data data --protocol mlm-gc
done

test_file() {  # test_file PAIR LANGUAGE: one side of FLoRes, or of newstest2016
    case $1 in *ne*) echo "data/floresv1/wikipedia.test.ne-en.$2" ;; *) echo "tests/$1.$2" ;; esac
}

test_set() {  # test_set PAIR: newstest2016, which sacrebleu downloads
    if [[ $1 = *ne* ]]; then return; fi
    OUT=tests/$1.${1%-*} once sacrebleu -t wmt16 -l "$1" --echo src
    OUT=tests/$1.${1#*-} once sacrebleu -t wmt16 -l "$1" --echo ref
}

# --- Table 4: translation without translations --------------------------------------------------
for code in $(either "de ro ne" de); do
    case $code in
        ne) text=data/cc100/ne.txt.xz ;;
        *) text="data/newscrawl/news.*.$code.shuffled.deduped.gz" ;;
    esac
    file "prepare-$code.yaml" <<END
sources:
  text: {files: {en: ['data/newscrawl/news.*.en.shuffled.deduped.gz'], $code: ['$text']}}
tokenizer: {model: bpe, vocab_size: 60000, pretokenize: {"*": moses, ne: indic}}
END
    step prepare "prepare-$code.yaml" --out "corpus-$code" --workers "$WORKERS"
    test_set "$code-en"
    test_set "en-$code"
    for recipe in unmt-xlm unmt-xlm+pmi unmt-xlm+gc unmt-mass unmt-mass+gc; do
        run=runs/$recipe-$code
        step pretrain "$recipe" --corpus "corpus-$code" --out "$run" --resume \
            $(either "" "--set stages.1.steps=1")
        for pair in "$code-en" "en-$code"; do
            from=${pair%-*} to=${pair#*-}
            IN=$(test_file "$pair" "$from") OUT=tests/$recipe.$pair.$to step translate "$run" \
                --from "$from" --to "$to" --reference "$(test_file "$pair" "$to")"
        done
    done
done
step report runs/mlm-gc-none runs/mlm-gc corpus --out report.html
finish
