"""Batch arithmetic, as pure functions that a preview, the trainer and the DeepSpeed configuration share.

global batch  = micro batch x accumulation x data-parallel replicas

How many replicas a world holds is `training.layout`'s part.
"""

from dataclasses import dataclass

from training.layout import nearest


class BatchError(ValueError):
    """Batch numbers that do not fit together; the message names them all."""


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """How the samples of one optimizer step are spread over micro-batches and replicas."""

    micro: int
    """Samples that one replica takes through one forward and backward pass."""
    accumulation: int
    """Micro-batches that one replica accumulates before an optimizer step."""
    replicas: int
    """Data-parallel replicas: model copies that see different samples."""

    @property
    def global_batch(self) -> int:
        """Samples per optimizer step, over all replicas."""
        return self.micro * self.accumulation * self.replicas

    def deepspeed(self) -> dict[str, int]:
        """The three numbers that DeepSpeed asks for and checks against each other."""
        return {
            "train_batch_size": self.global_batch,
            "train_micro_batch_size_per_gpu": self.micro,
            "gradient_accumulation_steps": self.accumulation,
        }

    def __str__(self) -> str:
        return f"{self.global_batch} = micro {self.micro} x accumulation {self.accumulation} x data-parallel replicas {self.replicas}"


def plan_batch(*, replicas: int, micro: int, accumulation: int | None = None, global_batch: int | None = None) -> BatchPlan:
    """Complete the batch identity from the micro batch and at most one of the other two (both are accepted if they agree).

    With neither, there is no accumulation. Raises BatchError naming all the numbers when they do not fit.
    """
    for name, value in (("data-parallel replicas", replicas), ("micro batch", micro)):
        _require_positive(name, value)
    for name, value in (("accumulation", accumulation), ("global batch", global_batch)):
        if value is not None:
            _require_positive(name, value)
    per_pass = micro * replicas
    if global_batch is None:
        return BatchPlan(micro=micro, accumulation=accumulation or 1, replicas=replicas)
    if global_batch % per_pass:
        raise BatchError(
            f"global batch {global_batch} is not a multiple of micro batch {micro} x data-parallel replicas {replicas} = {per_pass}; "
            f"use a global batch of {nearest(global_batch, per_pass)}, another micro batch or another number of ranks"
        )
    derived = global_batch // per_pass
    if accumulation is not None and accumulation != derived:
        raise BatchError(
            f"global batch {global_batch} is not micro batch {micro} x accumulation {accumulation} x data-parallel replicas {replicas} "
            f"= {micro * accumulation * replicas}; leave one of them out or set accumulation to {derived}"
        )
    return BatchPlan(micro=micro, accumulation=derived, replicas=replicas)


def _require_positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BatchError(f"{name} is {value!r}; it must be a whole number of at least 1")
