"""Pipeline stages: parts of a model that share its modules, so that parameters have one name whatever the stages are."""

from collections.abc import Sequence

import torch
from torch import nn

from training.model import Transformer
from training.pipeline import split_layers, stages_of


def cut_stages(model: Transformer, *, rank: int, num_ranks: int, per_rank: int) -> dict[int, Transformer]:
    """Stages of one of the pipeline's ranks by number, in the order in which a micro-batch passes them.

    The model keeps only what is in them.
    """
    last = num_ranks * per_rank - 1
    layers = split_layers(model.config.num_layers, last + 1)
    stages = {stage: part(model, layers[stage]) for stage in stages_of(rank, num_ranks, per_rank)}
    model.blocks = nn.ModuleDict({name: block for stage in stages.values() for name, block in stage.blocks.items()})
    if 0 not in stages:
        model.embedding = None
    if last not in stages:
        model.norm = model.head = None
    return stages


def part(model: Transformer, layers: Sequence[int]) -> Transformer:
    """The stage with these layers; the first has the embedding too, the last norm and head."""
    with torch.device("meta"):
        stage = Transformer(model.config)
    stage.embedding = model.embedding if 0 in layers else None
    stage.blocks = nn.ModuleDict({str(layer): model.blocks[str(layer)] for layer in layers})
    stage.norm, stage.head = (model.norm, model.head) if model.config.num_layers - 1 in layers else (None, None)
    return stage
