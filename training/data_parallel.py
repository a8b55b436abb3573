"""Data parallelism over the mesh by FSDP2: state divided over `shard`, gradients summed over `replicate` too."""

from collections.abc import Sequence

from torch import nn
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

from training.config import EngineConfig
from training.precision import DTYPES


def shard_state(model: nn.Module, blocks: Sequence[nn.Module], mesh: DeviceMesh, config: EngineConfig) -> None:
    """Divide parameters, gradients and optimizer state over the mesh: its last axis shards, one before it replicates.

    Each block is gathered before it runs and freed after it; the rest stays gathered from the forward to the backward pass.
    """
    policy = precision_policy(config)
    offload = CPUOffloadPolicy(pin_memory=mesh.device_type == "cuda") if config.offload_parameters == "cpu" else OffloadPolicy()
    for module in (*blocks, model):
        fully_shard(module, mesh=mesh, mp_policy=policy, offload_policy=offload)


def replicate_state(model: nn.Module, blocks: Sequence[nn.Module], mesh: DeviceMesh) -> None:
    """Keep whole copies of what other axes have left, and sum gradients over the mesh's one axis, block by block."""
    for module in (*blocks, model):
        replicate(module, mesh=mesh)


def precision_policy(config: EngineConfig) -> MixedPrecisionPolicy:
    """Weights are gathered in the run's precision; sums of gradients have a precision of their own; master weights and moments are fp32.

    Inputs are not cast: the embedding gives the residual stream its precision, and rotary angles must keep theirs.
    """
    return MixedPrecisionPolicy(
        param_dtype=DTYPES[config.precision] if config.precision != "fp32" else None,
        reduce_dtype=DTYPES[config.reduce_precision],
        cast_forward_inputs=False,
    )
