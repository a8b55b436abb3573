"""How a model comes to lie on the mesh: made without storage, cut, and only then filled, so that no rank ever holds more than its part."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from training.architecture import Architecture, choose_architecture, place, prepare_blocks
from training.config import TrainConfig
from training.context_parallel import Context, join_context
from training.data_parallel import replicate_experts, replicate_state, shard_experts_state, shard_state
from training.expert_parallel import shard_experts
from training.layout import Layout
from training.mesh import SPREAD, build_mesh, part, split_expert_axis
from training.model import Transformer
from training.stage import cut_stages
from training.tensor_parallel import shard_tensors


@dataclass(frozen=True)
class Placed:
    """A model on the mesh, as this rank has it."""

    model: nn.Module
    """What is on this rank, under the names that it has in the whole model."""
    stages: dict[int, nn.Module]
    """Its pipeline stages by number, in the order in which a micro-batch passes them; the model itself without a pipeline."""
    mesh: DeviceMesh | None
    """None where there is nothing to divide, or DistributedDataParallel does it."""
    context: Context | None
    """This rank's part of each sample's sequence, where ranks divide it."""


def build_parallel(config: TrainConfig, layout: Layout, rank: int, device: torch.device) -> Placed:
    """The model on the mesh, filled; what DistributedDataParallel replicates is left to its wrapper."""
    architecture = choose_architecture(config)
    sharded = config.engine.kind == "fsdp"
    mesh = None if is_replicated_by_ddp(config, layout) else build_mesh(layout, device, always=("shard",) if sharded else ())
    model = architecture.build()
    stages: dict[int, nn.Module] = {0: model}
    if layout.pipeline > 1:
        assert isinstance(model, Transformer)
        place_in_line = layout.coordinates(rank).pipeline
        stages = {**cut_stages(model, rank=place_in_line, num_ranks=layout.pipeline, per_rank=config.parallel.stages_per_rank)}
    for stage in stages.values():
        _spread(stage, architecture, config, layout, mesh)
        place(stage, torch.device("cpu") if config.engine.offload_parameters == "cpu" else device)
        for buffer in stage.buffers():
            # Only parameters are gathered from where they are offloaded to.
            buffer.data = buffer.data.to(device)
    architecture.fill(model)
    if context := join_context(layout, rank):
        assert isinstance(model, Transformer)
        model.divide_sequences(context)
    return Placed(model, stages, mesh, context)


def _spread(model: nn.Module, architecture: Architecture, config: TrainConfig, layout: Layout, mesh: DeviceMesh | None) -> None:
    """Cut a model or a stage over all axes but the pipeline, in place."""
    split = split_expert_axis(mesh, layout) if mesh and layout.expert > 1 else mesh
    if tensor := part(mesh, "tensor"):
        assert isinstance(model, Transformer)
        shard_tensors(model, tensor)
    if cut := part(split, "expert", "tensor"):
        shard_experts(model, cut)
    blocks = architecture.blocks(model)
    prepare_blocks(blocks, config)
    if config.engine.kind == "fsdp" and (data := part(mesh, "replicate", "shard")):
        if layout.expert > 1:
            shard_experts_state(model, part(split, "replicate", SPREAD), config.engine, layout.replicas)
        shard_state(model, blocks, data, config.engine)
    elif data := part(mesh, "replicate"):
        if layout.expert > 1:
            replicate_experts(model, part(split, SPREAD), layout.replicas)
        replicate_state(model, blocks, data)


def is_replicated_by_ddp(config: TrainConfig, layout: Layout) -> bool:
    """Whether whole copies of the state are the only axis, so that DistributedDataParallel does it all."""
    return config.engine.kind == "ddp" and 1 < layout.world_size == layout.replicate * layout.context and layout.expert == 1
