"""DeepSpeed ZeRO, from a raw configuration of ours: nothing is left to "auto", and DeepSpeed joins the process group that we made."""

import logging
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from training.batch import BatchPlan
from training.config import TrainConfig
from training.data import Samples
from training.distributed import Ranks
from training.engines.base import build_optimizer, sync_file
from training.errors import CheckpointError
from training.model import build_model, next_token_loss

_TAG = "zero"


def deepspeed_config(config: TrainConfig, plan: BatchPlan) -> dict[str, Any]:
    """The whole configuration handed to DeepSpeed. The optimizer and the schedule are ours and do not appear in it."""
    return {
        **plan.deepspeed(),
        "gradient_clipping": config.optimizer.clip_norm or 0.0,
        "bf16": {"enabled": config.engine.precision == "bf16"},
        "fp16": {"enabled": False},
        "zero_optimization": {
            "stage": config.engine.zero_stage,
            "overlap_comm": False,
            "contiguous_gradients": True,
            "reduce_scatter": True,
        },
        "steps_per_print": 1 << 62,
        "wall_clock_breakdown": False,
    }


class DeepSpeedEngine:
    """ZeRO 0 to 3 with torch's AdamW, checkpointed through DeepSpeed's own writers."""

    def __init__(self, config: TrainConfig, ranks: Ranks) -> None:
        self._ranks = ranks
        deepspeed = import_deepspeed(ranks)
        model = build_model(config.model, config.seed, ranks.device)
        self.num_parameters = sum(parameter.numel() for parameter in model.parameters())
        optimizer = build_optimizer(model, config.optimizer, fused=ranks.device.type == "cuda")
        self._engine, *_ = deepspeed.initialize(
            model=model,
            optimizer=optimizer,
            config=deepspeed_config(config, config.plan_batch(ranks.world_size)),
            dist_init_required=False,
        )
        self._written = record_writes(self._engine)

    def micro_step(self, samples: Samples, *, last: bool) -> Tensor:
        """See Engine."""
        self._engine.train()
        loss = next_token_loss(self._engine(samples.tokens), samples.targets).mean()
        self._engine.backward(loss)
        if not last:
            self._engine.step()
        return loss.detach()

    def optimizer_step(self, lr: float) -> float:
        """See Engine."""
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        self._engine.step()
        return float(self._engine.get_global_grad_norm())

    @torch.no_grad()
    def sample_losses(self, samples: Samples) -> Tensor:
        """See Engine."""
        self._engine.eval()
        return next_token_loss(self._engine(samples.tokens), samples.targets)

    def save(self, directory: Path) -> list[Path]:
        """See Engine."""
        self._written.clear()
        self._engine.save_checkpoint(str(directory), tag=_TAG, save_latest=False)
        return list(self._written)

    def load(self, directory: Path) -> None:
        """See Engine."""
        path, _ = self._engine.load_checkpoint(str(directory), tag=_TAG, load_lr_scheduler_states=False)
        if path is None:
            raise CheckpointError(f"DeepSpeed found nothing to load in {directory}")


def import_deepspeed(ranks: Ranks) -> Any:
    """Import DeepSpeed for the device in use, quietly, and without its shared-memory operator.

    That operator only serves inference, and DeepSpeed would compile it for minutes at its first use on a CPU.
    """
    os.environ.setdefault("DS_ACCELERATOR", "cuda" if ranks.device.type == "cuda" else "cpu")
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    import deepspeed
    import deepspeed.ops

    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend=ranks.backend, auto_mpi_discovery=False, verbose=False)
    return deepspeed


def record_writes(engine: Any) -> list[Path]:
    """Make the engine's checkpoint writer durable, and list here each file that it has written on this rank."""
    written: list[Path] = []
    writer = engine.checkpoint_engine
    save = writer.save

    def save_durably(state_dict: Any, path: str) -> None:
        save(state_dict, path)
        sync_file(Path(path))
        written.append(Path(path))

    writer.save = save_durably
    return written
