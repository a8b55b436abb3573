"""How a model comes to lie on the mesh: made without storage, cut, and only then filled, so that no rank ever holds more than its part."""

import torch
from torch import nn

from training.architecture import choose_architecture, place, prepare_blocks
from training.config import TrainConfig
from training.data_parallel import replicate_state, shard_state
from training.layout import Layout
from training.mesh import build_mesh, part
from training.model import Transformer
from training.tensor_parallel import shard_tensors


def build_parallel(config: TrainConfig, layout: Layout, device: torch.device) -> nn.Module:
    """The model on the mesh, filled; what DistributedDataParallel replicates is left to its wrapper."""
    architecture = choose_architecture(config)
    sharded = config.engine.kind == "fsdp"
    mesh = None if is_replicated_by_ddp(config, layout) else build_mesh(layout, device, always=("shard",) if sharded else ())
    model = architecture.build()
    if tensor := part(mesh, "tensor"):
        assert isinstance(model, Transformer)
        shard_tensors(model, tensor)
    blocks = architecture.blocks(model)
    prepare_blocks(blocks, config)
    if sharded and (data := part(mesh, "replicate", "shard")):
        shard_state(model, blocks, data, config.engine)
    elif data := part(mesh, "replicate"):
        replicate_state(model, blocks, data)
    place(model, torch.device("cpu") if config.engine.offload_parameters == "cpu" else device)
    architecture.fill(model)
    return model


def is_replicated_by_ddp(config: TrainConfig, layout: Layout) -> bool:
    """Whether replicas are the only axis, so that DistributedDataParallel does it all."""
    return config.engine.kind == "ddp" and 1 < layout.world_size == layout.replicate
