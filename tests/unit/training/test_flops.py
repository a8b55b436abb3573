"""Sizes of models by arithmetic, held against published ones."""

from dataclasses import replace

import pytest

from training.config import ModelConfig
from training.flops import attention_flops, count_parameters, flops_per_token
from training.recipes import recipe

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "parameters"),
    # The last two are what the published models of these shapes have.
    [("gpt-125m", 124_668_672), ("llama-1b", 1_100_048_384), ("llama-8b", 8_030_261_248)],
)
def test_named_sizes_have_the_parameters_of_their_names(name: str, parameters: int) -> None:
    assert count_parameters(recipe(name).model) == parameters


def test_operations_of_an_8b_model_are_six_per_weight_and_attention() -> None:
    model = recipe("llama-8b").model
    looked_up = model.vocab_size * model.dim
    norms = (2 * model.num_layers + 1) * model.dim
    products = 6 * (count_parameters(model) - looked_up - norms)
    assert flops_per_token(model, 4096) == products + attention_flops(layers=32, width=4096, length=4096)
    assert flops_per_token(model, 8192) - flops_per_token(model, 4096) == 6 * 32 * 4096 * 4096


def test_experts_that_a_token_does_not_go_to_cost_nothing() -> None:
    few, many = (replace(ModelConfig(), num_experts=number) for number in (4, 8))
    expert = 3 * few.dim * few.ffn_dim
    router = few.dim
    assert count_parameters(many) - count_parameters(few) == few.num_layers * 4 * (expert + router)
    assert flops_per_token(many, 64) - flops_per_token(few, 64) == 6 * few.num_layers * 4 * router
