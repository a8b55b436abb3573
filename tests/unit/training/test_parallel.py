"""The parallel section and what engines can spread: bad combinations are refused by name, before any rank exists."""

import pytest

from training.config import TrainConfig
from training.parity_cases import CASES, Case
from training.schema import ConfigError

pytestmark = pytest.mark.unit


def config(**sections) -> TrainConfig:
    """The smallest accepted configuration, with these sections."""
    return TrainConfig.from_mapping({"name": "tiny", "steps": 20, "schedule": {"warmup_steps": 4}, **sections})


FSDP = {"kind": "fsdp"}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"parallel": {"shard": 2}}, "parallel.shard: 2 is refused; allowed: nothing when engine.kind is ddp; sharding needs fsdp"),
        (
            {"engine": {"kind": "deepspeed", "zero_stage": 3}, "parallel": {"shard": 2}},
            "parallel.shard: 2 is refused; allowed: nothing when engine.kind is deepspeed",
        ),
        (
            {"engine": {"kind": "deepspeed", "zero_stage": 1}, "parallel": {"tensor": 2}},
            "parallel.tensor: 2 is refused; allowed: 1 when engine.kind is deepspeed, which flattens the parameters",
        ),
        ({"parallel": {"tensor": 4}}, "model.num_kv_heads: 2 is refused; allowed: a multiple of parallel.tensor = 4"),
        ({"parallel": {"tensor": 2}, "model": {"ffn_dim": 383}}, "model.ffn_dim: 383 is refused; allowed: a multiple of parallel.tensor"),
        ({"parallel": {"tensor": 2}, "model": {"vocab_size": 257}}, "model.vocab_size: 257 is refused; allowed: a multiple of"),
        ({"parallel": {"tensor": 2}, "data": {"sequence_length": 127}}, "data.sequence_length: 127 is refused; allowed: a multiple of"),
        (
            {"parallel": {"context": 3}},
            "data.sequence_length: 256 is refused; allowed: a multiple of parallel.context 3",
        ),
        ({"parallel": {"context": 2, "pipeline": 2}}, "parallel.context: 2 is refused; allowed: 1 when parallel.pipeline is above 1"),
        (
            {"parallel": {"context": 2}, "model": {"num_experts": 4}},
            "parallel.context: 2 is refused; allowed: 1 when model.num_experts is set: capacity and balance are taken over whole samples",
        ),
        (
            {"parallel": {"context": 2}, "engine": {"kind": "deepspeed", "zero_stage": 1}},
            "parallel.context: 2 is refused; allowed: 1 when engine.kind is deepspeed, whose ranks all take samples of their own",
        ),
        ({"parallel": {"tensor": 0}}, "parallel.tensor: 0 is refused; allowed: a number >= 1"),
        ({"parallel": {"tensors": 2}}, "parallel.tensors: 2 is refused; allowed: no such key; did you mean tensor?"),
        ({"engine": {"sync_gradients": "micro_batch"}}, 'engine.sync_gradients: "micro_batch" is refused; allowed: step when kind is ddp'),
        ({"engine": {"reduce_precision": "bf16"}}, 'engine.reduce_precision: "bf16" is refused; allowed: fp32 when kind is ddp'),
        ({"engine": {"offload_optimizer": "cpu"}}, 'engine.offload_optimizer: "cpu" is refused; allowed: none when kind is ddp'),
        (
            {"engine": {**FSDP, "offload_optimizer": "cpu"}},
            'engine.offload_parameters: "none" is refused; allowed: cpu, as offload_optimizer',
        ),
        ({"engine": {**FSDP, "zero_stage": 3}}, "engine.zero_stage: 3 is refused; allowed: nothing when kind is fsdp"),
        (
            {"engine": {"kind": "deepspeed", "zero_stage": 2, "offload_parameters": "cpu"}},
            'engine.offload_parameters: "cpu" is refused; allowed: none with zero_stage 2: only stage 3 shards parameters',
        ),
        (
            {"engine": {"kind": "deepspeed", "zero_stage": 0, "offload_optimizer": "cpu"}},
            'engine.offload_optimizer: "cpu" is refused; allowed: none with zero_stage 0',
        ),
        *[
            (
                {"engine": {"kind": "deepspeed", "zero_stage": 1}, "parallel": {axis: 2}, "model": {"num_experts": 4}},
                f"parallel.{axis}: 2 is refused; allowed: 1 when engine.kind is deepspeed, {reason}",
            )
            for axis, reason in (("pipeline", "whose pipelines take"), ("expert", "whose experts are a layer of its own"))
        ],
        ({"parallel": {"expert": 2}}, "parallel.expert: 2 is refused; allowed: 1 when model.num_experts is nothing"),
        (
            {"parallel": {"expert": 4}, "model": {"num_experts": 6}},
            "parallel.expert: 4 is refused; allowed: a divisor of model.num_experts = 6",
        ),
        ({"model": {"num_experts": 4, "experts_per_token": 5}}, "model.experts_per_token: 5 is refused; allowed: at most num_experts = 4"),
        (
            {"model": {"num_experts": 4, "capacity_factor": 2.5}},
            "model.capacity_factor: 2.5 is refused; allowed: at most num_experts / exp",
        ),
        ({"model": {"num_experts": 4, "compile": True}}, "model.compile: true is refused; allowed: false when num_experts is set"),
        ({"parallel": {"stages_per_rank": 2}}, "parallel.stages_per_rank: 2 is refused; allowed: 1 when pipeline is 1"),
        ({"parallel": {"pipeline": 5}}, "model.num_layers: 4 is refused; allowed: at least parallel.pipeline 5 x stages_per_rank 1 = 5"),
        (
            {"parallel": {"pipeline": 2, "stages_per_rank": 3}},
            "model.num_layers: 4 is refused; allowed: at least parallel.pipeline 2 x stages_per_rank 3 = 6, one per stage",
        ),
        (
            {"engine": {**FSDP, "sync_gradients": "micro_batch"}, "parallel": {"pipeline": 2}},
            'engine.sync_gradients: "micro_batch" is refused; allowed: step when parallel.pipeline is above 1',
        ),
    ],
)
def test_what_an_engine_cannot_spread_is_refused(sections: dict, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**sections)
    assert message in str(caught.value)


