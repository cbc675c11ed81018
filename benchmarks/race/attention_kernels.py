"""Time attention kernels over packed rows on a GPU, forward and backward.

    python -m benchmarks.race.attention_kernels [--rows 64] [--row-length 512] [--mean 117]

flex: the mask rule as a block mask, with default and other block sizes; sdpa: the same as an
additive tensor, by backend; varlen: sequence lengths only, for rule `full`. Rows are packed with
sequences of random lengths (`--mean` at or above the row length: one sequence a row). Prints
milliseconds of a forward pass, of forward and backward, and of building the mask.
"""

from __future__ import annotations

import argparse
import statistics
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from isoglot.models.attention import _additive_mask, _compiled, mask_function
from isoglot.types import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES: dict[str, dict[str, Any]] = {
    "default": {},
    "64 x 64, 4 warps": {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3},
    "128 x 64, 4 warps": {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3},
    "128 x 64, 8 warps": {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8, "num_stages": 3},
    "128 x 128, 8 warps": {"BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8, "num_stages": 2},
    "forward 128 x 128, 8 warps": {
        "fwd_BLOCK_M": 128, "fwd_BLOCK_N": 128, "fwd_num_warps": 8, "fwd_num_stages": 2
    },
    "TMA": {"USE_TMA": True},
    "128 x 64, 4 warps, TMA": {
        "BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3, "USE_TMA": True
    },
}  # fmt: skip
"""Block sizes of FlexAttention, or (`fwd_`) of its forward kernel alone."""


def packed(rows: int, length: int, mean: int) -> tuple[Rows, Tensor]:
    """Full rows of sequences, and the flat offset of each, with the end."""
    generator = torch.Generator().manual_seed(0)
    sequences = torch.full((rows, length), -1)
    starts = [0]
    for row in range(rows):
        place = number = 0
        while place < length:
            size = int(torch.randint(8, max(2 * mean - 8, 9), (1,), generator=generator))
            size = length if mean >= length else min(size, length - place)
            sequences[row, place : place + size] = number
            place, number = place + size, number + 1
            starts.append(row * length + place)
    zeros = torch.zeros_like(sequences)
    made = Rows(
        ids=zeros,
        positions=zeros,
        languages=zeros,
        sentences=zeros,
        roles=zeros,
        rules=zeros,
        sequences=sequences,
    )
    return made.to("cuda"), torch.tensor(starts, dtype=torch.int32, device="cuda")


def milliseconds(work: Callable[[], object]) -> float:
    """The median of twenty runs, by CUDA events."""
    for _ in range(5):
        work()
    times = []
    for _ in range(20):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def kernels(
    rows: Rows, starts: Tensor, inputs: list[Tensor]
) -> dict[str, tuple[Callable[[], Tensor], Callable[[], object] | None]]:
    """Each kernel's forward pass, and the function that builds its mask."""
    query, key, value = (tensor.transpose(1, 2) for tensor in inputs)
    size, device = rows.ids.shape, torch.device("cuda")
    length = size[1]
    torch._dynamo.config.recompile_limit = 64  # noqa: SLF001 (one compiled form for each size)
    flex, blocks = torch.compile(flex_attention), _compiled(create_block_mask)
    found: dict[str, tuple[Callable[[], Tensor], Callable[[], object] | None]] = {}

    def add_flex(name: str, options: dict[str, Any], block: int) -> None:
        def mask() -> Any:
            return blocks(
                mask_function(rows), size[0], None, length, length, device=device, BLOCK_SIZE=block
            )

        made = mask()
        found[f"flex, blocks of {block}, {name}"] = (
            lambda: flex(query, key, value, block_mask=made, kernel_options=options or None),
            mask,
        )

    for name, options in SIZES.items():
        add_flex(name, options, 128)

    def additive() -> Tensor:
        mask: Tensor = _compiled(_additive_mask)(
            mask_function(rows), size, device, dtype=torch.bfloat16
        )
        return mask

    added = additive()
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):

        def by_backend(backend: SDPBackend = backend) -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(query, key, value, attn_mask=added)

        found[f"sdpa {backend.name}"] = (by_backend, additive)

    def varlen() -> Tensor:
        from torch.nn.attention.varlen import varlen_attn

        flat = [tensor.flatten(0, 1) for tensor in inputs]
        return varlen_attn(*flat, starts, starts, length, length)

    def no_mask() -> Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(query, key, value)

    return found | {
        "varlen": (varlen, None),
        "cudnn, no mask": (no_mask, None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--row-length", type=int, default=512)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--mean", type=int, default=117)
    parser.add_argument("--only", nargs="*", default=[], help="kernels whose name has a word")
    given = parser.parse_args()
    rows, starts = packed(given.rows, given.row_length, given.mean)
    shape = (given.rows, given.row_length, given.heads, 64)
    inputs = [
        torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for _ in range(3)
    ]
    slopes = torch.randn(shape, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    print(f"{'':<44} forward   both   mask")
    for name, (attend, mask) in kernels(rows, starts, inputs).items():
        if given.only and not any(word in name for word in given.only):
            continue

        def forward_and_backward(attend: Callable[[], Tensor] = attend) -> None:
            output = attend()
            torch.autograd.grad(output, inputs, slopes.reshape(output.shape))

        try:
            numbers = [milliseconds(attend), milliseconds(forward_and_backward)]
            numbers += [] if mask is None else [milliseconds(mask)]
        except (RuntimeError, ImportError, TypeError, ValueError) as error:
            print(
                f"{name:<44} {type(error).__name__}: {str(error).splitlines()[0][:90]}", flush=True
            )
            continue
        print(f"{name:<44} {'  '.join(f'{number:6.2f}' for number in numbers)}", flush=True)


if __name__ == "__main__":
    main()
