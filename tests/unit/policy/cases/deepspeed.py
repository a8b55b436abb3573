"""DeepSpeed configurations."""

import json
from dataclasses import replace
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

MICRO, STEPS, TOTAL = "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size"
VOLUMES = [{"name": "deepspeed", "configMap": {"name": "deepspeed"}}]


def ds(**settings: Any) -> Thing:
    return Thing(type=tokens.DEEPSPEED, name="deepspeed", properties={MICRO: 1, **settings})


def zero(stage: Any, **settings: Any) -> Thing:
    return ds(zero_optimization={"stage": stage, **settings})


def stageless(**settings: Any) -> Thing:
    """ZeRO settings without a stage, which is 0 then."""
    return ds(zero_optimization=settings)


def mounted(**settings: Any) -> Thing:
    """The same in a ConfigMap, as jobs mount it."""
    data = {"ds.json": json.dumps({MICRO: 1, **settings})}
    return Thing(type=tokens.CONFIG_MAP, name="settings", properties={"metadata": {"name": "deepspeed"}, "data": data})


def placed(settings: dict[str, Any], namespace: str = "training") -> Thing:
    """The same in a namespace."""
    config = mounted(**settings)
    return replace(config, properties={**config.properties, "metadata": {"name": "deepspeed", "namespace": namespace}})


def named(name: str, thing: Thing) -> Thing:
    return replace(thing, name=name)


def job(*words: str, **changes: Any) -> Thing:
    """32 ranks that mount the ConfigMap."""
    place = f"{b.WORKER}/template/spec/volumes"
    return b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "-np", "32", "python3", "train.py", *words], place: VOLUMES, **changes})


def reading(*volumes: dict[str, Any], **container: Any) -> Thing:
    """The same ranks, with a ConfigMap that they mount or read otherwise."""
    return job(
        **{f"{b.WORKER}/template/spec/volumes": list(volumes), **{f"{b.WORKER_CONTAINER}/{key}": [each] for key, each in container.items()}}
    )


def two_maps() -> Thing:
    """A list of a ConfigMap with a configuration that does not fit the ranks, and of another."""
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    maps = [{**head, **mounted(**FAR).properties}, {**head, "metadata": {"name": "other"}, "data": {}}]
    return Thing(type="kubernetes:core/v1:List", name="maps", properties={"items": maps})


def schedule(kind: str = "WarmupDecayLR", **params: Any) -> Thing:
    return ds(scheduler={"type": kind, "params": params})


def experts(stage: int, **settings: Any) -> Thing:
    return ds(**{"zero_optimization": {"stage": stage}, "expert_parallel": {"enabled": True}, **settings})


def half(kind: str, **settings: Any) -> dict[str, Any]:
    return {kind: {"enabled": True, **settings}}


def offload(stage: int, name: str, **settings: Any) -> Thing:
    return zero(stage, **{name: {"device": "cpu", **settings}})


NEAR = {TOTAL: 1024, STEPS: 32}
FAR = {TOTAL: 2048, STEPS: 32}
NAMELESS = Thing(type=tokens.CONFIG_MAP, name="settings", properties={"data": mounted(**FAR).properties["data"]})
SCRATCH = {"name": "scratch", "emptyDir": {}}
FROM = {"configMap": {"name": "deepspeed"}}
KEY = {"name": "deepspeed", "key": "ds.json"}

