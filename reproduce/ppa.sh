#!/usr/bin/env bash
# PPA (Pan et al., 2021): Tables 2 (XNLI) and 4 (MLQA). The page: reproduce/ppa.md
source "$(dirname "$0")/common.sh"

small prepare --set heldout_share=0.05
small pretrain --set stages.0.epochs=1 --set stages.0.streams.parallel.max_pairs=16 \
    --set stages.0.streams.parallel.min_tokens=2 --set batch.row_length=128 --set batch.rows=4 \
    --set batch.micro_rows=4 --set objectives.moco.queue.size=64 --set loader.num_workers=0
small finetune --set epochs=1 --set batch_size=8 --set learning_rate=0.01 \
    --set warmup_steps=0 --set max_length=128 --set stride=16 --set n_best=2
models bert-base-multilingual-cased

step fetch opus:Europarl/en-fr opus:Europarl/en-es opus:Europarl/de-en opus:Europarl/bg-en \
    opus:EUbookshop/bg-en opus:MultiUN/ar-en opus:MultiUN/en-zh iitb \
    xnli mlqa mlqa-translate-train squad --out data

file prepare.yaml <<END
sources:
  europarl:
    kind: pairs
    format: moses
    files:
      en-fr: $(moses Europarl en fr)
      en-es: $(moses Europarl en es)
      en-de: $(moses Europarl en de)
      en-bg: $(moses Europarl en bg)
  eubookshop: {kind: pairs, format: moses, files: {en-bg: $(moses EUbookshop en bg)}}
  multiun: {kind: pairs, format: moses, files: {en-ar: $(moses MultiUN en ar), en-zh: $(moses MultiUN en zh)}}
  iitb: {kind: pairs, format: moses, files: {en-hi: [data/iitb/IITB.en-hi.en, data/iitb/IITB.en-hi.hi]}}
tokenizer: {folder: bert-base-multilingual-cased}
END
step prepare prepare.yaml --out corpus --workers "$WORKERS"

for recipe in ppa ablations/ppa-600k ablations/ppa-2m; do
    run=runs/$(basename "$recipe")
    step pretrain "$recipe" --corpus corpus --out "$run" --resume
    for scenario in zero-shot translate-train; do
        step finetune "$run" --tasks xnli,mlqa --data data --protocol ppa --languages ppa-xnli --scenario "$scenario"
    done
done
step report runs/ppa runs/ppa-600k runs/ppa-2m corpus --out report.html
finish
