"""DeepSpeed ZeRO, from a raw configuration of ours: nothing is left to "auto", and DeepSpeed joins the process group that we made."""

import importlib
import logging
import math
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from training.architecture import build_model
from training.batch import BatchPlan
from training.config import TrainConfig
from training.container import FullState
from training.data import Samples
from training.distributed import Ranks
from training.engines.base import build_optimizer, set_hyperparameters
from training.engines.torch_state import load_state
from training.engines.zero_build import build_divided
from training.engines.zero_files import TAG
from training.engines.zero_scale import scale_of, set_scale
from training.engines.zero_state import fill
from training.errors import CheckpointError, TrainingError
from training.layout import Layout
from training.loss_scaler import OVERFLOW_AT_SMALLEST, SMALLEST
from training.model import sample_losses
from training.moe import measure_experts
from training.read_check import ReadCheck
from training.weights import whole_shape
from training.writer import CheckpointWriter


def deepspeed_config(config: TrainConfig, plan: BatchPlan, *, pin_memory: bool) -> dict[str, Any]:
    """The whole configuration handed to DeepSpeed. The optimizer and the schedule are ours and do not appear in it.

    `pin_memory`: keep what is offloaded in page-locked memory, for a GPU to copy from.
    """
    return {
        **plan.deepspeed(),
        "gradient_clipping": config.optimizer.clip_norm or 0.0,
        **_precision(config),
        "zero_optimization": {
            "stage": config.engine.zero_stage,
            "overlap_comm": False,
            "contiguous_gradients": True,
            "reduce_scatter": True,
            **_offload(config, pin_memory),
        },
        # An offloaded update runs on the CPU by torch's fused AdamW: DeepSpeed's own would have to be compiled, and its states renamed.
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 1 << 62,
        "wall_clock_breakdown": False,
    }


def _offload(config: TrainConfig, pin_memory: bool) -> dict[str, Any]:
    engine = config.engine
    places = {"offload_optimizer": engine.offload_optimizer, "offload_param": engine.offload_parameters}
    return {key: {"device": "cpu", "pin_memory": pin_memory} for key, place in places.items() if place == "cpu"}


def _precision(config: TrainConfig) -> dict[str, Any]:
    """Half-precision settings: gradients accumulate in fp32 in every stage.

    Without ZeRO, DeepSpeed can do that only by autocast; with it, the weights themselves are kept in bf16 beside fp32 master shards.
    """
    if config.engine.precision == "fp32":
        return {"bf16": {"enabled": False}}
    if config.engine.precision == "fp16":
        return {"fp16": _loss_scale(config), "data_types": {"grad_accum_dtype": "fp32"}}
    if config.engine.zero_stage == 0:
        return {"bf16": {"enabled": False}, "torch_autocast": {"enabled": True, "dtype": "bfloat16"}}
    return {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}


def _loss_scale(config: TrainConfig) -> dict[str, Any]:
    """DeepSpeed's own dynamic loss scaler, told to do what ours does; what it counts is told by zero_scale."""
    return {
        "enabled": True,
        "loss_scale": 0,
        "initial_scale_power": config.engine.loss_scale_power,
        "loss_scale_window": config.engine.loss_scale_window,
        "hysteresis": 1,
        "consecutive_hysteresis": False,
        "min_loss_scale": SMALLEST,
    }


