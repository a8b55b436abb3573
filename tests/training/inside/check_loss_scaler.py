"""The loss scaler moves as torch's own does, and says so when no scale helps."""

import math
import random
from typing import Any

import pytest
import torch
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler
from torch import nn

from training.config import EngineConfig
from training.engines.deepspeed import kept_buffers
from training.errors import TrainingError
from training.loss_scaler import LossScaler

pytestmark = pytest.mark.training


def scaler(**settings: Any) -> LossScaler:
    return LossScaler(EngineConfig(precision="fp16", **settings))


@pytest.mark.parametrize("seed", range(5))
def test_the_scale_moves_as_that_of_torch_does(seed: int) -> None:
    ours = scaler(loss_scale_power=16, loss_scale_window=4)
    parameter = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    theirs = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=4)
    choices = random.Random(seed)
    for _ in range(60):
        norm = math.inf if choices.random() < 0.15 else 1.0
        parameter.grad = torch.full((1,), norm)
        theirs.scale(torch.ones(()))
        theirs.step(optimizer)
        theirs.update()
        assert ours.update(torch.tensor(norm)) == math.isfinite(norm)
        assert ours.scale == theirs.get_scale()


def test_state_goes_through_json_and_back() -> None:
    one, other = scaler(loss_scale_power=8, loss_scale_window=3), scaler(loss_scale_window=3)
    for norm in (1.0, math.inf, 1.0, 1.0):
        one.update(torch.tensor(norm))
    other.load_state_dict(one.state_dict())
    one.update(torch.tensor(1.0))
    other.update(torch.tensor(1.0))
    assert one.scale == other.scale == 2.0**8, "halved once, doubled once"


def test_gradients_of_a_scaled_loss_are_those_of_the_loss() -> None:
    weight = nn.Parameter(torch.tensor([0.1, 0.2, 0.3]))
    weight.square().sum().backward()
    assert weight.grad is not None
    plain, weight.grad = weight.grad, None
    scaled = scaler()
    scaled.scaled(weight.square().sum()).backward()
    assert weight.grad is not None
    scaled.unscale([weight.grad])
    assert torch.equal(weight.grad, plain)


def test_an_overflow_at_the_smallest_scale_ends_the_run() -> None:
    with pytest.raises(TrainingError, match=r"set engine.precision to bf16 or lower optimizer.lr"):
        scaler(loss_scale_power=0).update(torch.tensor(math.nan))


def test_deepspeed_says_the_same_in_the_words_that_the_engine_looks_for() -> None:
    at_minimum = DynamicLossScaler(1.0, 3, 1.0, delayed_shift=1, consecutive_hysteresis=False)
    with pytest.raises(Exception, match="loss scale already at minimum"):
        at_minimum.update_scale(True)


def test_other_precisions_leave_losses_and_gradients_alone() -> None:
    plain = LossScaler(EngineConfig())
    loss = torch.tensor(2.0)
    assert plain.scaled(loss) is loss
    assert plain.update(torch.tensor(math.inf)), "an infinite norm is then for the loop to refuse"
    assert plain.state_dict() == plain.measures() == {}


def test_buffers_keep_their_precision() -> None:
    model = nn.Linear(2, 2)
    model.register_buffer("frequencies", torch.tensor([1 / 3]), persistent=False)
    with kept_buffers(model):
        model.bfloat16()
    assert model.weight.dtype is torch.bfloat16
    assert torch.equal(model.frequencies, torch.tensor([1 / 3]))
