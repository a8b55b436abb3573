"""What the parity proof runs: one line for each strategy, or combination of strategies, and number of ranks. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from training.config import TrainConfig

STEPS = 20
GLOBAL_BATCH = 8
LENGTH = 32

_BASE: dict[str, Any] = {
    "name": "parity",
    "steps": STEPS,
    "model": {"dim": 64, "num_layers": 2, "num_heads": 8, "num_kv_heads": 4, "ffn_dim": 128},
    "data": {"sequence_length": LENGTH},
    "schedule": {"warmup_steps": 4},
    "distributed": {"init_timeout_seconds": 120, "timeout_seconds": 120},
}


@dataclass(frozen=True)
class Case:
    """One way to spread the run."""

    strategy: str
    """Its name in the table."""
    ranks: int
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Sections of the configuration, on top of the common ones."""

    @property
    def name(self) -> str:
        """Strategy and ranks."""
        return f"{self.strategy}, {self.ranks} ranks" if self.ranks > 1 else self.strategy

    def config(self) -> TrainConfig:
        """The whole configuration."""
        sections = {**_BASE, **{name: {**_BASE.get(name, {}), **section} for name, section in self.settings.items()}}
        replicas = TrainConfig.from_mapping(sections).layout(self.ranks).replicas
        # Two micro-batches per step wherever there are samples for them, so that accumulation is part of the proof.
        batch = {"micro": max(1, GLOBAL_BATCH // replicas // 2), "global_batch": GLOBAL_BATCH}
        return TrainConfig.from_mapping({**sections, "batch": {**batch, **sections.get("batch", {})}})

    def reference(self) -> "Case":
        """The single-process run of the same model that this one has to equal."""
        return Case("one process", 1, {name: section for name, section in self.settings.items() if name == "model"})


def _fsdp(**settings: Any) -> dict[str, Any]:
    return {"engine": {"kind": "fsdp", **settings}}


def _zero(stage: int, **settings: Any) -> dict[str, Any]:
    return {"engine": {"kind": "deepspeed", "zero_stage": stage, **settings}}


def _experts(expert: int = 1, engine: Mapping[str, Any] | None = None, **axes: Any) -> dict[str, Any]:
    """A model with experts, of which some choices are dropped, over `expert` ranks."""
    return {**(engine or {}), "model": _MODEL_WITH_EXPERTS, "parallel": {"expert": expert, **axes}}


def _pipeline(ranks: int, engine: Mapping[str, Any] | None = None, model: Mapping[str, Any] | None = None, **axes: Any) -> dict[str, Any]:
    """A pipeline of so many ranks, with micro-batches of one sample and layers that do not come out even."""
    return {**(engine or {}), "model": {"num_layers": 5, **(model or {})}, "batch": {"micro": 1}, "parallel": {"pipeline": ranks, **axes}}


_MODEL_WITH_EXPERTS = {"num_experts": 8, "experts_per_token": 2, "capacity_factor": 1.25}
_OFFLOADED = {"offload_optimizer": "cpu", "offload_parameters": "cpu"}

CASES = (
    *(Case("DDP", ranks) for ranks in (2, 4, 8)),
    *(Case("FSDP2", ranks, _fsdp()) for ranks in (1, 2, 4, 8)),
    Case("FSDP2, gradients summed per micro-batch", 2, _fsdp(sync_gradients="micro_batch")),
    *(Case("FSDP2, offloaded to the CPU", ranks, _fsdp(**_OFFLOADED)) for ranks in (2, 4)),
    Case("FSDP2, recomputed", 2, {**_fsdp(), "model": {"activation_checkpointing": "full"}}),
    Case("FSDP2, recomputed selectively", 2, {**_fsdp(), "model": {"activation_checkpointing": "selective"}}),
    Case("HSDP 2 x 2", 4, {**_fsdp(), "parallel": {"replicate": 2}}),
    Case("HSDP 2 x 4", 8, {**_fsdp(), "parallel": {"replicate": 2}}),
    Case("HSDP 4 x 2", 8, {**_fsdp(), "parallel": {"replicate": 4}}),
    *(Case("TP", ranks, {"parallel": {"tensor": ranks}}) for ranks in (2, 4)),
    Case("TP, recomputed", 2, {"parallel": {"tensor": 2}, "model": {"activation_checkpointing": "full"}}),
    Case("DDP 2 x TP 2", 4, {"parallel": {"tensor": 2}}),
    Case("DDP 4 x TP 2", 8, {"parallel": {"tensor": 2}}),
    Case("DDP 2 x TP 4", 8, {"parallel": {"tensor": 4}}),
    Case("FSDP2 2 x TP 2", 4, {**_fsdp(), "parallel": {"tensor": 2}}),
    Case("FSDP2 4 x TP 2", 8, {**_fsdp(), "parallel": {"tensor": 2}}),
    Case("FSDP2 2 x TP 4", 8, {**_fsdp(), "parallel": {"tensor": 4}}),
    Case("FSDP2 2 x TP 2, offloaded to the CPU", 4, {**_fsdp(**_OFFLOADED), "parallel": {"tensor": 2}}),
    Case("HSDP 2 x 2 x TP 2", 8, {**_fsdp(), "parallel": {"replicate": 2, "tensor": 2}}),
    *(Case("CP", ranks, {"parallel": {"context": ranks}}) for ranks in (2, 4, 8)),
    Case("CP, recomputed", 2, {"parallel": {"context": 2}, "model": {"activation_checkpointing": "full"}}),
    Case("DDP 2 x CP 2", 4, {"parallel": {"context": 2}}),
    Case("FSDP2 1 x CP 2", 2, {**_fsdp(), "parallel": {"context": 2}}),
    Case("FSDP2 2 x CP 2", 4, {**_fsdp(), "parallel": {"context": 2}}),
    Case("HSDP 2 x 2 x CP 2", 8, {**_fsdp(), "parallel": {"replicate": 2, "context": 2}}),
    Case("CP 2 x TP 2", 4, {"parallel": {"context": 2, "tensor": 2}}),
    Case("DDP 2 x CP 2 x TP 2", 8, {"parallel": {"context": 2, "tensor": 2}}),
    Case("FSDP2 2 x CP 2 x TP 2", 8, {**_fsdp(), "parallel": {"context": 2, "tensor": 2}}),
    *(Case(f"ZeRO-{stage}", ranks, _zero(stage)) for stage in (0, 1, 2, 3) for ranks in (2, 4)),
    *(Case(f"ZeRO-{stage}", 8, _zero(stage)) for stage in (1, 3)),
    *(Case(f"ZeRO-{stage}, optimizer offloaded", 2, _zero(stage, offload_optimizer="cpu")) for stage in (1, 2, 3)),
    Case("ZeRO-3, parameters offloaded", 2, _zero(3, offload_parameters="cpu")),
    *(Case("ZeRO-3, both offloaded", ranks, _zero(3, **_OFFLOADED)) for ranks in (2, 4)),
    Case("ZeRO-3, recomputed", 2, {**_zero(3), "model": {"activation_checkpointing": "full"}}),
    Case("MoE, DDP", 2, _experts()),
    Case("MoE without capacity limit, DDP", 2, {"model": {**_MODEL_WITH_EXPERTS, "capacity_factor": None}}),
    Case("MoE, FSDP2", 2, _experts(engine=_fsdp())),
    Case("MoE, TP", 2, _experts(tensor=2)),
    *(Case(f"MoE, ZeRO-{stage}", 2, {**_zero(stage), "model": _MODEL_WITH_EXPERTS}) for stage in (1, 3)),
    *(Case(f"MoE, DDP {ranks}, EP {expert}", ranks, _experts(expert)) for ranks, expert in ((2, 2), (4, 2), (4, 4), (8, 2), (8, 8))),
    *(
        Case(f"MoE, FSDP2 {ranks}, EP {expert}", ranks, _experts(expert, _fsdp()))
        for ranks, expert in ((2, 2), (4, 2), (4, 4), (8, 2), (8, 4), (8, 8))
    ),
    Case("MoE, FSDP2 4, EP 2, offloaded to the CPU", 4, _experts(2, _fsdp(**_OFFLOADED))),
    Case("MoE, HSDP 2 x 2, EP 2", 4, _experts(2, _fsdp(), replicate=2)),
    Case("MoE, HSDP 2 x 4, EP 2", 8, _experts(2, _fsdp(), replicate=2)),
    Case("MoE, DDP 2 x TP 2, EP 2", 4, _experts(2, tensor=2)),
    Case("MoE, FSDP2 2 x TP 2, EP 2", 4, _experts(2, _fsdp(), tensor=2)),
    Case("MoE, FSDP2 4 x TP 2, EP 2", 8, _experts(2, _fsdp(), tensor=2)),
    Case("MoE, DDP 2, EP 2, recomputed", 2, {**_experts(2), "model": {**_MODEL_WITH_EXPERTS, "activation_checkpointing": "full"}}),
    *(Case(f"PP {ranks}", ranks, _pipeline(ranks)) for ranks in (2, 4)),
    Case("PP 8", 8, _pipeline(8, model={"num_layers": 8})),
    Case("PP 2, interleaved", 2, _pipeline(2, stages_per_rank=2)),
    Case("PP 4, interleaved", 4, _pipeline(4, model={"num_layers": 9}, stages_per_rank=2)),
    Case("PP 2, recomputed", 2, _pipeline(2, model={"activation_checkpointing": "full"})),
    Case("PP 2 x DDP 2", 4, _pipeline(2)),
    Case("PP 2 x DDP 4", 8, _pipeline(2)),
    Case("PP 4 x DDP 2", 8, _pipeline(4)),
    Case("PP 2 x DDP 2, interleaved", 4, _pipeline(2, stages_per_rank=2)),
    Case("PP 2 x FSDP2 2", 4, _pipeline(2, _fsdp())),
    Case("PP 2 x FSDP2 2, offloaded to the CPU", 4, _pipeline(2, _fsdp(**_OFFLOADED))),
    Case("PP 2 x FSDP2 2, interleaved", 4, _pipeline(2, _fsdp(), stages_per_rank=2)),
    Case("PP 2 x FSDP2 4, interleaved", 8, _pipeline(2, _fsdp(), stages_per_rank=2)),
    Case("PP 4 x FSDP2 2", 8, _pipeline(4, _fsdp())),
    Case("PP 2 x HSDP 2 x 2", 8, _pipeline(2, _fsdp(), replicate=2)),
    Case("PP 2 x TP 2", 4, _pipeline(2, tensor=2)),
    Case("PP 2 x TP 2, interleaved", 4, _pipeline(2, tensor=2, stages_per_rank=2)),
    Case("PP 2 x DDP 2 x TP 2", 8, _pipeline(2, tensor=2)),
    Case("PP 2 x FSDP2 2 x TP 2", 8, _pipeline(2, _fsdp(), tensor=2)),
    Case("MoE, PP 2", 2, _pipeline(2, model=_MODEL_WITH_EXPERTS)),
    Case("MoE, PP 2, interleaved", 2, _pipeline(2, stages_per_rank=2, model=_MODEL_WITH_EXPERTS)),
    Case("MoE, PP 2 x DDP 2, EP 2", 4, _pipeline(2, expert=2, model=_MODEL_WITH_EXPERTS)),
    Case("MoE, PP 2 x FSDP2 2, EP 2", 4, _pipeline(2, _fsdp(), expert=2, model=_MODEL_WITH_EXPERTS)),
    Case("MoE, PP 2 x FSDP2 4, EP 2, interleaved", 8, _pipeline(2, _fsdp(), expert=2, stages_per_rank=2, model=_MODEL_WITH_EXPERTS)),
    Case("MoE, PP 2 x FSDP2 2 x TP 2, EP 2", 8, _pipeline(2, _fsdp(), expert=2, tensor=2, model=_MODEL_WITH_EXPERTS)),
)
