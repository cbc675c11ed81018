#!/usr/bin/env bash
# MetaXLM (Chi et al., 2021): Table 1 (XTREME). The page: reproduce/metaxlm.md
source "$(dirname "$0")/common.sh"

# Table 6 lists 87 of the paper's 94 languages; MUSE has dictionaries of English with 44
WIKIPEDIAS=$(either "af am ar as az ba be bg bn ca ckb cs cy da de el en eo es et eu fa fi fr ga gl gu he hi
    hr hu hy id is it ja ka kk km kn ko ky la lo lt lv mk ml mn mr ms mt my ne nl nn no or pa pl ps pt ro ru
    sa sd si sk sl sq sr sv sw ta te tg th tl tr tt ug uk ur uz vi yi zh" "en de sw")
DICTIONARIES=$(either "af ar bg bn bs ca cs da de el es et fa fi fr he hi hr hu id it ja ko lt lv mk ms nl no
    pl pt ro ru sk sl sq sv ta th tl tr uk vi zh" "de")
small knowledge --workers 1
small pretrain --set stages.0.steps=2 --set batch.row_length=128 --set batch.rows=4 \
    --set batch.micro_rows=4 --set loader.num_workers=0 --set logging.validate_examples=2
small finetune --seeds 1 --set epochs=1 --set batch_size=8 --set learning_rate=0.01 \
    --set warmup_steps=0 --set max_length=128 --set stride=16 --set n_best=2
models roberta-base xlm-roberta-base

step fetch $(for code in $WIKIPEDIAS; do echo "wikipedia-dump:$code"; done) \
    $(for code in $DICTIONARIES; do echo "muse-dictionary:en-$code"; done) \
    ud-pos wikiann xquad mlqa tydiqa xnli paws-x squad --out data

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
tokenizer: {folder: xlm-roberta-base}
END
step prepare prepare.yaml --out corpus --workers "$WORKERS"

for recipe in ablations/metaxlm-xlm metaxlm metaxlm-dict; do
    run=runs/$(basename "$recipe")
    case $recipe in
        *-xlm) more=$(either "" "--set model.num_layers=2 --set model.hidden_size=32 --set model.num_heads=2") ;;
        *-dict) more="--set transplant.dictionaries=[data/muse/*.txt]" ;;
        *) more= ;;
    esac
    step pretrain "$recipe" --corpus corpus --out "$run" --resume $more
    step finetune "$run" --tasks ud-pos,wikiann,xquad,mlqa,tydiqa,xnli,paws-x --data data --protocol metaxlm \
        --languages "$(either xtreme en,de,zh)"
done
step report XLM=runs/metaxlm-xlm MetaXLM=runs/metaxlm +Dict=runs/metaxlm-dict corpus --out report.html
finish
