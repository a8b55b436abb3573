"""The model computes what its parts promise: causal, position-aware, grouped, no dropout in evaluation, and equal wherever it is built."""

from dataclasses import replace
from typing import Literal

import pytest
import torch

from training.architecture import build_model as build
from training.config import ModelConfig, TrainConfig
from training.model import Transformer, attention_choice, next_token_loss, rotary, rotate

pytestmark = pytest.mark.training

CPU = torch.device("cpu")
SMALL = ModelConfig(dim=32, num_layers=2, num_heads=4, num_kv_heads=2, ffn_dim=64)


def build_model(model: ModelConfig, seed: int, device: torch.device) -> Transformer:
    built = build(TrainConfig(name="x", steps=20, seed=seed, model=model), device)
    assert isinstance(built, Transformer)
    return built


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(1))


def test_no_position_sees_a_later_one() -> None:
    model = build_model(SMALL, 0, CPU).eval()
    one = tokens(1, 16)
    other = one.clone()
    other[0, 10:] = 7
    with torch.no_grad():
        assert torch.equal(model(one)[0, :10], model(other)[0, :10])
        assert not torch.equal(model(one)[0, 10:], model(other)[0, 10:])


def test_every_position_sees_the_earlier_ones() -> None:
    model = build_model(SMALL, 0, CPU).eval()
    embedded = model.embedding(tokens(1, 12)).detach().requires_grad_()
    rotation = rotary(12, 8, 10000.0, CPU)
    model.blocks["0"](embedded, rotation)[0, 11].sum().backward()
    assert embedded.grad is not None
    assert bool((embedded.grad.abs().sum(dim=-1) > 0).all())


def test_rotation_keeps_lengths_and_depends_on_distance_alone() -> None:
    query, key = torch.randn(2, 8, generator=torch.Generator().manual_seed(0)).unbind(0)
    rotation = rotary(32, 8, 10000.0, CPU)
    turned_query = rotate(query.expand(1, 1, 32, 8), rotation)[0, 0]
    turned_key = rotate(key.expand(1, 1, 32, 8), rotation)[0, 0]
    assert torch.allclose(turned_query.norm(dim=-1), query.norm().expand(32), atol=1e-5)
    scores = turned_query @ turned_key.T
    assert torch.allclose(torch.diagonal(scores, 3), torch.diagonal(scores, 3)[0].expand(29), atol=1e-4)
    assert not torch.allclose(scores[0, 0], scores[0, 3], atol=1e-3)


def test_grouped_heads_equal_full_attention_with_repeated_keys_and_values() -> None:
    grouped = build_model(SMALL, 0, CPU).eval()
    full = build_model(replace(SMALL, num_kv_heads=4), 0, CPU).eval()
    state = grouped.state_dict()
    for name in list(state):
        if name.endswith(("key.weight", "value.weight")):
            state[name] = state[name].view(2, 8, 32).repeat_interleave(2, dim=0).reshape(32, 32)
    full.load_state_dict(state)
    with torch.no_grad():
        assert torch.allclose(grouped(tokens(2, 16)), full(tokens(2, 16)), atol=1e-5)


def test_dropout_acts_in_training_only() -> None:
    model = build_model(replace(SMALL, dropout=0.3), 0, CPU)
    with torch.no_grad():
        assert not torch.equal(model.train()(tokens(1, 8)), model(tokens(1, 8)))
        assert torch.equal(model.eval()(tokens(1, 8)), model(tokens(1, 8)))


def test_weights_come_from_the_seed_and_the_name_alone() -> None:
    first, second, other = (build_model(SMALL, seed, CPU).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])
    deeper = build_model(replace(SMALL, num_layers=3), 0, CPU).state_dict()
    assert torch.equal(first["blocks.0.attention.query.weight"], deeper["blocks.0.attention.query.weight"])
    assert all(bool(torch.isfinite(value).all()) for value in first.values())


def test_an_untrained_model_is_as_good_as_guessing() -> None:
    model = build_model(SMALL, 0, CPU).eval()
    with torch.no_grad():
        losses = next_token_loss(model(tokens(4, 32)), tokens(4, 32))
    assert losses.shape == (4,)
    assert losses.mean().item() == pytest.approx(torch.log(torch.tensor(256.0)).item(), abs=0.2)


@pytest.mark.parametrize("kernel", ["flash", "math"])
def test_the_chosen_kernel_is_used_and_named(kernel: Literal["flash", "math"]) -> None:
    config = replace(SMALL, attention=kernel)
    assert attention_choice(config, 16, torch.float32, CPU) == kernel
    chosen, auto = build_model(config, 0, CPU).eval(), build_model(SMALL, 0, CPU).eval()
    with torch.no_grad():
        assert torch.allclose(chosen(tokens(2, 16)), auto(tokens(2, 16)), atol=1e-5)


@pytest.mark.parametrize("mode", ["full", "selective"])
def test_recomputing_activations_gives_the_same_gradients(mode: Literal["full", "selective"]) -> None:
    kept = build_model(SMALL, 0, CPU).train()
    recomputed = build_model(replace(SMALL, activation_checkpointing=mode), 0, CPU).train()
    for model in (kept, recomputed):
        next_token_loss(model(tokens(2, 16)), tokens(2, 16)).mean().backward()
    for (name, one), other in zip(kept.named_parameters(), recomputed.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.equal(one.grad, other.grad), name


PACKED = replace(SMALL, vocab_size=257, document_end=256)
DOCUMENTS = [[*range(3, 3 + length), 256] for length in (5, 1, 9, 0, 4)]


def packed_row() -> torch.Tensor:
    """All documents and a part of a last one in one sample."""
    return torch.tensor([[*(token for document in DOCUMENTS for token in document), 40, 41, 42]])


@pytest.mark.parametrize("kernel", ["auto", "math"])
def test_packed_documents_are_the_documents_alone_with_padding(kernel: Literal["auto", "math"]) -> None:
    """Logits and gradients of documents packed into one sample are those of each document in a padded sample of its own."""
    together, alone = (build_model(replace(PACKED, attention=kernel), 0, CPU) for _ in range(2))
    row, documents = packed_row(), [*DOCUMENTS, [40, 41, 42]]
    padded = torch.full((len(documents), 12), 7)
    for line, document in zip(padded, documents, strict=True):
        line[: len(document)] = torch.tensor(document)
    apart = alone(padded)
    expected = torch.cat([apart[number, : len(document)] for number, document in enumerate(documents)])
    packed = together(row)[0]
    assert torch.allclose(packed, expected, atol=1e-5)
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(3))
    for output in (packed, expected):
        (output * weights).sum().backward()
    for (name, one), other in zip(together.named_parameters(), alone.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, atol=1e-4, rtol=1e-4), name


def test_without_the_option_documents_see_each_other() -> None:
    masked, open_to_all = build_model(PACKED, 0, CPU), build_model(replace(PACKED, document_end=None), 0, CPU)
    assert torch.allclose(masked(packed_row())[0, :6], open_to_all(packed_row())[0, :6], atol=1e-5)
    assert not torch.allclose(masked(packed_row())[0, 6:], open_to_all(packed_row())[0, 6:], atol=1e-3)


def test_samples_of_a_batch_keep_their_own_documents() -> None:
    model = build_model(PACKED, 0, CPU)
    row = packed_row()
    other = row.flip(1)
    assert torch.allclose(model(torch.cat((row, other))), torch.cat((model(row), model(other))), atol=1e-5)
