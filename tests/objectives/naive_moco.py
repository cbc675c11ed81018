"""Momentum contrast the slow and obvious way: sentence by sentence, candidate by candidate."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import ParallelStream
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.contrast.info_nce import NO_ITEM
from isoglot.objectives.contrast.momentum import QueueConfig
from isoglot.objectives.moco import MoCo
from isoglot.objectives.tlm import TLM
from isoglot.pretraining.config import LossConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.train_step import StageContext


def settings(**changes):
    return MoCo(**{"queue": QueueConfig(size=40), **changes})


def make_train_module(corpus, moco, *, dtype=torch.float64, dropout=0.0, tlm=True):
    torch.manual_seed(0)
    model = ModelConfig(
        size="tiny", num_layers=2, hidden_size=32, num_heads=2, max_positions=96, dropout=dropout
    )
    encoder = Encoder.build(model, corpus.vocabulary)
    objectives = {"moco": moco, "tlm": TLM()} if tlm else {"moco": moco}
    train_module = TrainModule(encoder, objectives, corpus).to(dtype)
    train_module.objective("moco").on_stage_start()
    return train_module.train()


def make_loader(corpus, moco, *, tlm=True, **shape):
    makers = {"moco": moco, "tlm": TLM()}
    stream = ParallelStream(objectives=("moco", "tlm") if tlm else ("moco",), order="shuffled")
    opened = open_streams(corpus, {"parallel": stream}, makers, row_length=96)
    sizes = {"rows": 8, "micro_rows": 4, "row_length": 96, **shape}
    return Loader(corpus, opened, BatchConfig(**sizes))


def stage_of(train_module, *, steps=1, rate=0.0, tlm=True, loss=None):
    config = OptimizerConfig(
        learning_rate=rate, max_grad_norm=None, schedule="constant", warmup_steps=0
    )
    return StageContext(
        module=train_module,
        wrapped=train_module,
        optimizer=make_optimizer(train_module.parameters(), config),
        optimizer_config=config,
        loss=loss or LossConfig(),
        objectives={name: TLM() for name in (("moco", "tlm") if tlm else ("moco",))},
        steps=steps,
        seed=0,
    )


def sentence_states(encoder, rows, place, layer=None):
    """(tokens, D) states of the one sequence that begins at a flat index, run alone."""
    row, column = divmod(int(place), rows.ids.shape[1])
    chosen = rows.sequences[row] == rows.sequences[row, column]
    output = encoder.model.base_model(
        input_ids=rows.ids[row][chosen][None],
        position_ids=rows.positions[row][chosen][None] + encoder.first_position,
        output_hidden_states=True,
    )
    return output.hidden_states[-1 if layer is None else layer][0]


def project(head, vector, normalize):
    if normalize == "before":
        vector = vector / vector.square().sum().sqrt()
    for number, layer in enumerate(head.layers):
        vector = layer.weight @ (vector.clamp(min=0) if number else vector)
    return vector / vector.square().sum().sqrt() if normalize == "after" else vector


def vectors_of(encoder, head, moco, rows, places):
    """The contrasted vectors of some sequences."""
    found = []
    for place in places:
        states = sentence_states(encoder, rows, place, moco.layer)
        pooled = states[0] if moco.pooling == "cls" else states.mean(dim=0)
        found.append(project(head, pooled, moco.projection.normalize))
    return torch.stack(found)


def keys_of(train_module, moco, batch):
    module = train_module.objective("moco")
    if moco.key_encoder == "shared":
        places = batch.markers["moco"]["key"]
        return vectors_of(train_module.encoder, module.projection, moco, batch.rows, places)
    with torch.no_grad():
        encoder, head = module.key_encoder.module, module.key_projection.module
        places = batch.aux_markers["moco"]["key"]
        return vectors_of(encoder, head, moco, batch.aux_rows["moco"], places)


def losses_of(train_module, moco, *batches):
    """The loss of each pair: its own key, the queue, and the keys of all these micro-batches."""
    module = train_module.objective("moco")
    queries, keys, sentences, own = [], [], [], []
    for batch in batches:
        places = batch.markers["moco"]["query"]
        queries += vectors_of(train_module.encoder, module.projection, moco, batch.rows, places)
        keys += keys_of(train_module, moco, batch)
        labels = batch.labels["moco"]["query"].tolist(), batch.labels["moco"]["key"].tolist()
        sentences += [{a, b} for a, b in zip(*labels, strict=True)]
        own += labels[1]
    losses = []
    for i, query in enumerate(queries):
        candidates = [keys[i]]
        if module.queue is not None:
            for entry, items in zip(module.queue.entries, module.queue.items, strict=True):
                filled = moco.queue.start == "random" or int(items[0]) != NO_ITEM
                if filled and not sentences[i] & set(items.tolist()):
                    candidates.append(entry)
        if moco.in_batch_negatives:
            for j, key in enumerate(keys):
                # all that is known of the key's sentence, from each of its occurrences
                known = set().union(
                    *(s for s, o in zip(sentences, own, strict=True) if o == own[j])
                )
                if not sentences[i] & known and own.index(own[j]) == j:
                    candidates.append(key)
        scores = torch.stack([query @ candidate for candidate in candidates]) / moco.temperature
        losses.append(F.cross_entropy(scores[None], torch.zeros(1, dtype=torch.int64)))
    return torch.stack(losses)
