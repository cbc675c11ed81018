#!/usr/bin/env bash
# ERNIE-M (Ouyang et al., 2021): Tables 1 (XNLI) and 3 (MLQA). The page: reproduce/ernie-m.md
source "$(dirname "$0")/common.sh"

# Table 8 (text) and Table 9 (translations)
TEXT=$(either "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu he hi
    hr hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no or pa pl ps pt ro
    ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi yi zh" "en de hi")
PAIRS=$(either "MultiUN/ar MultiUN/es MultiUN/fr MultiUN/ru MultiUN/zh EUbookshop/bg EUbookshop/de
    EUbookshop/el OpenSubtitles/th OpenSubtitles/tr OpenSubtitles/vi Tanzil/sw Tanzil/ur GlobalVoices/sw
    WikiMatrix/ar WikiMatrix/bg WikiMatrix/de WikiMatrix/el WikiMatrix/es WikiMatrix/fr WikiMatrix/hi
    WikiMatrix/ru WikiMatrix/sw WikiMatrix/tr WikiMatrix/vi WikiMatrix/zh" "WikiMatrix/de")
small pretrain --set stages.0.steps=2 --set stages.1.steps=2 --set batch.row_length=128 --set batch.rows=6 \
    --set batch.micro_rows=6 --set loader.num_workers=0 --set logging.validate_examples=2
small finetune --seeds 1 --set epochs=1 --set batch_size=8 --set learning_rate=0.01 \
    --set warmup_steps=0 --set max_length=128 --set stride=16 --set n_best=2
models xlm-roberta-base xlm-roberta-large

step fetch $(for code in $TEXT; do echo "cc100:$code"; done) $(opus_names $PAIRS) iitb \
    xnli mlqa squad --out data

file prepare.yaml <<END
sources:
  cc100:
    files:
$(for code in $TEXT; do echo "      '$code': [$(cc100 "$code")]"; done)
$(opus_sources $PAIRS)
  iitb: {kind: pairs, format: moses, files: {en-hi: [data/iitb/IITB.en-hi.en, data/iitb/IITB.en-hi.hi]}}
tokenizer: {folder: xlm-roberta-base}
END
step prepare prepare.yaml --out corpus --workers "$WORKERS"

for size in base large; do
    run=runs/ernie-m-$size
    recipe=$(if [ $size = base ]; then echo ernie-m; else echo ernie-m-large; fi)
    step pretrain "$recipe" --corpus corpus --out "$run" --resume
    step finetune "$run" --tasks xnli,mlqa --data data --protocol "ernie-m-$size"
    step finetune "$run" --tasks xnli --data data --protocol "ernie-m-$size" --scenario translate-train-all
done
step report runs/ernie-m-base runs/ernie-m-large corpus --out report.html
finish
