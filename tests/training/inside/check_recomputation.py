"""What recomputation is for: it keeps less for the backward pass, and selectively what is dear to compute again."""

from collections import Counter
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from training.architecture import build_model
from training.config import ModelConfig, TrainConfig
from training.model import next_token_loss

pytestmark = pytest.mark.training

SMALL = ModelConfig(dim=32, num_layers=3, num_heads=4, num_kv_heads=2, ffn_dim=64)
TOKENS = torch.randint(0, 256, (2, 16), generator=torch.Generator().manual_seed(1))


class Calls(TorchDispatchMode):
    """Counts operators."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func.name()] += 1
        return func(*args, **(kwargs or {}))


def pass_of(mode: Literal["none", "full", "selective"], *, train: bool = True) -> tuple[Counter[str], int]:
    """Operators of one forward and backward pass, and bytes kept from one to the other by the blocks' autograd graph."""
    model = build_model(TrainConfig(name="x", steps=20, model=replace(SMALL, activation_checkpointing=mode)), torch.device("cpu"))
    model.train(train)
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    calls = Calls()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = next_token_loss(model(TOKENS), TOKENS).mean()
    with calls:
        loss.backward()
    return calls.counts, sum(kept.values())


def test_full_recomputation_runs_each_block_a_second_time_in_the_backward_pass() -> None:
    plain, full = pass_of("none")[0], pass_of("full")[0]
    assert full["aten::silu"] == plain["aten::silu"] + SMALL.num_layers
    matrices_per_block = 7
    # The last product of a block is not needed for its own gradient, so it is not computed again.
    assert plain["aten::mm"] + SMALL.num_layers * (matrices_per_block - 1) <= full["aten::mm"] <= plain["aten::mm"] + 7 * SMALL.num_layers


def test_selective_recomputation_repeats_no_product_and_no_attention() -> None:
    plain, selective = pass_of("none")[0], pass_of("selective")[0]
    dear = [name for name in {*plain, *selective} if name == "aten::mm" or "scaled_dot_product" in name]
    assert {name: selective[name] for name in dear} == {name: plain[name] for name in dear}
    assert selective["aten::silu"] == plain["aten::silu"] + SMALL.num_layers


def test_full_keeps_less_than_none() -> None:
    assert pass_of("full")[1] < pass_of("none")[1] / 2


def test_evaluation_recomputes_nothing() -> None:
    assert pass_of("full", train=False)[0] == pass_of("none", train=False)[0]