def test_the_engine_decides_which_data_axis_takes_the_rest() -> None:
    assert config().layout(4).replicate == 4
    assert config(engine=FSDP).layout(4).shard == 4
    hybrid = config(engine=FSDP, parallel={"replicate": 2, "tensor": 2}).layout(16)
    assert str(hybrid) == "replicate 2 x shard 4 x tensor 2 = 16 ranks"


def test_tensor_ranks_do_not_multiply_the_batch() -> None:
    plan = config(parallel={"tensor": 2}, batch={"micro": 2, "global_batch": 16}).plan_batch(8)
    assert (plan.replicas, plan.accumulation) == (4, 2)


def test_a_tensor_group_has_to_fit_a_node() -> None:
    wide = config(parallel={"tensor": 2})
    assert wide.layout(6, ranks_per_node=6).tensor == 2
    with pytest.raises(ConfigError, match=r"parallel.tensor: 2 is refused; allowed: a divisor of the 3 ranks of a node"):
        wide.layout(6, ranks_per_node=3)


@pytest.mark.parametrize(
    ("parallel", "batch", "world_size", "message"),
    [
        ({"pipeline": 4}, {"accumulation": 3}, 4, "batch.accumulation: 3 is refused; allowed: at least parallel.pipeline = 4"),
        ({"pipeline": 4}, {"micro": 2, "global_batch": 8}, 8, "batch.accumulation: 2 is refused; allowed: at least parallel.pipeline = 4"),
        ({"pipeline": 2}, {}, 2, "batch.accumulation: 1 is refused; allowed: at least parallel.pipeline = 2"),
        (
            {"pipeline": 2, "stages_per_rank": 2},
            {"accumulation": 5},
            2,
            "batch.accumulation: 5 is refused; allowed: a multiple of parallel.pipeline = 2 when stages_per_rank is above 1",
        ),
    ],
)
def test_a_pipeline_that_its_micro_batches_do_not_fill_is_refused(parallel: dict, batch: dict, world_size: int, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(parallel=parallel, batch=batch).plan_batch(world_size)
    assert message in str(caught.value)


def test_experts_divide_the_innermost_data_axis() -> None:
    experts = {"num_experts": 8}
    assert str(config(model=experts, parallel={"expert": 2}).layout(4)) == "replicate 4, expert 2 within replicate"
    hybrid = config(model=experts, engine=FSDP, parallel={"expert": 2, "replicate": 2}).layout(8)
    assert str(hybrid) == "replicate 2 x shard 4 = 8 ranks, expert 2 within shard"
    with pytest.raises(ConfigError, match=r"parallel.expert: 4 is refused; allowed: a divisor of the 2 ranks of the shard axis"):
        config(model=experts, engine=FSDP, parallel={"expert": 4, "replicate": 2}).layout(4)


def test_experts_are_cut_along_the_width_where_they_are_sharded_too() -> None:
    narrow = config(model={"num_experts": 4, "dim": 8, "num_heads": 2}, engine=FSDP, parallel={"expert": 2})
    with pytest.raises(ConfigError, match=r"model.dim: 8 is refused; allowed: a multiple of the 16 shard ranks that hold the same experts"):
        narrow.layout(32)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_row_of_the_parity_table_is_a_valid_run_of_the_same_batch(case: Case) -> None:
    settings = case.config()
    assert settings.layout(case.ranks).world_size == case.ranks
    assert settings.plan_batch(case.ranks).global_batch == case.reference().config().batch.global_batch
    assert case.reference().config().engine.kind == "ddp"


def test_rows_of_the_parity_table_have_names_of_their_own() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
