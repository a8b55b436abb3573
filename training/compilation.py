"""torch.compile, one block at a time: all blocks of a model share one compiled graph, and shards stay outside of it."""

import os
import shutil
from collections.abc import Sequence

import torch
from torch import nn

from training.schema import ConfigError


def compile_blocks(blocks: Sequence[nn.Module], backend: str = "inductor") -> None:
    """Compile the blocks at their first use, in place, so parameter names stay.

    Raises ConfigError on a host that cannot compile for the processor.
    """
    if backend == "inductor" and not torch.cuda.is_available() and not _finds_compiler():
        raise ConfigError("model.compile", True, "false on a host without a C++ compiler: torch.compile needs one on the CPU; install g++")
    for block in blocks:
        # A block with a graph break would run in pieces without a word; whole graphs or an error.
        block.compile(fullgraph=True, backend=backend)


def _finds_compiler() -> bool:
    return any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "g++", "clang++"))
