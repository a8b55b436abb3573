"""The loss scale of DeepSpeed's dynamic scaler, in the form of `training.loss_scaler`, so that it goes on under any engine.

DeepSpeed looks at its count of good steps before it counts the step at hand, so a count that starts anew doubles the scale one good step
later than ours does. Counts are handed over such that the next doubling comes with the step at which the writer's own would have come.
"""

from typing import Any


def scale_of(scaler: Any) -> dict[str, Any]:
    """State of a DynamicLossScaler, as `LossScaler.state_dict` gives that of ours; `good_steps` is -1 right after an overflow."""
    return {"loss_scale": float(scaler.cur_scale), "good_steps": scaler.cur_iter - scaler.last_overflow_iter - 2}


def set_scale(scaler: Any, state: dict[str, Any], window: int) -> None:
    """Let a DynamicLossScaler go on from such a state, if there is one, and by this `window`, whatever its own file said."""
    scaler.scale_window = window
    if "loss_scale" in state:
        scaler.cur_scale = state["loss_scale"]
        scaler.last_overflow_iter = scaler.cur_iter - state["good_steps"] - 2
