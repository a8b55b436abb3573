"""The loss scaler moves as torch's own does, and says so when no scale helps."""

import copy
import math
import random
from typing import Any

import pytest
import torch
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler
from torch import nn

from training.config import EngineConfig
from training.engines.deepspeed import kept_buffers
from training.engines.zero_scale import scale_of, set_scale
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


def moved(scale: Any, norms: list[float]) -> list[float]:
    """The scales after each of these gradient norms, of either kind of scaler."""
    scales = []
    for norm in norms:
        if isinstance(scale, LossScaler):
            scale.update(torch.tensor(norm))
        else:
            scale.update_scale(not math.isfinite(norm))
        scales.append(float(scale.scale if isinstance(scale, LossScaler) else scale.cur_scale))
    return scales


def deepspeed_scaler(window: int) -> DynamicLossScaler:
    return DynamicLossScaler(2.0**16, window, 1.0, delayed_shift=1, consecutive_hysteresis=False)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """DeepSpeed's scaler asks for its rank when it has something to say."""
    monkeypatch.setattr("deepspeed.comm.get_rank", lambda: 0)


# Right after an overflow, in the middle of a window, with the step that doubles, and with the one after it.
PASTS = [[], [math.inf], *([math.inf] + [1.0] * good for good in range(1, 8)), [1.0] * 5, [math.inf, 1.0, math.inf]]
FUTURES = [[1.0] * 9, [1.0, 1.0, math.inf, *[1.0] * 6], [math.inf, *[1.0] * 6]]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("past", PASTS)
def test_the_scale_goes_on_under_deepspeed_and_back_as_where_it_was(past: list[float], window: int) -> None:
    """Until the next overflow, from which on each counts by its own rule."""
    ours, theirs = scaler(loss_scale_power=16, loss_scale_window=window), deepspeed_scaler(window)
    moved(ours, past)
    moved(theirs, past)
    other, others = scaler(loss_scale_window=window), deepspeed_scaler(window)
    moved(others, [1.0, math.inf])
    set_scale(others, ours.state_dict(), window)
    other.load_state_dict(scale_of(theirs))
    good = [1.0] * (2 * window + 2)
    assert moved(others, good) == moved(ours, good)
    assert moved(other, good) == moved(theirs, good)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("future", FUTURES)
@pytest.mark.parametrize("past", PASTS)
def test_deepspeed_on_other_ranks_goes_on_with_scale_and_count(past: list[float], future: list[float]) -> None:
    one, other = deepspeed_scaler(3), deepspeed_scaler(5)
    moved(one, past)
    set_scale(other, scale_of(one), 3)
    assert moved(other, future) == moved(one, future)


def test_a_checkpoint_without_a_scale_leaves_it_fresh() -> None:
    ours, theirs = scaler(loss_scale_power=8), deepspeed_scaler(3)
    before = copy.copy(vars(theirs))
    ours.load_state_dict({"optimizer_names": []})
    set_scale(theirs, {"optimizer_names": []}, 3)
    assert ours.scale == 2.0**8
    assert vars(theirs) == before


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
