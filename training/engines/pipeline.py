"""Pipeline parallelism: 1F1B, or interleaved 1F1B with several stages per rank, over the stages that `training.stage` cuts."""

from collections.abc import Iterable
from contextlib import AbstractContextManager

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from torch.distributed.pipelining.stage import PipelineStageInfo
from torch.distributed.tensor import DTensor

from training.config import TrainConfig
from training.data import Samples
from training.distributed import Ranks
from training.engines.pytorch import TorchEngine
from training.layout import Layout
from training.mesh import part
from training.model import Routed, sample_losses
from training.precision import DTYPES


class PipelineEngine(TorchEngine):
    """A PyTorch engine whose model lies on several ranks by depth. Micro-batches are those of gradient accumulation.

    Only the last stage knows the losses; what other ranks give for them is 0.
    """

    def __init__(self, config: TrainConfig, ranks: Ranks, layout: Layout) -> None:
        super().__init__(config, ranks, layout)
        line = part(self._placed.mesh, "pipeline")
        assert line is not None
        self._line = _Line(config, ranks, layout, line.get_group())
        self._losses: list[Tensor] = []
        stages = [self._line.stage(number, module) for number, module in self._placed.stages.items()]
        for stage in stages:
            stage.register_forward_context(self._stage_context)
        schedule = Schedule1F1B if len(stages) == 1 else ScheduleInterleaved1F1B
        self._schedule = schedule(stages[0] if len(stages) == 1 else stages, self._accumulation, self._objective, scale_grads=False)

    def accumulate(self, batches: Iterable[Samples]) -> Tensor:
        """See Engine."""
        self._model.train()
        for stage in self._placed.stages.values():
            stage.train()
        taken = list(batches)
        self._losses.clear()
        with self._sharded_loss():
            self._schedule.step(
                arg_mbs=[(samples.tokens,) for samples in taken],
                kwarg_mbs=[{"length": samples.tokens.shape[1]} for samples in taken],
                target_mbs=[samples.targets for samples in taken],
                return_outputs=False,
            )
        return torch.stack(self._losses).double().mean() if self._losses else torch.zeros((), dtype=torch.float64)

    @torch.no_grad()
    def sample_losses(self, samples: Samples) -> Tensor:
        """See Engine. A rank is done with a batch when it has handed it on, so that batches that follow each other fill the pipeline."""
        losses = torch.zeros(len(samples.tokens), device=self._ranks.device)
        for number, module in self._placed.stages.items():
            module.eval()
            inputs = (samples.tokens,) if number == 0 else self._line.receive(len(samples.tokens), number)
            with self._autocast(), self._sharded_loss():
                output = module(*inputs, length=samples.tokens.shape[1])
                if number == self._line.last:
                    losses = sample_losses(output, samples.targets)[0]
                    continue
            self._line.send(output, number)
        return losses

    def whole_weights(self) -> dict[str, Tensor]:
        """See Engine. Goes over the CPU, from the first rank of each stage to rank 0."""
        own = {name: _whole(parameter) for name, parameter in self._model.named_parameters()}
        weights = dict(own) if self._ranks.is_main else {}
        shapes = self._ranks.gather({name: weight.shape for name, weight in own.items()})
        for source in self._layout.groups("pipeline")[0][1:]:
            for name, shape in shapes[source].items():
                if self._ranks.rank == source:
                    dist.send(own[name], dst=0, group=self._ranks.control)
                elif self._ranks.is_main:
                    weights[name] = torch.empty(shape)
                    dist.recv(weights[name], src=source, group=self._ranks.control)
        return weights

    def _objective(self, output: Tensor | Routed, targets: Tensor) -> Tensor:
        losses, objective = sample_losses(output, targets)
        self._losses.append(losses.mean().detach())
        return self._scaler.scaled(objective.mean() / self._accumulation)

    def _stage_context(self, info: PipelineStageInfo) -> AbstractContextManager:
        del info
        return self._autocast()


class _Line:
    """The stages' order on the ranks, and what goes from one to the next."""

    def __init__(self, config: TrainConfig, ranks: Ranks, layout: Layout, group: dist.ProcessGroup) -> None:
        self._device, self._group, self._size = ranks.device, group, layout.pipeline
        self._micro, self._vocab_size = config.batch.micro, config.model.vocab_size
        self._width, self._has_experts = config.model.dim, config.model.num_experts is not None
        self._length, self._whole_length = config.data.sequence_length // layout.tensor, config.data.sequence_length
        # FSDP's embedding gives what it gathers weights in; autocast leaves embeddings alone.
        self._dtype = DTYPES[config.engine.precision if config.engine.kind == "fsdp" else "fp32"]
        self.last = layout.pipeline * config.parallel.stages_per_rank - 1

    def stage(self, number: int, module: torch.nn.Module) -> PipelineStage:
        """A stage with the shapes of what it takes and gives, so that none have to be found out by running it."""
        between = tuple(tensor.requires_grad_() for tensor in self._between(self._micro, torch.device("meta")))
        tokens = torch.empty(self._micro, self._whole_length, dtype=torch.long, device="meta")
        logits = torch.empty(self._micro, self._whole_length, self._vocab_size, device="meta")
        return PipelineStage(
            module,
            number,
            self.last + 1,
            self._device,
            input_args=(tokens,) if number == 0 else between,
            output_args=(logits, *between[1:]) if number == self.last else between,
            group=self._group,
        )

    def receive(self, batch: int, number: int) -> tuple[Tensor, ...]:
        """What the stage before this one has sent."""
        tensors = self._between(batch, self._device)
        for tensor in tensors:
            dist.recv(tensor, group=self._group, group_src=(number - 1) % self._size)
        return tensors

    def send(self, output: Tensor | Routed, number: int) -> None:
        """To the stage after this one."""
        for tensor in output if isinstance(output, tuple) else (output,):
            dist.send(tensor.contiguous(), group=self._group, group_dst=(number + 1) % self._size)

    def _between(self, batch: int, device: torch.device) -> tuple[Tensor, ...]:
        hidden = torch.empty(batch, self._length, self._width, dtype=self._dtype, device=device)
        return (hidden, torch.empty(batch, device=device)) if self._has_experts else (hidden,)


def _whole(parameter: Tensor) -> Tensor:
    whole = parameter.detach()
    return (whole.full_tensor() if isinstance(whole, DTensor) else whole).float().cpu()
