"""PyTorch's own ways of spreading a model over the mesh, in one engine: DDP, FSDP2, tensor parallelism and their combinations.

One rank without sharding has no wrapper at all. Whatever the layout, parameters keep their names and their first values, and the state is
checkpointed through torch.distributed.checkpoint, which any other layout can read.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor.parallel import loss_parallel
from torch.nn.parallel import DistributedDataParallel

from training import container
from training.config import TrainConfig
from training.data import Samples
from training.distributed import Ranks
from training.engines.base import build_optimizer, set_hyperparameters
from training.engines.torch_state import load_state, state_of
from training.gradient import clip, global_norm, local_gradients, settle_partial_sums
from training.layout import Layout
from training.loss_scaler import LossScaler
from training.model import sample_losses
from training.moe import measure_experts
from training.parallelize import build_parallel, is_replicated_by_ddp
from training.precision import DTYPES
from training.read_check import ReadCheck
from training.writer import CheckpointWriter

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=True)


class TorchEngine:
    """A model on the mesh, with fp32 master weights and AdamW."""

    def __init__(self, config: TrainConfig, ranks: Ranks, layout: Layout) -> None:
        self._config, self._ranks, self._layout = config, ranks, layout
        self._placed = build_parallel(config, layout, ranks.rank, ranks.device)
        self._model = self._placed.model
        self._parameters = list(self._model.parameters())
        held = sum(parameter.numel() for parameter in self._parameters)
        self.num_parameters = int(ranks.sum([held])[0]) * layout.pipeline // layout.world_size
        self._optimizer = build_optimizer(self._model, config.optimizer, fused=True)
        self._scaler = LossScaler(config.engine)
        self._accumulation = config.plan_batch(ranks.world_size).accumulation
        self._wrapped: nn.Module = self._model
        if is_replicated_by_ddp(config, layout):
            devices = [ranks.device] if ranks.device.type == "cuda" else None
            self._wrapped = DistributedDataParallel(self._model, device_ids=devices)
            self._settle_buckets()

    def accumulate(self, batches: Iterable[Samples]) -> Tensor:
        """See Engine."""
        self._wrapped.train()
        losses = [self._micro_step(samples, last=index == self._accumulation) for index, samples in enumerate(batches, start=1)]
        mean = torch.stack(losses).double().mean()
        return self._placed.context.mean(mean) if self._placed.context else mean

    def _micro_step(self, samples: Samples, *, last: bool) -> Tensor:
        samples = self._placed.context.cut(samples) if self._placed.context else samples
        with self._gradient_sync(last), self._sharded_loss():
            with self._autocast():
                losses, objective = sample_losses(self._wrapped(samples.tokens), samples.targets)
            self._scaler.scaled(objective.mean() / self._accumulation).backward()
        return losses.mean().detach()

    def optimizer_step(self, lr: float) -> float:
        """See Engine."""
        settle_partial_sums(self._parameters)
        self._scaler.unscale(local_gradients(self._parameters))
        norm = global_norm(self._parameters, self._layout, self._ranks.device)
        if self._config.optimizer.clip_norm is not None:
            clip(self._parameters, norm, self._config.optimizer.clip_norm)
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        if self._scaler.update(norm):
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return float(norm)

    @torch.no_grad()
    def sample_losses(self, samples: Samples) -> Tensor:
        """See Engine."""
        self._model.eval()
        context = self._placed.context
        samples = context.cut(samples) if context else samples
        with self._autocast(), self._sharded_loss():
            losses = sample_losses(self._model(samples.tokens), samples.targets)[0]
        return context.mean(losses) if context else losses

    def measures(self) -> dict[str, float]:
        """See Engine."""
        return {**measure_experts(self._model, self._ranks.sum), **self._scaler.measures()}

    def whole_weights(self) -> dict[str, Tensor]:
        """See Engine."""
        return get_model_state_dict(self._model, options=_WHOLE)

    def save(self, directory: Path, writer: CheckpointWriter) -> None:
        """See Engine. Replicated tensors are written once, shared out over the ranks."""
        directory.mkdir(exist_ok=True)
        container.save(state_of(self._model, self._optimizer), directory, writer, self._ranks.control)

    def load(self, directory: Path, check: ReadCheck | None = None) -> None:
        """See Engine."""
        load_state(self._model, self._optimizer, directory, self._ranks.control, check)
        set_hyperparameters(self._optimizer, self._config.optimizer)

    def load_full(self, directory: Path) -> None:
        """See Engine. The own form is that one."""
        self.load(directory)

    def extra_state(self) -> dict[str, Any]:
        """See Engine."""
        return self._scaler.state_dict()

    def load_extra_state(self, state: dict[str, Any]) -> None:
        """See Engine."""
        self._scaler.load_state_dict(state)

    def _autocast(self) -> AbstractContextManager:
        """Half precision where nothing else brings it about: FSDP2 gathers weights that are cast already."""
        dtype = DTYPES[self._config.engine.precision]
        return torch.autocast(
            self._ranks.device.type, dtype=dtype, enabled=dtype is not torch.float32 and self._config.engine.kind == "ddp"
        )

    def _sharded_loss(self) -> AbstractContextManager:
        """Cross entropy over logits that tensor ranks hold in parts; its backward pass needs the context too."""
        return loss_parallel() if self._layout.tensor > 1 else nullcontext()

    def _gradient_sync(self, last: bool) -> AbstractContextManager:
        """Sum gradients over the ranks once per optimizer step, or with each micro-batch where memory is worth more than traffic."""
        if isinstance(self._wrapped, DistributedDataParallel):
            return nullcontext() if last else self._wrapped.no_sync()
        if isinstance(self._wrapped, FSDPModule):
            self._wrapped.set_requires_gradient_sync(last or self._config.engine.sync_gradients == "micro_batch")
            self._wrapped.set_is_last_backward(last)
        return nullcontext()

    def _settle_buckets(self) -> None:
        """Run one pass and forget its gradients.

        DDP lays out its buckets anew after the first backward pass, which changes the order of sums on three ranks or more. A resumed run
        would do so at another step than an unbroken one; this way both have done it before their first step.
        """
        tokens = torch.zeros(1, 2, dtype=torch.long, device=self._ranks.device)
        with torch.random.fork_rng(devices=[self._ranks.device] if self._ranks.device.type == "cuda" else []):
            for _ in range(2):
                sample_losses(self._wrapped(tokens), tokens)[1].sum().backward()
        self.measures()
        self._optimizer.zero_grad(set_to_none=True)