class DeepSpeedEngine:
    """ZeRO 0 to 3 with torch's AdamW, checkpointed through DeepSpeed's own writers."""

    def __init__(self, config: TrainConfig, ranks: Ranks, layout: Layout) -> None:
        self._config, self._ranks, self._layout = config, ranks, layout
        deepspeed = import_deepspeed(ranks)
        on_gpu = ranks.device.type == "cuda"
        plan = config.plan_batch(ranks.world_size)
        self._accumulation = plan.accumulation
        settings = deepspeed_config(config, plan, pin_memory=on_gpu)
        is_divided = config.engine.zero_stage == 3
        model = build_divided(config, settings, ranks.device) if is_divided else build_model(config, ranks.device)
        self.num_parameters = sum(whole_shape(parameter).numel() for parameter in model.parameters())
        optimizer = build_optimizer(model, config.optimizer, fused=on_gpu or config.engine.offload_optimizer == "cpu")
        with kept_buffers(model):
            self._engine, *_ = deepspeed.initialize(
                model=model,
                optimizer=optimizer,
                config=settings,
                dist_init_required=False,
            )
        self._is_plain = config.engine.zero_stage == 0
        self._scales = config.engine.precision == "fp16"

    def accumulate(self, batches: Iterable[Samples]) -> Tensor:
        """See Engine."""
        self._engine.train()
        losses = [self._micro_step(samples, last=index == self._accumulation) for index, samples in enumerate(batches, start=1)]
        return torch.stack(losses).double().mean()

    def _micro_step(self, samples: Samples, *, last: bool) -> Tensor:
        losses, objective = sample_losses(self._engine(samples.tokens), samples.targets)
        self._engine.backward(objective.mean())
        if not last:
            self._engine.step()
        return losses.mean().detach()

    def optimizer_step(self, lr: float) -> float:
        """See Engine."""
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        # Without ZeRO DeepSpeed clips but does not say by how much; its gradients are whole and reduced by now.
        gradients = [parameter.grad for parameter in self._engine.module.parameters() if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients) if self._is_plain else None
        self._update()
        if not self._engine.was_step_applied():
            return math.inf
        return float(self._engine.get_global_grad_norm() if norm is None else norm)

    def _update(self) -> None:
        try:
            self._engine.step()
        except Exception as error:
            if "loss scale already at minimum" in str(error):
                raise TrainingError(OVERFLOW_AT_SMALLEST) from None
            raise

    @torch.no_grad()
    def sample_losses(self, samples: Samples) -> Tensor:
        """See Engine."""
        self._engine.eval()
        return sample_losses(self._engine(samples.tokens), samples.targets)[0]

    def measures(self) -> dict[str, float]:
        """See Engine."""
        scale = {"loss_scale": float(self._engine.optimizer.loss_scale)} if self._scales else {}
        return {**measure_experts(self._engine.module, self._ranks.sum), **scale}

    def whole_weights(self) -> dict[str, Tensor]:
        """See Engine. One parameter at a time, so that no rank ever holds the whole model on its device."""
        from deepspeed.utils import safe_get_full_fp32_param

        weights = {}
        for name, parameter in self._engine.module.named_parameters():
            if not parameter.requires_grad:
                continue
            whole = parameter.data if self._is_plain else safe_get_full_fp32_param(parameter)
            if self._ranks.is_main:
                weights[name] = whole.detach().float().cpu().clone()
        return weights

    def save(self, directory: Path, writer: CheckpointWriter) -> None:
        """See Engine."""
        self._engine.checkpoint_engine.save = lambda state_dict, path: writer.write_object(Path(path), state_dict)
        self._engine.save_checkpoint(str(directory), tag=TAG, save_latest=False, exclude_frozen_parameters=True)

    def extra_state(self) -> dict[str, Any]:
        """See Engine. What DeepSpeed's own files number, and not name, is named here, and its loss scale told in every engine's form."""
        names = {parameter: name for name, parameter in self._engine.module.named_parameters()}
        groups = self._engine.optimizer.param_groups if self._is_plain else []
        scale = scale_of(self._engine.optimizer.loss_scaler) if self._scales else {}
        return {"optimizer_names": [names[parameter] for group in groups for parameter in group["params"]], **scale}

    def load_extra_state(self, state: dict[str, Any]) -> None:
        """See Engine."""
        if self._scales:
            set_scale(self._engine.optimizer.loss_scaler, state, self._config.engine.loss_scale_window)

    def load(self, directory: Path, check: ReadCheck | None = None) -> None:
        """See Engine. DeepSpeed reads its files itself, and parses them, so they are verified beforehand."""
        del check
        # What is frozen is not in there: it comes from the base model at each start.
        whole = all(parameter.requires_grad for parameter in self._engine.module.parameters())
        path, _ = self._engine.load_checkpoint(str(directory), tag=TAG, load_lr_scheduler_states=False, load_module_strict=whole)
        if path is None:
            raise CheckpointError(f"DeepSpeed found nothing to load in {directory}")
        set_hyperparameters(self._engine.optimizer, self._config.optimizer)

    def load_full(self, directory: Path) -> None:
        """See Engine."""
        if self._is_plain:
            load_state(self._engine.module, self._engine.optimizer, directory, self._ranks.control)
        else:
            fill(self._engine, FullState(directory).read, self._ranks.rank)
        set_hyperparameters(self._engine.optimizer, self._config.optimizer)


@contextmanager
def kept_buffers(model: nn.Module) -> Generator[None]:
    """Give buffers back what they were: DeepSpeed casts them with the weights, and rotary frequencies in bf16 spoil late positions."""
    before = {id(module): dict(module._buffers) for module in model.modules()}
    yield
    for module in model.modules():
        module._buffers.update(before[id(module)])


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
    if ranks.device.type == "cpu":
        # It asks for processors with fp16 instructions; torch computes fp16 on any.
        deepspeed.accelerator.get_accelerator().is_fp16_supported = lambda: True
    import_without_compiler("deepspeed.runtime.zero.muon.original_muon")
    deepspeed.init_distributed(dist_backend=ranks.backend, auto_mpi_discovery=False, verbose=False)
    return deepspeed


def import_without_compiler(module: str) -> None:
    """Import a module whose decorators ask for torch.compile, without them.

    ZeRO imports Muon, an optimizer that we do not use, whose decorators import torch's compiler: seconds of CPU at the start of every rank.
    """
    library: Any = torch
    compiler = library.compile
    library.compile = lambda model=None, **_: model or (lambda function: function)
    try:
        importlib.import_module(module)
    finally:
        library.compile = compiler
