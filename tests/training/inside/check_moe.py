"""Routing, capacity and the balance loss, held to a token-by-token computation; and what must not depend on how samples are batched."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from training.architecture import build_model as build
from training.config import ModelConfig, TrainConfig
from training.flops import count_parameters, flops_per_token
from training.model import Transformer, sample_losses
from training.moe import MixtureOfExperts, Router, balance_loss, measure_experts

pytestmark = pytest.mark.training

CPU = torch.device("cpu")
SMALL = ModelConfig(dim=32, num_layers=2, num_heads=4, num_kv_heads=2, ffn_dim=64, num_experts=4)
LENGTH = 24


def build_model(model: ModelConfig, seed: int, device: torch.device) -> Transformer:
    built = build(TrainConfig(name="x", steps=20, seed=seed, model=model), device)
    assert isinstance(built, Transformer)
    return built


def mixture(**changes: object) -> MixtureOfExperts:
    """One layer whose router has decided opinions, so that experts overflow."""
    layer = build_model(replace(SMALL, **changes), 0, CPU).blocks["0"].feed_forward
    assert isinstance(layer, MixtureOfExperts)
    with torch.no_grad():
        layer.router.weight.mul_(20)
    return layer


def hidden(batch: int = 3) -> torch.Tensor:
    return torch.randn(batch, LENGTH, 32, generator=torch.Generator().manual_seed(2))


def token_by_token(layer: MixtureOfExperts, inputs: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The layer's output computed for one token after the other, and the number of dropped choices."""
    outputs, dropped = torch.zeros_like(inputs), 0
    choices = layer.router.num_choices
    room = math.ceil((layer.router.capacity_factor or math.inf) * LENGTH * choices / 4) if layer.router.capacity_factor else LENGTH
    for sample, output in zip(inputs, outputs, strict=True):
        used = [0] * 4
        for position, token in enumerate(sample):
            shares, chosen = (layer.router.weight @ token).softmax(dim=0).topk(choices)
            if choices > 1:
                shares = shares / shares.sum()
            for share, expert in zip(shares, chosen.tolist(), strict=True):
                used[expert] += 1
                if used[expert] > room:
                    dropped += 1
                    continue
                inner = F.silu(layer.experts.gate[expert] @ token) * (layer.experts.up[expert] @ token)
                output[position] += share * (layer.experts.down[expert] @ inner)
    return outputs, dropped


@pytest.mark.parametrize("choices", [1, 2, 3])
@pytest.mark.parametrize("factor", [None, 0.5, 1.0])
def test_output_equals_a_token_by_token_computation(choices: int, factor: float | None) -> None:
    layer = mixture(experts_per_token=choices, capacity_factor=factor)
    with torch.no_grad():
        output, _ = layer(hidden())
        expected, dropped = token_by_token(layer, hidden())
    assert torch.allclose(output, expected, rtol=1e-5, atol=1e-8)
    assert float(expected.abs().max()) > 1e-4
    assert (dropped > 0) == (factor is not None)
    assert layer.tally.take()[4] == dropped


def test_gradients_reach_router_and_experts_through_the_cross_entropy_alone() -> None:
    for choices in (1, 2):
        model = build_model(replace(SMALL, experts_per_token=choices), 0, CPU)
        tokens = torch.randint(0, 256, (2, LENGTH), generator=torch.Generator().manual_seed(1))
        losses, _ = sample_losses(model(tokens), tokens)
        losses.mean().backward()
        norms = {name: float(parameter.grad.norm()) for name, parameter in model.named_parameters() if parameter.grad is not None}
        assert all(norms[f"blocks.0.feed_forward.{name}"] > 0 for name in ("router.weight", "experts.gate", "experts.up", "experts.down"))


def test_balance_loss_is_1_when_even_and_the_number_of_experts_when_all_go_to_one() -> None:
    even = torch.full((1, 8, 4), 0.25)
    assert balance_loss(even, torch.eye(4, dtype=torch.long).repeat(2, 1).unsqueeze(0)).tolist() == pytest.approx([1.0])
    one = F.one_hot(torch.zeros(1, 8, dtype=torch.long), 4)
    assert balance_loss(one.float(), one).tolist() == pytest.approx([4.0])


def test_a_sample_is_computed_alike_whatever_it_is_batched_with() -> None:
    layer = mixture(capacity_factor=0.75)
    together, balance = layer(hidden())
    alone = [layer(hidden()[index : index + 1]) for index in range(3)]
    assert torch.allclose(together, torch.cat([output for output, _ in alone]), atol=1e-7)
    assert torch.allclose(balance, torch.cat([own for _, own in alone]))


def test_dropping_depends_on_earlier_positions_only() -> None:
    layer = mixture(capacity_factor=0.5)
    other = hidden()
    other[:, 16:] = -other[:, 16:]
    with torch.no_grad():
        assert torch.equal(layer(hidden())[0][:, :16], layer(other)[0][:, :16])


def test_routing_is_decided_in_fp32_under_autocast() -> None:
    router = Router(SMALL)
    torch.nn.init.normal_(router.weight, generator=torch.Generator().manual_seed(0))
    plain = router(hidden())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = router(hidden())
    assert torch.equal(plain.experts, cast.experts)
    assert torch.equal(plain.weights, cast.weights)


def test_training_on_the_balance_loss_evens_the_load() -> None:
    model = build_model(replace(SMALL, balance_weight=1.0), 0, CPU)
    with torch.no_grad():
        for block in model.blocks.values():
            block.feed_forward.router.weight.mul_(30)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    tokens = torch.randint(0, 256, (8, LENGTH), generator=torch.Generator().manual_seed(3))
    measured = []
    for _ in range(40):
        output = model(tokens)
        assert isinstance(output, tuple)
        output[1].mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        measured.append(measure_experts(model, list))
    assert measured[-1]["balance_loss"] - 1 < 0.5 * (measured[0]["balance_loss"] - 1)
    assert measured[-1]["expert_load_max"] < measured[0]["expert_load_max"]


def test_measures_count_training_only_and_start_over() -> None:
    model = build_model(replace(SMALL, capacity_factor=0.5), 0, CPU)
    tokens = torch.randint(0, 256, (2, LENGTH), generator=torch.Generator().manual_seed(1))
    model.eval()(tokens)
    assert model.blocks["0"].feed_forward.tally.take() == [0.0] * 7
    model.train()(tokens)
    measured = measure_experts(model, list)
    assert 0.0 < measured["dropped_tokens"] < 1.0
    assert 1.0 <= measured["expert_load_max"] <= 4.0
    assert measured["balance_loss"] > 0.9
    model(tokens)
    assert measure_experts(model, list) == pytest.approx(measured)


def test_parameters_are_as_many_as_counted_without_building() -> None:
    for changes in ({}, {"num_experts": None}, {"experts_per_token": 1}):
        shape = replace(SMALL, **changes)
        assert count_parameters(shape) == sum(parameter.numel() for parameter in build_model(shape, 0, CPU).parameters())
    assert flops_per_token(SMALL, 16) == flops_per_token(replace(SMALL, num_experts=8), 16) - 6 * 2 * 4 * 32, "idle experts cost nothing"


def test_a_dense_model_measures_nothing() -> None:
    assert measure_experts(build_model(replace(SMALL, num_experts=None), 0, CPU), list) == {}
