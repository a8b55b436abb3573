"""Experts divided over the mesh: whole experts over the `expert` axis, the inner features of each over the `tensor` axis."""

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor

from training.mesh import part
from training.moe import Experts, MixtureOfExperts

_PLACEMENTS: dict[str, dict[str, Placement]] = {
    "gate": {"expert": Shard(0), "tensor": Shard(1)},
    "up": {"expert": Shard(0), "tensor": Shard(1)},
    "down": {"expert": Shard(0), "tensor": Shard(2)},
}
"""How each weight [experts, out, in] lies on each axis."""


def mixtures(model: nn.Module) -> list[MixtureOfExperts]:
    """The mixtures of a model or of a part of one."""
    return [module for module in model.modules() if isinstance(module, MixtureOfExperts)]


def shard_experts(model: nn.Module, mesh: DeviceMesh) -> None:
    """Cut the experts over the axes that the mesh has, in place: their weights become DTensors, still on the meta device.

    Routers are whole on every rank; on the tensor axis they become DTensors too, as all other weights are there.
    """
    for mixture in mixtures(model):
        experts = mixture.experts
        for name, weight in list(experts.named_parameters()):
            placements = [_PLACEMENTS[name][axis] for axis in mesh.mesh_dim_names or ()]
            setattr(experts, name, nn.Parameter(distribute_tensor(weight.data, mesh, placements, src_data_rank=None)))
        if expert := part(mesh, "expert"):
            experts.group = expert.get_group()
        if tensor := part(mesh, "tensor"):
            weight = mixture.router.weight.data
            mixture.router.weight = nn.Parameter(distribute_tensor(weight, tensor, [Replicate()], src_data_rank=None))
            _sum_over_tensor_ranks(mixture, experts, tensor)


def _sum_over_tensor_ranks(mixture: MixtureOfExperts, experts: Experts, mesh: DeviceMesh) -> None:
    """Tensor ranks route alike and each compute a part of every expert's sums: add them up, and leave the sequence cut."""

    def enter(_: nn.Module, inputs: tuple) -> tuple:
        tokens, routing = inputs
        return _differs_from_here(tokens, mesh), routing._replace(weights=_differs_from_here(routing.weights, mesh))

    def leave(_: nn.Module, inputs: tuple, outputs: tuple) -> tuple:
        del inputs
        mixed, balance = outputs
        return DTensor.from_local(mixed, mesh, [Partial()], run_check=False).redistribute(placements=[Shard(1)]).to_local(), balance

    experts.register_forward_pre_hook(enter)
    mixture.register_forward_hook(leave)


def _differs_from_here(whole: Tensor, mesh: DeviceMesh) -> Tensor:
    """The same values, whose gradients are parts from here on, to be summed on the way back."""
    return DTensor.from_local(whole, mesh, [Replicate()], run_check=False).to_local(grad_placements=[Partial()])
