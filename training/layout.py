"""The mesh of a run as arithmetic: how many ranks work along each axis, and which coordinates a rank has. Standard library only.

world size = pipeline x replicate x shard x context x tensor, the slowest axis first: neighbouring ranks differ along the tensor axis, so
that tensor groups lie within a node. Ranks that differ in `replicate` or `shard` see different samples; ranks of one pipeline, context or
tensor group work on the same ones. The expert axis is no factor of its own: it divides the innermost data axis.
"""

import math
from dataclasses import dataclass

from training.schema import ConfigError

AXES = ("pipeline", "replicate", "shard", "context", "tensor")
"""Names of the axes, the slowest-running first: also the dimension names of the device mesh."""
DATA_AXES = ("replicate", "shard")
"""The axes along which samples differ."""


@dataclass(frozen=True, kw_only=True)
class Coordinates:
    """Where a rank stands along each axis, counted from 0."""

    pipeline: int
    replicate: int
    shard: int
    context: int
    tensor: int


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Ranks along each axis; 1 means that the axis is not used."""

    pipeline: int = 1
    """Stages that one model copy is cut into by depth."""
    replicate: int = 1
    """Data-parallel replicas of whole shard groups: gradients are summed over them, state is not divided."""
    shard: int = 1
    """Data-parallel ranks that divide parameters, gradients and optimizer state among them."""
    context: int = 1
    """Ranks that divide the sequence of each sample among them."""
    tensor: int = 1
    """Ranks that divide each layer's matrices among them."""
    expert: int = 1
    """Ranks that divide the experts among them, out of the innermost data axis."""

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return math.prod(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Ranks along each of `AXES`."""
        return tuple(getattr(self, axis) for axis in AXES)

    @property
    def replicas(self) -> int:
        """Groups of ranks that see different samples: what multiplies the batch."""
        return self.replicate * self.shard

    def coordinates(self, rank: int) -> Coordinates:
        """Coordinates of a rank. Raises IndexError for a rank outside the world."""
        if not 0 <= rank < self.world_size:
            raise IndexError(f"rank {rank} of {self.world_size}")
        places = {}
        for axis, size in zip(reversed(AXES), reversed(self.sizes), strict=True):
            rank, places[axis] = divmod(rank, size)
        return Coordinates(**places)

    def rank(self, at: Coordinates) -> int:
        """The rank at these coordinates."""
        rank = 0
        for axis, size in zip(AXES, self.sizes, strict=True):
            rank = rank * size + getattr(at, axis)
        return rank

    def replica(self, rank: int) -> int:
        """Which share of each global batch the rank works on, from 0 to `replicas` - 1."""
        at = self.coordinates(rank)
        return at.replicate * self.shard + at.shard

    def reports_loss(self, rank: int) -> bool:
        """Whether the rank speaks for its replica: the first of its tensor and context group, in the last pipeline stage."""
        at = self.coordinates(rank)
        return at.tensor == 0 and at.context == 0 and at.pipeline == self.pipeline - 1

    def groups(self, axis: str) -> list[list[int]]:
        """The ranks of each group along an axis; `expert` too, whose groups are neighbours along the innermost data axis."""
        if axis == "expert":
            along = self.groups(self.expert_axis)
            return [group[first : first + self.expert] for group in along for first in range(0, len(group), self.expert)]
        size, stride = getattr(self, axis), math.prod(self.sizes[AXES.index(axis) + 1 :])
        firsts = [rank for rank in range(self.world_size) if rank // stride % size == 0]
        return [[first + index * stride for index in range(size)] for first in firsts]

    @property
    def expert_axis(self) -> str:
        """The data axis that experts are divided along: the innermost one in use."""
        return "shard" if self.shard > 1 else "replicate"

    def spans_nodes(self, axis: str, ranks_per_node: int) -> bool:
        """Whether some group along the axis has ranks on several nodes."""
        return any(len({rank // ranks_per_node for rank in group}) > 1 for group in self.groups(axis))

    def __str__(self) -> str:
        used = [f"{axis} {size}" for axis, size in zip(AXES, self.sizes, strict=True) if size > 1]
        expert = f", expert {self.expert} within {self.expert_axis}" if self.expert > 1 else ""
        return f"{' x '.join(used) or 'one rank'}{f' = {self.world_size} ranks' if len(used) > 1 else ''}{expert}"


def plan_layout(
    world_size: int,
    *,
    sharded: bool = False,
    replicate: int | None = None,
    shard: int | None = None,
    tensor: int = 1,
    pipeline: int = 1,
    context: int = 1,
    expert: int = 1,
) -> Layout:
    """Complete the layout from the world size: what is left over after the stated axes is data parallelism.

    The rest goes to `shard` if `sharded`, else to `replicate`; stating one of the two gives the other. Raises ConfigError naming the fields
    and numbers that do not fit.
    """
    for name, value in (("world size", world_size), ("tensor", tensor), ("pipeline", pipeline), ("context", context), ("expert", expert)):
        _require_positive(name, value)
    data = _data_ranks(world_size, {"pipeline": pipeline, "context": context, "tensor": tensor})
    replicate, shard = _split_data(data, sharded, replicate, shard)
    layout = Layout(pipeline=pipeline, replicate=replicate, shard=shard, context=context, tensor=tensor, expert=expert)
    along = getattr(layout, layout.expert_axis)
    if along % expert:
        raise ConfigError("parallel.expert", expert, f"a divisor of the {along} ranks of the {layout.expert_axis} axis")
    return layout


def check_nodes(layout: Layout, ranks_per_node: int) -> list[str]:
    """Refuse a tensor group that spans nodes; give a warning for each other axis that had better not span them.

    Raises ConfigError naming parallel.tensor.
    """
    if layout.spans_nodes("tensor", ranks_per_node):
        allowed = f"a divisor of the {ranks_per_node} ranks of a node: tensor groups exchange activations in every layer"
        raise ConfigError("parallel.tensor", layout.tensor, allowed)
    watched = ["context", "expert"] + (["shard"] if layout.replicate > 1 else [])
    return [
        f"parallel.{axis} = {getattr(layout, axis)}: its groups span nodes of {ranks_per_node} ranks, so that their traffic leaves the node"
        for axis in watched
        if getattr(layout, axis) > 1 and layout.spans_nodes(axis, ranks_per_node)
    ]


def _data_ranks(world_size: int, copy: dict[str, int]) -> int:
    """Ranks left for data parallelism when each model copy takes the product of `copy`."""
    ranks = math.prod(copy.values())
    if world_size % ranks:
        used = {name: size for name, size in copy.items() if size > 1}
        path = f"parallel.{next(iter(used))}" if len(used) == 1 else "parallel"
        value = next(iter(used.values())) if len(used) == 1 else used
        product = " x ".join(f"{name} {size}" for name, size in used.items())
        allowed = f"{product} = {ranks} ranks per model copy to divide the world size {world_size}; use {nearest(world_size, ranks)} ranks"
        raise ConfigError(path, value, allowed)
    return world_size // ranks


def _split_data(data: int, sharded: bool, replicate: int | None, shard: int | None) -> tuple[int, int]:
    """Replicate and shard sizes whose product is the number of data-parallel ranks."""
    if replicate is None and shard is None:
        return (1, data) if sharded else (data, 1)
    for name, value in (("replicate", replicate), ("shard", shard)):
        if value is not None and data % value:
            raise ConfigError(f"parallel.{name}", value, f"a divisor of the {data} data-parallel ranks")
    if replicate is None:
        return data // (shard or 1), shard or 1
    if shard is None:
        return replicate, data // replicate
    if replicate * shard != data:
        raise ConfigError(
            "parallel.shard",
            shard,
            f"{data // replicate}: replicate {replicate} x shard {shard} = {replicate * shard}, but there are {data} data-parallel ranks; "
            "leave one of them out and it follows",
        )
    return replicate, shard


def nearest(value: int, step: int) -> str:
    """The two multiples of step around the value, as text; only the upper one below the first multiple."""
    lower = value // step * step
    return f"{lower} or {lower + step}" if lower else f"{step}"


def _require_positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"parallel.{name}" if name != "world size" else name, value, "a whole number of at least 1")
