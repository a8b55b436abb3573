"""Context parallelism: each rank works on its part of every sample's sequence, and attention gathers the keys and values before it.

Queries stay where they are. A rank attends to its own positions and all earlier ones, so later ranks do more of attention's work.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed._functional_collectives import all_gather_tensor_autograd

from training.data import Samples
from training.layout import Layout

_SEQUENCE, _HEADS_SEQUENCE = 1, 2


@dataclass(frozen=True)
class Context:
    """This rank's part of the sequence."""

    group: dist.ProcessGroup
    index: int
    """Which part, from 0."""
    size: int
    """Number of parts."""

    def cut(self, samples: Samples) -> Samples:
        """This rank's part of whole samples."""
        length = samples.tokens.shape[_SEQUENCE] // self.size
        return Samples(*(ids.narrow(_SEQUENCE, self.index * length, length).contiguous() for ids in (samples.tokens, samples.targets)))

    def with_earlier(self, heads: Tensor) -> Tensor:
        """Keys or values [batch, heads, sequence, head] of this rank's positions, behind those of all earlier ones."""
        whole = all_gather_tensor_autograd(heads.contiguous(), _HEADS_SEQUENCE, self.group)
        return whole.narrow(_HEADS_SEQUENCE, 0, heads.shape[_HEADS_SEQUENCE] * (self.index + 1))

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the parts of the sequence, which are of one length."""
        total = values.detach().clone()
        dist.all_reduce(total, group=self.group)
        return total / self.size


def join_context(layout: Layout, rank: int) -> Context | None:
    """The ranks that share this one's samples, where the layout divides sequences. Collective."""
    if layout.context == 1:
        return None
    group, _ = dist.new_subgroups_by_enumeration(layout.groups("context"))
    return Context(group, layout.coordinates(rank).context, layout.context)


def lower_triangle(queries: int, keys: int, device: torch.device) -> Tensor | None:
    """Mask [queries, keys] by which the last positions see themselves and all before them; None where that is plain causality."""
    return None if queries == keys else torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
