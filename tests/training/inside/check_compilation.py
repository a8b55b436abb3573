"""Compiled blocks: one graph for all of them, the same gradients, and a refusal where there is no compiler."""

import shutil
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch._dynamo.utils import counters

from training.architecture import build_model, choose_architecture
from training.compilation import compile_blocks
from training.config import ModelConfig, TrainConfig
from training.schema import ConfigError

pytestmark = pytest.mark.training

SMALL = ModelConfig(dim=32, num_layers=9, num_heads=4, num_kv_heads=2, ffn_dim=64)
TOKENS = torch.randint(0, 256, (2, 16), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("mode", ["none", "selective"])
def test_all_blocks_share_one_whole_graph(mode: Literal["none", "selective"]) -> None:
    """Through a backend that generates no code: whether there are breaks and recompilations does not depend on it."""
    config = TrainConfig(name="x", steps=20, model=replace(SMALL, activation_checkpointing=mode))
    plain, compiled = (build_model(config, torch.device("cpu")).train() for _ in range(2))
    names = [name for name, _ in plain.named_parameters()]
    torch._dynamo.reset()
    counters.clear()
    compile_blocks(choose_architecture(config).blocks(compiled), backend="eager")
    for model in (plain, compiled):
        model(TOKENS).square().mean().backward()
    assert counters["stats"]["unique_graphs"] == 1
    assert [name for name, _ in compiled.named_parameters()] == names
    for one, other in zip(plain.parameters(), compiled.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-7)


def test_a_host_without_a_compiler_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"model.compile: true is refused; allowed: false on a host without a C\+\+ compiler"):
        build_model(TrainConfig(name="x", steps=20, model=replace(SMALL, compile=True)), torch.device("cpu"))
