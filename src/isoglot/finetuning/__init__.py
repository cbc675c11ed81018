"""Fine-tuning encoders on tasks across languages, with transformers' Trainer and heads.

    settings, protocols -> plan -> data -> head -> train -> predict -> save

`finetune` puts the steps together: `isoglot.finetune` is its function `finetune`.
"""
