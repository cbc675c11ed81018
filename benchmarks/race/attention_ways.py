"""Ways to run attention over packed rows on a GPU, there and back: which is the fastest here?

    python -m benchmarks.race.attention_ways [--rows 64] [--row-length 512] [--mean 117]

flex: the mask rule as a block mask; sdpa: the same as an additive tensor, by backend; varlen: the
lengths alone, for rule `full` only. Rows are packed with sequences of random lengths.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention

from isoglot.models.attention import _additive, _blocks, mask_rule
from isoglot.types import Rows

if TYPE_CHECKING:
    from collections.abc import Callable


def packed(rows: int, length: int, mean: int) -> tuple[Rows, Tensor]:
    """Rows full of sequences, and where each begins (flat, with the end)."""
    generator = torch.Generator().manual_seed(0)
    sequences = torch.full((rows, length), -1)
    starts = [0]
    for row in range(rows):
        place = number = 0
        while place < length:
            size = int(torch.randint(8, 2 * mean - 8, (1,), generator=generator))
            size = min(size, length - place)
            sequences[row, place : place + size] = number
            place, number = place + size, number + 1
            starts.append(row * length + place)
    zeros = torch.zeros_like(sequences)
    made = Rows(
        ids=zeros,
        positions=zeros,
        languages=zeros,
        sentences=zeros,
        parts=zeros,
        rules=zeros,
        sequences=sequences,
    )
    return made.to("cuda"), torch.tensor(starts, dtype=torch.int32, device="cuda")


def milliseconds(attend: Callable[[], Tensor], inputs: list[Tensor]) -> float:
    def there_and_back() -> None:
        attend().sum().backward()
        for tensor in inputs:
            tensor.grad = None

    for _ in range(5):
        there_and_back()
    times = []
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter()
        there_and_back()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--row-length", type=int, default=512)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--mean", type=int, default=117)
    given = parser.parse_args()
    rows, starts = packed(given.rows, given.row_length, given.mean)
    shape = (given.rows, given.row_length, given.heads, 64)
    inputs = [
        torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for _ in range(3)
    ]
    query, key, value = (tensor.transpose(1, 2) for tensor in inputs)
    rule, device = mask_rule(rows), torch.device("cuda")
    blocks = _blocks(rule, rows.ids.shape, device)
    added = _additive(rule, rows.ids.shape, device, dtype=torch.bfloat16)
    flex = torch.compile(flex_attention)
    ways: dict[str, Callable[[], Tensor]] = {
        "flex": lambda: flex(query, key, value, block_mask=blocks)
    }
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):

        def by_backend(backend: SDPBackend = backend) -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(query, key, value, attn_mask=added)

        ways[f"sdpa {backend.name}"] = by_backend

    def varlen() -> Tensor:
        from torch.nn.attention.varlen import varlen_attn

        flat = [tensor.flatten(0, 1) for tensor in inputs]
        return varlen_attn(*flat, starts, starts, given.row_length, given.row_length)

    def no_mask() -> Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(query, key, value)

    ways |= {"varlen": varlen, "cudnn, everything sees everything": no_mask}
    for name, way in ways.items():
        try:
            print(f"{name:<36} {milliseconds(way, inputs):7.2f} ms", flush=True)
        except (RuntimeError, ImportError, TypeError) as error:
            print(f"{name:<36} {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
