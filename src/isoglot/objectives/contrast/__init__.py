"""Contrastive learning: the parts that objectives with a contrastive loss are built from.

    states --pool--> vectors --Projection--> queries, keys --info_nce--> a loss for each query
                                                 |
                                  Queue (keys of earlier steps, the same on every process)

info_nce       the loss, in-batch negatives, which candidates are excluded
momentum       MomentumEncoder (exponential moving average), Queue (where keys are enqueued)
pooling        sentence vectors, Projection, the settings that contrastive objectives share
token_links    links between the tokens of translations by their states
descriptions   XLM-K's contrast of entity descriptions
"""
