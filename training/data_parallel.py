"""Data parallelism over the mesh by FSDP2: state divided over `shard`, gradients summed over `replicate` too."""

from collections.abc import Sequence

from torch import nn
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import Shard

from training.config import EngineConfig
from training.expert_parallel import mixtures
from training.precision import DTYPES


def shard_state(model: nn.Module, blocks: Sequence[nn.Module], mesh: DeviceMesh, config: EngineConfig) -> None:
    """Divide parameters, gradients and optimizer state over the mesh: its last axis shards, one before it replicates.

    Each block is gathered before it runs and freed after it; the rest stays gathered from the forward to the backward pass.
    """
    for module in (*blocks, model):
        fully_shard(module, mesh=mesh, mp_policy=precision_policy(config), offload_policy=offload_policy(config, mesh))


def replicate_state(model: nn.Module, blocks: Sequence[nn.Module], mesh: DeviceMesh) -> None:
    """Keep whole copies of what other axes have left, and sum gradients over the mesh's one axis, block by block."""
    for module in (*blocks, model):
        replicate(module, mesh=mesh)


def shard_experts_state(model: nn.Module, mesh: DeviceMesh, config: EngineConfig, replicas: int) -> None:
    """As `shard_state`, for experts that are divided over an axis of their own: before it, over the mesh of those that hold the same ones.

    Experts are cut along the model's width, as their number and inner width are cut already.
    """
    for mixture in mixtures(model):
        experts = mixture.experts
        fully_shard(
            experts,
            mesh=mesh,
            mp_policy=precision_policy(config),
            offload_policy=offload_policy(config, mesh),
            shard_placement_fn=lambda weight, down=experts.down: Shard(1) if weight is down else Shard(2),
        )
        _divide_by(experts, replicas)
        # Only nccl can scale while it sums.
        experts.set_force_sum_reduction_for_comms(mesh.size(-1) > 1)


def replicate_experts(model: nn.Module, mesh: DeviceMesh, replicas: int) -> None:
    """As `replicate_state`, for experts that are divided over an axis of their own: before it, over those that hold the same ones."""
    for mixture in mixtures(model):
        replicate(mixture.experts, mesh=mesh)
        _divide_by(mixture.experts, replicas)


def _divide_by(experts: nn.Module, replicas: int) -> None:
    """Make sums of gradients means over all replicas: they hold the tokens of the whole expert group, and not of one rank."""
    assert isinstance(experts, FSDPModule)
    experts.set_gradient_divide_factor(float(replicas))


def precision_policy(config: EngineConfig) -> MixedPrecisionPolicy:
    """Weights are gathered in the run's precision; sums of gradients have a precision of their own; master weights and moments are fp32.

    Inputs are not cast: the embedding gives the residual stream its precision, and rotary angles must keep theirs.
    """
    return MixedPrecisionPolicy(
        param_dtype=DTYPES[config.precision] if config.precision != "fp32" else None,
        reduce_dtype=DTYPES[config.reduce_precision],
        cast_forward_inputs=False,
    )


def offload_policy(config: EngineConfig, mesh: DeviceMesh) -> OffloadPolicy:
    """Where parameters live between uses."""
    return CPUOffloadPolicy(pin_memory=mesh.device_type == "cuda") if config.offload_parameters == "cpu" else OffloadPolicy()
