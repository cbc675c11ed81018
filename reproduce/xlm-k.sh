#!/usr/bin/env bash
# XLM-K (Jiang et al., 2022): Tables 1 (MLQA), 2 (NER) and 3 (XNLI). The page: reproduce/xlm-k.md
source "$(dirname "$0")/common.sh"

# the hundred Wikipedias of the recipe xlm-k-100; those that CC-100 has no text of
WIKIPEDIAS=$(either "en ceb de sv fr nl ru es it arz pl ja zh vi uk war ar pt fa ca sr id ko no ce fi hu
    tr cs tt sh ro eu ms eo hy nan da bg he cy sk azb kk min et be el hr lt uz gl az sl ur nn ka hi
    th ta la bn mk ast yue tg lv af my mg mr sq bs oc te be_tarask nds br ml jv lmo ky lb su ht vec
    pms ga is pa sco sw fy tl an io ba cv ne ku" "en de zh ceb")
WITHOUT_CC100="ceb arz war ce tt sh nan azb min nn ast yue tg oc be_tarask nds lmo lb vec pms
    sco an io ba cv"
small knowledge --workers 1
small pretrain --set stages.0.steps=2 --set batch.row_length=128 --set batch.rows=6 \
    --set batch.micro_rows=6 --set loader.num_workers=0 --set logging.validate_examples=2
small finetune --seeds 2 --set epochs=1 --set batch_size=8 --set learning_rate=0.01 \
    --set warmup_steps=0 --set max_length=128 --set stride=16 --set n_best=2
models xlm-roberta-base

in_cc100() {
    local code
    for code in $WITHOUT_CC100; do if [ "$code" = "$1" ]; then return 1; fi; done
}
CC100=$(for code in $WIKIPEDIAS; do if in_cc100 "$code"; then echo "$code"; fi; done)
OTHERS=$(for code in $WIKIPEDIAS; do if ! in_cc100 "$code"; then echo "$code"; fi; done)
step fetch $(for code in $WIKIPEDIAS; do echo "wikipedia-dump:$code"; done) wikidata \
    $(for code in $CC100; do echo "cc100:$code"; done) mlqa squad xnli $(either "" conll) --out data

file dumps.yaml <<END
wikipedia:
$(for code in $WIKIPEDIAS; do echo "  '$code': [$(dump "$code")]"; done)
wikidata: [data/wikidata/latest-all.json.bz2]
END
step knowledge extract dumps.yaml --out tables --workers "$WORKERS"

file prepare.yaml <<END
sources:
  cc100:
    files:
$(for code in $CC100; do echo "      '$code': [$(cc100 "$code")]"; done)
  wiki:  # of languages that CC-100 does not have
    files:
$(for code in $OTHERS; do echo "      '$code': [$(extracted "$code")]"; done)
tokenizer: {folder: xlm-roberta-base}
END
step prepare prepare.yaml --out corpus --workers "$WORKERS"
step knowledge link tables --corpus corpus --workers "$WORKERS"

# CoNLL's news are licensed: Table 2 is made where its files are in data/conll2002 and data/conll2003
tasks=mlqa,xnli$(if [ -e data/conll2003 ]; then echo ,conll; fi)
step finetune xlm-roberta-base --tasks "$tasks" --data data --protocol xlm-k --out results/xlm-roberta-base
for recipe in ablations/xlm-k-mep ablations/xlm-k-oe xlm-k; do
    run=runs/$(basename "$recipe")
    step pretrain "$recipe" --corpus corpus --out "$run" --resume
    step finetune "$run" --tasks "$tasks" --data data --protocol xlm-k
done
step report XLM-R=results/xlm-roberta-base runs/xlm-k-mep runs/xlm-k-oe runs/xlm-k corpus --out report.html
finish
