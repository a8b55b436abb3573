"""torch.compile, one block at a time: all blocks of a model share one compiled graph, and shards stay outside of it."""

from collections.abc import Sequence

from torch import nn


def compile_blocks(blocks: Sequence[nn.Module]) -> None:
    """Compile the blocks at their first use, in place, so parameter names stay."""
    for block in blocks:
        # A block with a graph break would run in pieces without a word; whole graphs or an error.
        block.compile(fullgraph=True)
