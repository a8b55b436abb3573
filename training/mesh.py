"""The device mesh: a layout's axes as process groups."""

from torch import device
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from training.layout import AXES, Layout


def build_mesh(layout: Layout, place: device, always: tuple[str, ...] = ()) -> DeviceMesh | None:
    """Process groups along the axes that the layout uses, named as they are; None if it uses none.

    Axes in `always` are part of the mesh even with one rank. The context axis is none of its own: for parameters and gradients, ranks that
    see other parts of a sample are as those that see other samples, so it is part of the innermost data axis.
    """
    sizes = dict(zip(AXES, layout.sizes, strict=True))
    sizes["shard" if "shard" in always else layout.expert_axis] *= sizes.pop("context")
    used = {axis: size for axis, size in sizes.items() if size > 1 or axis in always}
    return init_device_mesh(place.type, tuple(used.values()), mesh_dim_names=tuple(used)) if used else None


def part(mesh: DeviceMesh | None, *axes: str) -> DeviceMesh | None:
    """The mesh along those of the axes that it has; None if it has none of them."""
    names = tuple(axis for axis in axes if mesh is not None and axis in (mesh.mesh_dim_names or ()))
    return mesh[names if len(names) > 1 else names[0]] if mesh is not None and names else None


SPREAD = "spread"
"""Name of what is left of the axis that experts are divided along: the ranks that hold the same experts."""


def split_expert_axis(mesh: DeviceMesh, layout: Layout) -> DeviceMesh:
    """The same ranks with that axis cut in two, `spread` and `expert`."""
    axis = layout.expert_axis
    return mesh._unflatten(axis, (getattr(layout, axis) // layout.expert, layout.expert), (SPREAD, "expert"))
