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
    *(Case(f"ZeRO-{stage}", ranks, _zero(stage)) for stage in (0, 1, 2, 3) for ranks in (2, 4)),
    *(Case(f"ZeRO-{stage}", 8, _zero(stage)) for stage in (1, 3)),
    *(Case(f"ZeRO-{stage}, optimizer offloaded", 2, _zero(stage, offload_optimizer="cpu")) for stage in (1, 2, 3)),
    Case("ZeRO-3, parameters offloaded", 2, _zero(3, offload_parameters="cpu")),
    *(Case("ZeRO-3, both offloaded", ranks, _zero(3, **_OFFLOADED)) for ranks in (2, 4)),
    Case("ZeRO-3, recomputed", 2, {**_zero(3), "model": {"activation_checkpointing": "full"}}),
)