CASES = (
    invalid("DSP01", mounted(**{TOTAL: 97, MICRO: None}), job(), says="a multiple of 32, 32 (replicas)", edge=True),
    invalid("DSP01", mounted(**{TOTAL: 1, STEPS: 1}), job(), says="train_batch_size is 1; allowed: 32 = 1 x 1 x 32", edge=True),
    valid("DSP01", mounted(**{TOTAL: 96, MICRO: None}), job(), edge=True),
    valid("DSP01", mounted(**{TOTAL: 65}), job(**{f"{b.WORKER}/replicas": 0})),
    valid("DSP01", mounted(**{TOTAL: 65}), b.mpi_job()),
    valid("DSP01", ds(**{TOTAL: 64, STEPS: 32})),
    valid("DSP01", mounted(**{TOTAL: 1024, STEPS: 32}), job()),
    valid("DSP01", mounted(**{TOTAL: 64, STEPS: 32, "tensor_parallel": {"autotp_size": 16}}), job()),
    valid("DSP01", ds()),
    valid("DSP01", mounted(**{TOTAL: 1000000}), b.mpi_job()),
    valid("DSP01", mounted(**{TOTAL: 32 * 8 * 4, STEPS: 8, MICRO: 4}), job(), edge=True),
    invalid("DSP01", mounted(**{TOTAL: 32 * 8 * 4 + 1, STEPS: 8, MICRO: 4}), job(), says="is 1025; allowed: 1024 = 4 x 8 x 32", edge=True),
    invalid("DSP01", mounted(**{TOTAL: 2048, STEPS: 32}), job(), says="train_batch_size is 2048; allowed: 1024 = 1 x 32 x 32"),
    invalid("DSP01", mounted(**{TOTAL: 1024, STEPS: 32}), job("--tp", "8", "--pp", "2"), says="allowed: 64 = 1 x 32 x 2"),
    invalid("DSP01", ds(**{TOTAL: 65, STEPS: 32}), says="a multiple of 32"),
    invalid("DSP01", ds(**{TOTAL: 10, MICRO: 4}), says="a multiple of 4"),
    invalid("DSP01", mounted(**{TOTAL: 100}), job(), says="a multiple of 32"),
    valid("DSP02", ds()),
    valid("DSP02", ds(**{TOTAL: 64, MICRO: "2"})),
    valid("DSP02", zero(2, reduce_bucket_size=500000000)),
    valid("DSP02", zero(3, stage3_max_live_parameters=1000000000)),
    valid("DSP02", ds(**{STEPS: 1}), edge=True),
    invalid("DSP02", ds(**{STEPS: 0}), says="gradient_accumulation_steps is 0", edge=True),
    invalid("DSP02", Thing(type=tokens.DEEPSPEED, properties={"zero_optimization": {"stage": 2}}), says="DeepSpeed needs one of the two"),
    invalid("DSP02", ds(**{MICRO: "auto"}), says="only the Hugging Face Trainer fills in auto"),
    invalid("DSP02", ds(**{TOTAL: -8}), says="train_batch_size is -8"),
    invalid("DSP02", ds(**{MICRO: 1.5}), says="train_micro_batch_size_per_gpu is 1.5"),
    invalid("DSP02", zero(2, reduce_bucket_size="auto"), says="reduce_bucket_size is auto"),
    invalid("DSP02", mounted(zero_optimization={"stage": 2, "allgather_bucket_size": "auto"}), says="allgather_bucket_size is auto"),
    valid("DSP03", ds(**half("bf16"))),
    valid("DSP03", ds(**half("fp16", loss_scale=0, initial_scale_power=16))),
    valid("DSP03", ds(**half("bf16"), fp16={"enabled": False})),
    valid("DSP03", ds(communication_data_type="fp32")),
    valid("DSP03", ds(**half("fp16", loss_scale=2)), edge=True),
    invalid("DSP03", ds(**half("fp16", loss_scale=1)), says="loss_scale is 1; allowed: 0 (dynamic)", edge=True),
    invalid("DSP03", ds(**half("bf16"), **half("fp16")), says="only one of the two can be on"),
    invalid("DSP03", ds(**half("bfloat16"), **half("fp16")), says="bfloat16.enabled is true"),
    invalid("DSP03", ds(communication_data_type="float16"), says="fp16, fp32, bf16"),
    invalid("DSP03", ds(**half("fp16", initial_scale_power="big")), says="initial_scale_power is big"),
    valid("DSP04", zero(0)),
    valid("DSP04", offload(3, "offload_param")),
    valid("DSP04", offload(2, "offload_optimizer", ratio=1)),
    valid("DSP04", offload(3, "offload_optimizer", device="nvme", nvme_path="/nvme", ratio=0.5)),
    valid("DSP04", zero(2, offload_param={"device": "none"})),
    valid("DSP04", zero(3), edge=True),
    valid("DSP04", offload(1, "offload_optimizer"), edge=True),
    invalid("DSP04", zero(4), says="stage is 4; allowed: 0, 1, 2 or 3", edge=True),
    invalid("DSP04", offload(0, "offload_optimizer"), says="offload_optimizer works from stage 1 on", edge=True),
    invalid("DSP04", offload(2, "offload_param"), says="offload_param works from stage 3 on"),
    invalid("DSP04", offload(3, "offload_param", device="disk"), says="device is disk; allowed: none, cpu, nvme"),
    invalid("DSP04", offload(3, "offload_param", device="nvme"), says="nvme_path is unset"),
    invalid("DSP04", offload(2, "offload_optimizer", ratio=0.5), says="a partial offload needs stage 3"),
    invalid("DSP04", zero("two"), says="stage is two"),
    valid("DSP05", ds(gradient_clipping=1.0)),
    valid("DSP05", ds(optimizer={"type": "AdamW", "params": {"lr": 0.001}}, scheduler={"type": "WarmupLR", "params": {}})),
    valid("DSP05", zero(3, stage3_max_live_parameters=1000000000)),
    valid("DSP05", zero(1, reduce_bucket_size=1)),
    valid("DSP05", zero(3, stage3_prefetch_bucket_size=1), edge=True),
    invalid("DSP05", zero(2, stage3_prefetch_bucket_size=1), says="nothing under stage 2", edge=True),
    invalid("DSP05", ds(gradient_cliping=1.0), says="such as gradient_clipping"),
    invalid("DSP05", ds(elasticity={"enabled": True}), says="elasticity is set; allowed: nothing"),
    invalid("DSP05", ds(optimizer={"type": "Sophia"}), says="optimizer.type is Sophia"),
    invalid("DSP05", ds(scheduler={"type": "Cosine"}), says="scheduler.type is Cosine"),
    invalid("DSP05", zero(2, cpu_offload=True), says="the key is deprecated"),
    invalid("DSP05", zero(3, mics_shard_size=8), says="mics_shard_size is set; allowed: nothing"),
    valid("DSP06", ds(zero_optimization={"stage": 1}, pipeline={"stages": 4})),
    valid("DSP06", zero(3)),
    valid("DSP06", ds(optimizer={"type": "Adam"}, zero_optimization={"stage": 2})),
    valid("DSP06", ds(zero_optimization={"stage": 2}, expert_parallel={"enabled": True})),
    valid("DSP06", ds(zero_optimization={"stage": 2}, pipeline={"stages": 1}), edge=True),
    invalid("DSP06", ds(zero_optimization={"stage": 2}, pipeline={"stages": 2}), says="0 or 1 with pipeline stages", edge=True),
    invalid("DSP06", ds(zero_optimization={"stage": 3}, pipeline={"stages": 8}), says="zero_optimization.stage is 3"),
    invalid("DSP06", ds(optimizer={"type": "OneBitAdam"}), says="optimizer.type is OneBitAdam"),
    invalid("DSP06", ds(optimizer={"type": "ZeroOneAdam"}), says="ZeroOneAdam; allowed: adagrad"),
    # Experts under stage 3 have ranks of their own, and little beside them.
    valid("DSP06", experts(3)),
    valid("DSP06", experts(3, sequence_parallel_size=1), edge=True),
    valid("DSP06", experts(2, sequence_parallel_size=2)),
    valid("DSP06", zero(3, zero_hpz_partition_size=8)),
    valid("DSP06", zero(3, zero_quantized_gradients=True)),
    valid("DSP06", ds(zero_optimization={"stage": 3, "zero_hpz_partition_size": 8}, expert_parallel={"enabled": False})),
    invalid("DSP06", experts(3, sequence_parallel_size=2), says="sequence_parallel_size is 2; allowed: 1 with expert_parallel", edge=True),
    invalid("DSP06", experts(3, zero_optimization={"stage": 3, "zero_hpz_partition_size": 2}), says="zero_hpz_partition_size is 2"),
    invalid("DSP06", experts(3, zero_optimization={"stage": 3, "zero_quantized_gradients": True}), says="zero_quantized_gradients is true"),
    invalid(
        "DSP06", experts(3, expert_parallel={"enabled": True, "expert_tensor_parallel_size": 2}), says="expert_tensor_parallel_size is 2"
    ),
    # Optimizers that ZeRO has not been tested with want a word.
    valid("DSP05", ds(optimizer={"type": "SGD"}, scheduler={"type": "CosineAnnealingLR", "params": {"T_max": 10}}, data_parallel_size=8)),
    invalid("DSP05", ds(optimizer={"type": "sgd"}), says="optimizer.type is sgd", edge=True),
    invalid("DSP05", ds(optimizer={"type": "LBFGS"}), says="optimizer.type is LBFGS"),
    invalid("DSP05", ds(scheduler={"type": "warmuplr", "params": {}}), says="scheduler.type is warmuplr"),
    invalid("DSP05", ds(scheduler={"type": "LambdaLR", "params": {}}), says="scheduler.type is LambdaLR"),
    valid("DSP06", ds(optimizer={"type": "SGD"})),
    valid("DSP06", ds(optimizer={"type": "Lion"}, zero_optimization={"stage": 3})),
    valid("DSP06", ds(optimizer={"type": "SGD"}, zero_optimization={"stage": 1}, zero_allow_untested_optimizer=True), edge=True),
    invalid("DSP06", ds(optimizer={"type": "SGD"}, zero_optimization={"stage": 1}), says="not with SGD", edge=True),
    invalid(
        "DSP06",
        ds(optimizer={"type": "Lamb"}, zero_optimization={"stage": 2}, zero_allow_untested_optimizer=False),
        says="zero_allow_untested_optimizer is false; allowed: true: DeepSpeed has tested ZeRO with adagrad",
    ),
    valid("DSP07", schedule(warmup_num_steps=1000, total_num_steps=100000)),
    valid("DSP07", schedule("WarmupLR", warmup_num_steps=100)),
    valid("DSP07", schedule("WarmupCosineLR", warmup_num_steps=1, total_num_steps=10, cos_min_ratio=0.1)),
    valid("DSP07", ds()),
    valid("DSP07", schedule(warmup_num_steps=499, total_num_steps=500), edge=True),
    valid("DSP07", schedule("WarmupCosineLR", warmup_num_steps=1, total_num_steps=10, cos_min_ratio=1), edge=True),
    invalid("DSP07", schedule(warmup_num_steps=500, total_num_steps=500), says="fewer than total_num_steps = 500", edge=True),
    invalid(
        "DSP07",
        schedule("WarmupCosineLR", warmup_num_steps=1, total_num_steps=10, cos_min_ratio=1.01),
        says="cos_min_ratio is 1.01",
        edge=True,
    ),
    invalid("DSP07", schedule(warmup_num_steps=1000, total_num_steps=500), says="warmup_num_steps is 1000"),
    invalid("DSP07", schedule(warmup_num_steps=-1, total_num_steps=5), says="warmup_num_steps is -1"),
    invalid("DSP07", schedule(warmup_num_steps=10), says="total_num_steps is unset"),
    invalid(
        "DSP07", schedule("WarmupCosineLR", warmup_num_steps=1, total_num_steps=10, warmup_min_ratio=-0.5), says="warmup_min_ratio is -0.5"
    ),
    valid("DSP02", Thing(type=tokens.DEEPSPEED, properties={TOTAL: 64})),
    valid("DSP04", ds()),
    valid("DSP04", stageless(offload_param={"device": "none"})),
    valid("DSP04", offload(2, "offload_optimizer", ratio="1.0")),
    invalid("DSP04", stageless(offload_optimizer={"device": "cpu"}), says="none under stage 0"),
    invalid("DSP04", offload(2, "offload_param", device="nvme", nvme_path="/nvme"), says="device is nvme; allowed: none under stage 2"),
    invalid("DSP05", ds(my_own_tracker={"enabled": True}), says="allowed: a key of DeepSpeed."),
    invalid("DSP05", stageless(stage3_prefetch_bucket_size=1), says="nothing under stage 0"),
    invalid("DSP06", ds(optimizer={"type": "OneBitLamb"}), says="optimizer.type is OneBitLamb"),
    valid("DSP07", schedule("WarmupCosineLR", warmup_num_steps=1, total_num_steps=10, cos_min_ratio=0), edge=True),
    invalid("DSP07", schedule("WarmupCosineLR", warmup_num_steps=1, total_num_steps=10, cos_min_ratio=True), says="cos_min_ratio is true"),
    invalid("DSP07", schedule("WarmupCosineLR", warmup_num_steps=10), says="total_num_steps is unset"),
    valid("DSP01", NAMELESS, reading(SCRATCH)),
    valid("DSP01", two_maps(), reading({"name": "other", "configMap": {"name": "other"}})),
    invalid("DSP01", mounted(**FAR), reading({"name": "all", "projected": {"sources": [FROM]}}), says="1024 = 1 x 32 x 32"),
    invalid("DSP01", mounted(**FAR), reading(envFrom={"configMapRef": {"name": "deepspeed"}}), says="1024 = 1 x 32 x 32"),
    invalid("DSP01", mounted(**FAR), reading(env={"name": "DS", "valueFrom": {"configMapKeyRef": KEY}}), says="1024 = 1 x 32 x 32"),
    # Two namespaces may have a ConfigMap of the same name.
    valid("DSP01", placed(FAR), job(), edge=True),
    valid("DSP01", placed(FAR, "default"), job(**{"metadata/namespace": "training"})),
    invalid("DSP01", placed(FAR), job(**{"metadata/namespace": "training"}), says="1024 = 1 x 32 x 32", edge=True),
    invalid("DSP01", placed(FAR, "default"), job(), says="1024 = 1 x 32 x 32"),
    # Every job that reads the configuration has to fit it.
    valid("DSP01", mounted(**NEAR), job(), named("second", job())),
    invalid("DSP01", mounted(**NEAR), job(), named("second", job(**{f"{b.WORKER}/replicas": 8})), says="2048 = 1 x 32 x 64"),
    invalid("DSP01", mounted(**FAR), job(), named("second", job(**{f"{b.WORKER}/replicas": 8})), says="1024 = 1 x 32 x 32"),
    # Ranks that share a sequence are one replica.
    valid("DSP01", mounted(**{TOTAL: 256, STEPS: 32}), job("--ds-sequence-parallel-size", "4")),
    valid("DSP01", mounted(**{TOTAL: 256, STEPS: 32}), job("--sequence_parallel_size=4")),
    valid("DSP01", mounted(**{TOTAL: 256, STEPS: 32}, sequence_parallel_size=4), job("--ds-sequence-parallel-size", "4"), edge=True),
    valid("DSP01", mounted(**{TOTAL: 128, STEPS: 32}), job("--tp", "2", "--sp", "4")),
    valid("DSP01", mounted(**NEAR), job("--sp", "4")),
    invalid("DSP01", mounted(**NEAR), job("--ulysses-degree", "4"), says="256 = 1 x 32 x 8"),
    valid("DSP07", schedule("WarmupLR")),
    valid("DSP07", schedule("WarmupLR", warmup_num_steps=1, warmup_max_lr=[0.1, 0.2], warmup_type="linear"), edge=True),
    valid("DSP07", schedule(total_num_steps=1001), edge=True),
    valid("DSP07", schedule("OneCycle", cycle_min_lr=0.1, cycle_max_lr=1)),
    valid("DSP07", schedule("LRRangeTest", lr_range_test_step_size=5)),
    valid("DSP07", schedule("CosineAnnealingLR", T_max=10)),
    valid("DSP07", ds(scheduler={"params": {"warmup_num_steps": 0}})),
    invalid("DSP07", ds(scheduler={"type": "WarmupLR"}), says="scheduler.params is unset; allowed: the parameters of WarmupLR, {}"),
    invalid("DSP07", schedule("WarmupLR", warmup_num_steps=0), says="warmup_num_steps is 0; allowed: optimizer steps, a whole", edge=True),
    invalid("DSP07", schedule("WarmupLR", warmup_num_steps="100"), says="warmup_num_steps is 100"),
    invalid("DSP07", schedule("WarmupLR", warmup_num_steps=0.5), says="warmup_num_steps is 0.5"),
    invalid("DSP07", schedule(warmup_num_steps=10, total_num_steps="500"), says="total_num_steps is 500; allowed: optimizer steps"),
    invalid(
        "DSP07", schedule(total_num_steps=1000), says="warmup_num_steps is unset; allowed: fewer than total_num_steps = 1000", edge=True
    ),
    invalid("DSP07", schedule(total_num_steps=500), says="in optimizer steps; DeepSpeed's default is 1000"),
    invalid("DSP07", schedule("WarmupLR", total_num_steps=5000), says="total_num_steps is set; allowed: a parameter of WarmupLR"),
    invalid("DSP07", schedule("WarmupCosineLR", total_num_steps=5000, warmup_min_lr=0), says="warmup_min_lr is set"),
    invalid("DSP07", schedule("OneCycle", cycle_max_lr=1), says="cycle_min_lr is unset; allowed: a value: OneCycle has no default"),
)
