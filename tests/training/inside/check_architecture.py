"""Building, placing and filling a model: on the meta device, as a whole or in shards, with the same values; and its size as functions."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from training.architecture import build_model, choose_architecture, place
from training.config import ModelConfig, TrainConfig
from training.flops import attention_flops, count_parameters, flops_per_token
from training.recipes import RECIPES, recipe
from training.weights import copy_whole

pytestmark = pytest.mark.training

CPU = torch.device("cpu")
SMALL = ModelConfig(dim=32, num_layers=2, num_heads=4, num_kv_heads=2, ffn_dim=64)


def config(model: ModelConfig = SMALL) -> TrainConfig:
    return TrainConfig(name="x", steps=20, model=model)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_named_shapes_are_built_without_memory_and_counted_without_torch(name: str) -> None:
    model = choose_architecture(recipe(name)).build()
    assert all(parameter.is_meta for parameter in model.parameters())
    assert sum(parameter.numel() for parameter in model.parameters()) == count_parameters(recipe(name).model)


def test_operations_per_token_are_those_that_torch_counts() -> None:
    """Torch counts the whole square of attention, of which a causal model needs half."""
    length, batch = 16, 2
    shape = replace(SMALL, attention="math")
    model = build_model(config(shape), CPU)
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(batch, length, dtype=torch.long)).sum().backward()
    half = attention_flops(layers=shape.num_layers, width=shape.dim, length=length)
    assert counter.get_total_flops() == batch * length * (flops_per_token(shape, length) + half)


def test_idle_experts_are_parameters_but_no_operations() -> None:
    shape = replace(SMALL, num_experts=6, experts_per_token=2)
    model = choose_architecture(config(shape)).build()
    assert sum(parameter.numel() for parameter in model.parameters()) == count_parameters(shape)
    one_expert = 3 * shape.dim * shape.ffn_dim
    router = 6 * shape.dim
    assert flops_per_token(shape, 16) - flops_per_token(SMALL, 16) == 6 * shape.num_layers * (one_expert + router)


def test_blocks_are_the_layers_in_order() -> None:
    architecture = choose_architecture(config())
    model = architecture.build()
    assert list(architecture.blocks(model)) == list(model.get_submodule("blocks").children())


def test_what_was_one_parameter_stays_one() -> None:
    with torch.device("meta"):
        model = nn.ModuleDict({"embedding": nn.Embedding(8, 4), "head": nn.Linear(4, 8, bias=False)})
    model["head"].weight = model["embedding"].weight
    model.register_buffer("angles", torch.arange(3.0))
    place(model, CPU)
    assert model["head"].weight is model["embedding"].weight
    assert not model["head"].weight.is_meta
    assert torch.equal(model.angles, torch.arange(3.0)), "a buffer with a value keeps it"


@pytest.mark.parametrize("dim", [0, 1])
def test_a_shard_is_filled_with_its_part_of_the_whole(dim: int) -> None:
    """Seen from the second of two ranks, without a second one: filling asks no other rank."""
    from torch.distributed.tensor import DTensor, Shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=1, world_size=2, store=FakeStore())
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
        whole = torch.arange(30.0).reshape(5, 6)
        local = whole.chunk(2, dim=dim)[1]
        shard = DTensor.from_local(torch.empty_like(local), mesh, [Shard(dim)], shape=whole.shape, stride=whole.stride(), run_check=False)
        copy_whole(shard, whole)
        assert torch.equal(shard.to_local(), local)
    finally:
        torch.distributed.destroy_process_group()
