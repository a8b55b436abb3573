"""What the loop asks of an engine, and what engines share."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from training.config import OptimizerConfig
from training.data import Samples
from training.read_check import ReadCheck
from training.weights import whole_shape
from training.writer import CheckpointWriter


class Engine(Protocol):
    """A model with its optimizer on this rank. Every method is collective: all ranks call it, in the same order."""

    num_parameters: int
    """Parameters of the whole model, over all ranks."""

    def accumulate(self, batches: Iterable[Samples]) -> Tensor:
        """Forward and backward of all micro-batches of one optimizer step, which come on this rank's device.

        Gives their mean loss, detached; it counts on the ranks for which `Layout.reports_loss` holds.
        """
        ...

    def optimizer_step(self, lr: float) -> float:
        """Clip, update with this rate, clear the gradients; gives the global gradient norm before clipping.

        In fp16 a norm that is not finite says that the update was skipped.
        """
        ...

    def sample_losses(self, samples: Samples) -> Tensor:
        """Loss of each sample, [batch], without dropout and gradients."""
        ...

    def measures(self) -> dict[str, float]:
        """What the model has measured of itself since the last call, for the metrics; the same on every rank."""
        ...

    def whole_weights(self) -> dict[str, Tensor]:
        """The master weights of all that is trained by name, whole, in fp32 on the CPU of rank 0; nothing elsewhere."""
        ...

    def save(self, directory: Path, writer: CheckpointWriter) -> None:
        """Hand model and optimizer, as they are now, to the writer, as files in the directory; the writer may put them there later."""
        ...

    def load(self, directory: Path, check: ReadCheck | None = None) -> None:
        """Read what `save` wrote on as many ranks as there are now, holding files that `check` expects to their digests on the way."""
        ...

    def load_full(self, directory: Path) -> None:
        """Read whole tensors by parameter name, in the form of `training.container`, into the ranks and shards that there are now.

        It is what the plain PyTorch engines write themselves; other engines' files are rewritten into it. Raises CheckpointError naming
        what is missing.
        """
        ...

    def extra_state(self) -> dict[str, Any]:
        """What else must survive, the same on every rank and small enough for JSON, such as a loss scaler's scale."""
        ...

    def load_extra_state(self, state: dict[str, Any]) -> None:
        """Take back what `extra_state` gave, perhaps of another engine; empty if there was nothing."""
        ...


def build_optimizer(model: nn.Module, config: OptimizerConfig, *, fused: bool) -> torch.optim.AdamW:
    """AdamW over what is trained, in at most two groups: matrices with weight decay, then the rest without."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if len(whole_shape(parameter)) >= 2]
    others = [parameter for parameter in trained if len(whole_shape(parameter)) < 2]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    # Adapters have no others, and DeepSpeed cannot flatten nothing.
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=config.lr, betas=config.betas, eps=config.eps, fused=fused)


def set_hyperparameters(optimizer: Any, config: OptimizerConfig) -> None:
    """Let the configuration, and not a checkpoint, decide what the optimizer does from here on.

    DeepSpeed's universal form needs it too: it gives every group the first one's values.
    """
    for group, weight_decay in zip(optimizer.param_groups, (config.weight_decay, 0.0), strict=False):
        group.update(betas=config.betas, eps=config.eps, weight_decay=weight_decay)
