"""Studies: recipes pre-trained with several seeds, scored, and compared in one table.

    recipes x seeds --pretrain--> models --finetune, evaluate--> scores --compare--> study.md

`run` has studies, `compare` their table, `transfer` scores along training for `isoglot analyze`.
"""
