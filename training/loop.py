"""The run itself: steps, evaluations, saves, and the decision of all ranks to stop."""

import logging
import math
import os
import time
from collections.abc import Iterator
from contextlib import closing

import torch

from training import distributed
from training.architecture import choose_architecture, resolve_model
from training.banner import show_banner
from training.batch import BatchPlan
from training.checkpoint import Checkpointer, SavedCheckpoint
from training.config import TrainConfig
from training.data import Dataset, Samples
from training.distributed import Ranks
from training.engines import Engine, build_engine
from training.errors import DataError, TrainingError
from training.exit_codes import ExitCode
from training.guard import guarded
from training.launch import Launch
from training.layout import Layout
from training.loader import Loader
from training.meter import Meter, find_peak
from training.metrics import Metrics
from training.preflight.run import run_preflight
from training.progress import Progress
from training.schedule import learning_rate
from training.signals import StopRequest
from training.watchdog import Watchdog

_log = logging.getLogger(__name__)


def run(config: TrainConfig, launch: Launch, stop: StopRequest) -> ExitCode:
    """Join the other ranks, resume or start, train to the end or to a stop. Gives DONE or RESTART; anything else raises."""
    config = resolve_model(config)
    layout = config.layout(launch.world_size, launch.local_world_size)
    plan = config.plan_batch(launch.world_size)
    dataset = Dataset(config)
    # Before the ranks join: loader workers are forked while there are neither threads nor sockets nor a device.
    with closing(Loader(dataset, config)) as loader:
        return _run(config, launch, layout, plan, dataset, loader, stop)


def _run(
    config: TrainConfig, launch: Launch, layout: Layout, plan: BatchPlan, dataset: Dataset, loader: Loader, stop: StopRequest
) -> ExitCode:
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    ranks = distributed.join(launch, config.distributed, stop.raise_if_received)
    with guarded(config, ranks) as watchdog:
        _refuse_different_inputs(ranks, config, dataset)
        run_preflight(config, ranks, layout)
        _refuse_damaged_data(ranks, dataset)
        with closing(Checkpointer(config, ranks, dataset.fingerprint)) as checkpointer:
            engine = build_engine(config, ranks, layout)
            meter = _meter(config, ranks, plan)
            if ranks.is_main:
                show_banner(config, ranks, layout, plan, dataset, engine, meter)
            progress = checkpointer.resume(engine)
            if progress.data:
                dataset.restore(progress.data)
            with closing(Metrics(config, enabled=ranks.is_main, step=progress.step)) as metrics:
                metrics.start(progress.step, plan, world_size=ranks.world_size, engine=str(config.engine), steps=config.steps)
                trainer = Trainer(config, ranks, layout, plan, dataset, loader, engine, checkpointer, metrics, meter, progress, watchdog)
                outcome = trainer.train(stop)
                metrics.end(progress.step, outcome.name.lower())
        ranks.leave()
    return outcome


