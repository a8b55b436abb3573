"""Setting the state of DeepSpeed's optimizers from whole tensors: each rank takes its own part, whatever the stage and number of ranks.

Stages 1 and 2 (and the bf16 optimizer) keep a flat fp32 buffer per group, of which this rank owns a slice that a parameter may straddle.
Stage 3 keeps a padded part of every parameter on every rank.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

MOMENTS = ("exp_avg", "exp_avg_sq")
ReadFull = Callable[[list[str]], dict[str, Tensor]]


def fill(engine: Any, read: ReadFull, rank: int) -> None:
    """Set weights, master weights and moments of a ZeRO 1 to 3 engine. Collective.

    `read` gives whole tensors on the CPU by their names in a checkpoint, and leaves out those that it has not.
    """
    base = engine.optimizer.optimizer
    fill_one = _fill_sharded if engine.zero_optimization_partition_weights() else _fill_flat
    step = torch.zeros(())
    for name, parameter in engine.module.named_parameters():
        if not parameter.requires_grad:
            # It comes from the base model at each start, and no checkpoint has it.
            continue
        moments = {key: f"optimizer.state.{name}.{key}" for key in (*MOMENTS, "step")}
        full = read([f"model.{name}", *moments.values()])
        weight = full[f"model.{name}"]
        state = {key: full[place] for key, place in moments.items() if place in full}
        step = torch.maximum(step, state.pop("step", step).float())
        fill_one(engine, base, parameter, weight, state, rank)
    for flat in _flat_buffers(engine.optimizer, base):
        _state_of(base, flat)["step"].copy_(step)


def _fill_flat(engine: Any, base: Any, parameter: nn.Parameter, weight: Tensor, moments: dict[str, Tensor], rank: int) -> None:
    del engine, rank
    parameter.data.copy_(weight)
    mapping = getattr(parameter, "_hp_mapping", None)
    if mapping is None:
        # No slice of this parameter is this rank's.
        return
    taken, place = mapping.lp_fragment_address, mapping.hp_fragment_address
    flat = base.param_groups[mapping.param_group_index]["params"][0]

    def put(target: Tensor, value: Tensor) -> None:
        target.narrow(0, place.start, place.numel).copy_(value.reshape(-1).narrow(0, taken.start, taken.numel))

    put(flat.data, weight)
    for key, value in moments.items():
        put(_state_of(base, flat)[key], value)


def _fill_sharded(engine: Any, base: Any, parameter: Any, weight: Tensor, moments: dict[str, Tensor], rank: int) -> None:
    from deepspeed.runtime.zero.partition_parameters import GatheredParameters

    with GatheredParameters([parameter], modifier_rank=0):
        if rank == 0:
            parameter.data.copy_(weight)
    zero = engine.optimizer
    group, start, size = zero.grad_position[zero.get_param_id(parameter)]
    flat = zero.fp32_partitioned_groups_flat[group]

    def put(target: Tensor, value: Tensor) -> None:
        # The last rank's part is padded.
        first = size * zero._get_param_partition_rank(parameter)
        own = value.reshape(-1)[first : first + size]
        target.narrow(0, start, own.numel()).copy_(own)

    put(flat.data, weight)
    for key, value in moments.items():
        put(_state_of(base, flat)[key], value)


def _flat_buffers(zero: Any, base: Any) -> list[Tensor]:
    sharded = getattr(zero, "fp32_partitioned_groups_flat", None)
    return list(sharded) if sharded is not None else [group["params"][0] for group in base.param_groups]


def _state_of(base: Any, flat: Tensor) -> dict[str, Tensor]:
    """The optimizer's state of a flat buffer; stages 1 and 2 make it only in their first step."""
    state = base.state[flat]
    for key in MOMENTS:
        if key not in state:
            state[key] = torch.zeros_like(flat.data)
    # One count each: torch's AdamW counts up in place.
    if not isinstance(state.get("step"), Tensor):
        fused = base.param_groups[0].get("fused")
        state["step"] = torch.zeros((), device=flat.device if fused else "cpu")
    return state
