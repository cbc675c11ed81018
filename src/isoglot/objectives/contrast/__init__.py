"""The contrastive core: what every objective that tells one thing from many others is made of.

    states --pool--> vectors --Projection--> queries, keys --info_nce--> a loss for each query
                                                 |
                                  Queue (keys of earlier steps, the same on every process)

Which candidates a query meets is the objective's choice: keys of its own micro-batch, a queue, or
both. `Follower` makes a key encoder of any module: its exponential moving average.
"""

from isoglot.objectives.contrast.gather import gathered
from isoglot.objectives.contrast.info_nce import Contrast, info_nce, same_item
from isoglot.objectives.contrast.items import NO_ITEM, fingerprint
from isoglot.objectives.contrast.momentum import Follower, MomentumConfig
from isoglot.objectives.contrast.negatives import Negatives, in_batch
from isoglot.objectives.contrast.pooling import Pooling, pool
from isoglot.objectives.contrast.projection import Projection, ProjectionConfig
from isoglot.objectives.contrast.queue import Queue, QueueConfig

__all__ = [
    "NO_ITEM",
    "Contrast",
    "Follower",
    "MomentumConfig",
    "Negatives",
    "Pooling",
    "Projection",
    "ProjectionConfig",
    "Queue",
    "QueueConfig",
    "fingerprint",
    "gathered",
    "in_batch",
    "info_nce",
    "pool",
    "same_item",
]
