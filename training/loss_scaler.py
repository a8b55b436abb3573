"""Dynamic loss scaling for fp16, whose smallest gradients would otherwise vanish. bf16 and fp32 need none and get none.

Whether gradients overflowed is read off their global norm, a number that every rank holds already, whatever the sharding: so all ranks
skip the same updates, with no collective of its own. A skipped update is an optimizer step like another: its samples are taken and the
learning rate goes on; weights and moments stay as they were.
"""

import math
from typing import Any

import torch
from torch import Tensor

from training.config import EngineConfig
from training.errors import TrainingError

GROWTH = 2.0
"""What the scale is multiplied by after enough steps without overflow, and divided by after one with."""
SMALLEST = 1.0
"""An overflow at this scale is no fault of the scale."""
OVERFLOW_AT_SMALLEST = "fp16 gradients overflow even at loss scale 1; set engine.precision to bf16 or lower optimizer.lr"
"""What a run is told then."""


class LossScaler:
    """The scale and how long it has held."""

    def __init__(self, config: EngineConfig) -> None:
        self.enabled = config.precision == "fp16"
        self.scale = 2.0**config.loss_scale_power if self.enabled else 1.0
        self._window = config.loss_scale_window
        self._good_steps = 0

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss to take the gradients of."""
        return loss * self.scale if self.enabled else loss

    @torch.no_grad()
    def unscale(self, gradients: list[Tensor]) -> None:
        """Divide gradients of a scaled loss by the scale, in place. The scale is a power of two, so nothing is rounded."""
        if self.enabled:
            torch._foreach_mul_(gradients, 1.0 / self.scale)

    def update(self, norm: Tensor) -> bool:
        """Adapt the scale to a step's global gradient norm; gives whether the update is to be made.

        Raises TrainingError when gradients overflow at the smallest scale.
        """
        if not self.enabled:
            return True
        if math.isfinite(norm):
            self._good_steps += 1
            if self._good_steps > 0 and self._good_steps % self._window == 0:
                self.scale *= GROWTH
            return True
        if self.scale <= SMALLEST:
            raise TrainingError(OVERFLOW_AT_SMALLEST)
        self.scale /= GROWTH
        self._good_steps = 0
        return False

    def measures(self) -> dict[str, float]:
        """For the metrics."""
        return {"loss_scale": self.scale} if self.enabled else {}

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint: the form in which every engine writes and reads it (see `training.engines.zero_scale` for DeepSpeed's)."""
        return {"loss_scale": self.scale, "good_steps": self._good_steps} if self.enabled else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint, which has no scale if it was written in another precision."""
        if self.enabled and "loss_scale" in state:
            self.scale, self._good_steps = state["loss_scale"], state["good_steps"]