class Trainer:
    """One process's part of the run."""

    def __init__(
        self,
        config: TrainConfig,
        ranks: Ranks,
        layout: Layout,
        plan: BatchPlan,
        dataset: Dataset,
        loader: Loader,
        engine: Engine,
        checkpointer: Checkpointer,
        metrics: Metrics,
        meter: Meter,
        progress: Progress,
        watchdog: Watchdog,
    ) -> None:
        self._config, self._ranks, self._layout, self._plan, self._dataset = config, ranks, layout, plan, dataset
        self._loader, self._engine, self._checkpointer = loader, engine, checkpointer
        self._metrics, self._meter, self._progress, self._watchdog = metrics, meter, progress, watchdog
        self._replica = layout.replica(ranks.rank)
        self._weight = float(layout.reports_loss(ranks.rank))
        loader.start(progress.samples, plan, self._replica, pinned=ranks.device.type == "cuda")

    def train(self, stop: StopRequest) -> ExitCode:
        """Make optimizer steps until all are made, the time slice is over or a rank was asked to stop."""
        config, progress = self._config, self._progress
        first = progress.step
        stopped = self._ranks.sum([_as_number(stop)])[0] > 0
        while progress.step < config.steps:
            if stopped or progress.step - first == config.stop_after:
                self._save(at_once=True)
                self._announce_stop(stop, stopped)
                return ExitCode.RESTART
            stopped = self._step(stop)
            if self._is_due(config.evaluation.every):
                self._evaluate()
            if self._is_due(config.checkpoint.every):
                self._save(at_once=progress.step == config.steps)
        self._report(self._checkpointer.drain())
        if progress.step != config.steps:
            raise TrainingError(f"made {progress.step} optimizer steps, but {config.steps} were asked for")
        if self._ranks.is_main:
            _log.info("done: %d optimizer steps, %.2f epochs", progress.step, self._dataset.epoch(progress.samples))
        return ExitCode.DONE

    def _step(self, stop: StopRequest) -> bool:
        """One optimizer step over the whole global batch; gives whether any rank has been asked to stop, which all ranks learn here."""
        started = time.monotonic()
        plan, progress = self._plan, self._progress
        mean = self._engine.accumulate(self._batches())
        rate = learning_rate(
            progress.step,
            peak=self._config.optimizer.lr,
            warmup_steps=self._config.schedule.warmup_steps,
            decay_steps=self._config.decay_steps,
            floor=self._config.schedule.floor,
        )
        norm = self._engine.optimizer_step(rate)
        shared = [self._weight * float(mean), _as_number(stop), self._loader.take_wait()]
        total, requests, waited, *votes = self._ranks.sum([*shared, *self._checkpointer.votes()])
        loss = total / plan.replicas
        progress.step += 1
        progress.samples += plan.global_batch
        seconds = time.monotonic() - started
        skipped = self._config.engine.precision == "fp16" and not math.isfinite(norm)
        if not math.isfinite(loss) or not (math.isfinite(norm) or skipped):
            raise TrainingError(f"step {progress.step}: loss {loss}, gradient norm {norm}; lower optimizer.lr or look at the data")
        rates = self._meter.measure(seconds) | {"data_wait_seconds": waited / self._ranks.world_size, "skipped": float(skipped)}
        self._metrics.step(progress.step, loss=loss, lr=rate, grad_norm=norm, **rates, **self._engine.measures())
        self._report(self._checkpointer.settle(votes))
        return requests > 0

    def _batches(self) -> Iterator[Samples]:
        """This replica's micro-batches of the next optimizer step."""
        for micro_step in range(self._plan.accumulation):
            self._watchdog.tick(f"micro-batch {micro_step} of step {self._progress.step + 1}")
            yield self._loader.next().to(self._ranks.device)

    def _evaluate(self) -> None:
        """Mean loss of the same held-out samples whatever the number of replicas; the last ones may repeat one with no weight."""
        started = time.monotonic()
        count = min(self._config.evaluation.samples, self._dataset.num_eval)
        size, ranks = self._config.batch.micro, self._ranks
        total = 0.0
        for first in range(0, count, size * self._plan.replicas):
            indices = range(first + self._replica * size, first + (self._replica + 1) * size)
            batch = self._dataset.eval_batch([min(index, count - 1) for index in indices]).to(ranks.device)
            losses = self._engine.sample_losses(batch).double().tolist()
            self._watchdog.tick(f"an evaluation batch after step {self._progress.step}")
            total += sum(loss for index, loss in zip(indices, losses, strict=True) if index < count)
        loss = ranks.sum([self._weight * total])[0] / count
        self._metrics.evaluation(self._progress.step, loss, time.monotonic() - started)

    def _save(self, *, at_once: bool) -> None:
        """Save this step; whatever is still being written behind is finished first, and if `at_once` is set so is this one."""
        if self._progress.step:
            self._progress.data = self._dataset.state(self._progress.samples)
            self._watchdog.tick(f"the start of the save of step {self._progress.step}")
            self._checkpointer.save(self._engine, self._progress, at_once=at_once)
            self._watchdog.tick(f"the save of step {self._progress.step}")
        if at_once:
            self._report(self._checkpointer.drain())
        else:
            self._report(self._checkpointer.completed())

    def _report(self, saved: list[SavedCheckpoint]) -> None:
        for checkpoint in saved:
            self._metrics.checkpoint(checkpoint)

    def _is_due(self, every: int) -> bool:
        """Whether something done every so many steps is due now; what is done at all is done at the last step too."""
        return self._progress.step == self._config.steps or bool(every and self._progress.step % every == 0)

    def _announce_stop(self, stop: StopRequest, stopped: bool) -> None:
        if stop.received:
            reason = stop.received.name
        else:
            reason = "another rank was asked to" if stopped else f"stop_after = {self._config.stop_after}"
        if self._ranks.is_main:
            saved = "saved" if self._progress.step else "nothing to save"
            made, code = f"step {self._progress.step} of {self._config.steps}", int(ExitCode.RESTART)
            _log.info("stopping after %s (%s); %s, exit code %d", made, reason, saved, code)


def _meter(config: TrainConfig, ranks: Ranks, plan: BatchPlan) -> Meter:
    length = config.data.sequence_length
    return Meter(
        tokens_per_step=plan.global_batch * length,
        flops_per_token=choose_architecture(config).flops_per_token(length),
        peak_flops=find_peak(ranks.device, config.engine.precision, ranks.world_size, config.metrics.peak_tflops),
        device=ranks.device,
    )


def _as_number(stop: StopRequest) -> float:
    return float(stop.received is not None)


def _refuse_different_inputs(ranks: Ranks, config: TrainConfig, dataset: Dataset) -> None:
    """All ranks must run one configuration on one corpus; a stale mount on one host is found here, not in the loss."""
    mine = {"configuration": config.to_json(), "corpus": dataset.fingerprint}
    for rank, theirs in enumerate(ranks.gather(mine)):
        for what, value in mine.items():
            if theirs[what] != value:
                raise TrainingError(f"rank {rank} has another {what} than rank {ranks.rank}; give all ranks the same files")


def _refuse_damaged_data(ranks: Ranks, dataset: Dataset) -> None:
    """Each rank checks its share of the files; damage found by one stops all, which name it."""
    found = ranks.gather(dataset.find_damage(ranks.rank, ranks.world_size))
    damage = [f"rank {rank}: {line}" for rank, lines in enumerate(found) for line in lines]
    if damage:
        more = f" and {len(damage) - 3} more" if len(damage) > 3 else ""
        raise DataError(f"the corpus is damaged: {'; '.join(damage[:3])}{more}; copy it again, or tokenize it again")
