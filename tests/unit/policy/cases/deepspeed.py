"""DeepSpeed configurations."""

import json
import math
from dataclasses import replace
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

MICRO, STEPS, TOTAL = "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size"
FILLED = {"bf16": {"enabled": "auto"}, "gradient_clipping": "auto", TOTAL: "auto", MICRO: "auto"}
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


def file(text: str) -> Thing:
    """A ConfigMap with a text of one's own."""
    return Thing(type=tokens.CONFIG_MAP, name="settings", properties={"data": {"ds.json": text}})


def named(name: str, thing: Thing) -> Thing:
    return replace(thing, name=name)


def job(*words: str, **changes: Any) -> Thing:
    """32 ranks that mount the ConfigMap."""
    place = f"{b.WORKER}/template/spec/volumes"
    return b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "-np", "32", "python3", "train.py", *words], place: VOLUMES, **changes})


def weekly(metadata: dict[str, Any], own: dict[str, Any] | None) -> Thing:
    """A Volcano CronJob of 32 ranks; `own` is the metadata of its template."""
    template = {
        "spec": b.volcano_job({"spec/tasks/0/template/spec/volumes": VOLUMES}).properties["spec"],
        **({"metadata": own} if own is not None else {}),
    }
    properties = {"metadata": {"name": "weekly", **metadata}, "spec": {"schedule": "0 3 * * 0", "jobTemplate": template}}
    return Thing(type=tokens.VOLCANO_CRON_JOB, name="weekly", properties=properties)


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


CPU = {"device": "cpu"}
GATHER = "gather_16bit_weights_on_model_save"
OLD_GATHER = "stage3_gather_fp16_weights_on_model_save"
NEAR = {TOTAL: 1024, STEPS: 32}
FAR = {TOTAL: 2048, STEPS: 32}
NAMELESS = Thing(type=tokens.CONFIG_MAP, name="settings", properties={"data": mounted(**FAR).properties["data"]})
SCRATCH = {"name": "scratch", "emptyDir": {}}
FROM = {"configMap": {"name": "deepspeed"}}
KEY = {"name": "deepspeed", "key": "ds.json"}


def optimizer(kind: str = "AdamW", beside: dict[str, Any] | None = None, **params: Any) -> Thing:
    return ds(optimizer={"type": kind, "params": params}, **(beside or {}))


OFFLOADED = {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
WARM = {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}}
CONTIGUOUS = {"partition_activations": True, "contiguous_memory_optimization": True, "number_checkpoints": 24}


def checkpointed(**changes: Any) -> Thing:
    return ds(activation_checkpointing={**CONTIGUOUS, **changes})


# Optimizers, and features beside one another.
FEATURES = (
    valid("DSP05", optimizer(lr=1e-4, betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1, adam_w_mode=True, set_grad_none=True)),
    valid("DSP05", optimizer("Adam", lr=1e-4, torch_adam=True, foreach=True, amsgrad=True)),
    valid("DSP05", optimizer("Adam", OFFLOADED, lr=1e-4, fp32_optimizer_states=False), edge=True),
    valid("DSP05", optimizer("Muon", lr=1e-3, muon_lr=0.02, momentum=0.95)),
    valid("DSP05", optimizer("SGD", lr=0.1, nesterov=True)),
    invalid(
        "DSP05", optimizer(learning_rate=1e-4), says="learning_rate is set, but it has none of that name; allowed: a parameter of AdamW"
    ),
    invalid("DSP05", optimizer(beta=[0.9, 0.95]), says="such as betas"),
    invalid("DSP05", optimizer(lr=1e-4, foreach=True), says="foreach is set", edge=True),
    invalid("DSP05", optimizer("Adam", OFFLOADED, lr=1e-4, set_grad_none=True), says="set_grad_none is set", edge=True),
    invalid("DSP05", optimizer("Lion", lr=1e-4, eps=1e-8), says="a parameter of Lion: lr, betas, weight_decay"),
    valid("DSP05", ds(aio={"block_size": 1048576, "intra_op_parallelism": 8}, flops_profiler={"enabled": True, "profile_step": 5})),
    valid("DSP05", ds(aio={"mine": 1}), edge=True),
    valid("DSP05", ds(checkpoint={"tag_validation": "warn", "mine": 1})),
    invalid(
        "DSP05", ds(checkpoint={"auto_resume": True}), says="checkpoint.auto_resume is set, and DeepSpeed does not read it; allowed: no"
    ),
    invalid("DSP05", ds(checkpoint={"load_univeral": True}), says="allowed: a key of checkpoint, such as load_universal", edge=True),
    invalid("DSP05", ds(aio={"queue_dept": 8}), says="aio.queue_dept is set, and DeepSpeed does not read it; allowed: a key of aio"),
    invalid("DSP05", ds(activation_checkpointing={"partition_activation": True}), says="such as partition_activations", edge=True),
    invalid("DSP05", ds(aio={"thread_count": 8}), says="intra_op_parallelism: DeepSpeed no longer reads thread_count"),
    valid("DSP05", zero(3, zero_hpz_partition_size=8, zero_quantized_weights=True)),
    valid("DSP05", zero(2, zero_hpz_partition_size=1, zero_quantized_gradients=False), edge=True),
    invalid("DSP05", zero(2, zero_hpz_partition_size=8), says="zero_hpz_partition_size is 8; allowed: unset under stage 2", edge=True),
    invalid("DSP05", zero(1, zero_quantized_weights=True), says="unset under stage 1: it only acts in stage 3"),
    valid("DSP02", optimizer(lr=0, betas=[0, 0.999], eps=0)),
    valid("DSP02", optimizer("AdamW", WARM, lr="1e-4"), edge=True),
    valid("DSP02", optimizer(lr=1e-4, torch_adam=True, amsgrad=True), edge=True),
    valid("DSP02", optimizer("Adam", OFFLOADED, lr=1e-4, amsgrad=True)),
    valid("DSP02", ds(steps_per_print=math.inf)),
    invalid("DSP02", optimizer(lr="1e-4"), says="lr is 1e-4; allowed: a number, not in quotes", edge=True),
    invalid("DSP02", optimizer("AdamW", {**OFFLOADED, **WARM}, lr="1e-4"), says="lr is 1e-4", edge=True),
    invalid("DSP02", optimizer(eps="1e-8"), says="eps is 1e-8; allowed: a number of at least 0, not in quotes"),
    invalid("DSP02", optimizer(weight_decay=-0.1), says="weight_decay is -0.1"),
    invalid("DSP02", optimizer(betas="(0.9, 0.999)"), says="a list of two numbers from 0 on and below 1"),
    invalid("DSP02", optimizer(betas=[0.9]), says="betas is [0.9]"),
    invalid("DSP02", optimizer(betas=[0.9, 1]), says="betas is [0.9, 1]", edge=True),
    invalid("DSP02", optimizer(amsgrad=True), says="the fused kernel does not do AMSGrad"),
    invalid("DSP02", ds(steps_per_print=0), says="steps_per_print is 0; allowed: a number above 0", edge=True),
    invalid("DSP02", ds(steps_per_print="inf"), says="steps_per_print is inf"),
    valid("DSP06", ds(prescale_gradients=True, gradient_predivide_factor=8, zero_optimization={"stage": 1}), edge=True),
    valid("DSP06", ds(prescale_gradients=True, zero_optimization={"stage": 2, "reduce_scatter": False}), edge=True),
    valid("DSP06", ds(gradient_predivide_factor=1.0, zero_optimization={"stage": 3})),
    invalid(
        "DSP06",
        ds(prescale_gradients=True, zero_optimization={"stage": 2}),
        says="prescale_gradients is true; allowed: false under stage 2",
    ),
    invalid(
        "DSP06", ds(gradient_predivide_factor=2, zero_optimization={"stage": 3}), says="gradient_predivide_factor is 2; allowed: 1 under"
    ),
    valid("DSP06", checkpointed()),
    valid("DSP06", ds(activation_checkpointing={"cpu_checkpointing": True})),
    invalid("DSP06", checkpointed(partition_activations=False), says="partition_activations is false; allowed: true, because"),
    valid("DSP05", checkpointed(_partition_activations=False, **{"//cpu_checkpointing": 1}), edge=True),
    invalid("DSP06", checkpointed(number_checkpoints=None), says="is on, unless the program gives it"),
    valid("DSP07", schedule(warmup_num_steps=10, total_num_steps=100, warmup_type="linear")),
    invalid("DSP07", schedule(warmup_num_steps=10, total_num_steps=100, warmup_type="cosine"), says="DeepSpeed takes log for any other"),
)

_CASES = (
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
    valid("DSP02", ds(**{TOTAL: 64, MICRO: 2})),
    invalid(
        "DSP02",
        ds(**{TOTAL: 64, MICRO: "2"}),
        says="train_micro_batch_size_per_gpu is 2; allowed: a whole number of at least 1, not in quotes",
    ),
    valid("DSP02", zero(2, reduce_bucket_size=500000000)),
    valid("DSP02", zero(3, stage3_max_live_parameters=1000000000)),
    valid("DSP02", ds(**{STEPS: 1}), edge=True),
    invalid("DSP02", ds(**{STEPS: 0}), says="gradient_accumulation_steps is 0", edge=True),
    valid("DSP02", file('{"train_batch_size": 64, # all ranks\n}')),
    valid("DSP02", file('{"train_batch_size": ${GLOBAL_BATCH}}'), edge=True),
    invalid(
        "DSP02",
        file('{"train_batch_size": 64'),
        says='data["ds.json"] is unreadable at line 1 (no valid JSON or Hjson: Bad key name (eof))',
    ),
    invalid("DSP02", file('{"train_batch_size": "auto", "train_batch_size": 64}'), says="the key train_batch_size stands twice"),
    invalid("DSP02", file("// ours\n{'train_batch_size': -5}"), says="train_batch_size is -5"),
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
    invalid(
        "DSP03", ds(**half("fp16", loss_scale_window=0)), says="loss_scale_window is 0; allowed: at least 1 while the loss scale is dynamic"
    ),
    invalid("DSP03", ds(**half("fp16", min_loss_scale="0", loss_scale=0)), says="min_loss_scale is 0"),
    valid("DSP03", ds(**half("fp16", loss_scale_window=1)), edge=True),
    valid("DSP03", ds(**half("fp16", loss_scale_window=0, loss_scale=128))),
    # Words that pydantic takes for true.
    valid("DSP03", ds(fp16={"enabled": "off"}, bf16={"enabled": "yes"})),
    valid("DSP03", ds(fp16={"enabled": 1}, bf16={"enabled": 0})),
    invalid("DSP03", ds(fp16={"enabled": "true"}, bf16={"enabled": "true"}), says="bf16.enabled is true"),
    invalid("DSP03", ds(fp16={"enabled": 1}, bf16={"enabled": "On"}), says="bf16.enabled is On"),
    invalid("DSP03", ds(fp16={"enabled": "y", "loss_scale": "1"}), says="loss_scale is 1;"),
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
    invalid("DSP05", ds(optimizer={"type": "OneBitAdam"}), says="optimizer.type is OneBitAdam"),
    invalid("DSP05", ds(optimizer={"type": "OneBitLamb"}), says="optimizer.type is OneBitLamb"),
    invalid("DSP05", ds(optimizer={"type": "ZeroOneAdam"}), says="ZeroOneAdam; allowed: adagrad"),
    invalid("DSP05", ds(scheduler={"type": "Cosine"}), says="scheduler.type is Cosine"),
    invalid("DSP05", zero(2, cpu_offload=True), says="cpu_offload is set; allowed: offload_optimizer: the key is deprecated"),
    invalid("DSP05", zero(3, cpu_offload_param=True), says="cpu_offload_param is set; allowed: offload_param: the key is deprecated"),
    # A deprecated key sets the one in its place, unless that is there too.
    invalid("DSP05", zero(2, cpu_offload=False, offload_optimizer=CPU), says="cpu_offload is set; allowed: offload_optimizer alone"),
    invalid("DSP05", zero(2, cpu_offload=True, offload_optimizer="auto"), says="offload_optimizer: the key is deprecated", edge=True),
    invalid("DSP05", zero(2, cpu_offload=True, offload_optimizer=None), says="offload_optimizer alone: DeepSpeed stops", edge=True),
    invalid("DSP05", zero(3, cpu_offload_param=True, offload_param=CPU), says="offload_param alone: DeepSpeed stops where both are set"),
    invalid("DSP05", zero(3, cpu_offload_param=True, offload_optimizer=CPU), says="offload_param: the key is deprecated", edge=True),
    invalid("DSP05", zero(3, **{OLD_GATHER: True, GATHER: True}), says=f"allowed: {GATHER} alone: DeepSpeed stops"),
    invalid("DSP05", zero(3, **{OLD_GATHER: True, f"stage3_{GATHER}": False}), says=f"stage3_{GATHER} alone: DeepSpeed stops"),
    invalid("DSP05", zero(2, **{OLD_GATHER: True}), says="nothing under stage 2: it only acts in stage 3", edge=True),
    invalid("DSP04", zero(2, cpu_offload_param=True), says="cpu_offload_param is true; allowed: false under stage 2: offload_param works"),
    invalid("DSP04", zero(0, cpu_offload=True), says="cpu_offload is true; allowed: false under stage 0: offload_optimizer works"),
    # Where DSP04 refuses the key of old, its successor would be refused too.
    valid("DSP05", zero(0, cpu_offload=True), edge=True),
    valid("DSP05", zero(2, cpu_offload_param=True), edge=True),
    invalid("DSP05", zero(0, cpu_offload=False), says="offload_optimizer: the key is deprecated", edge=True),
    invalid("DSP05", zero(1, cpu_offload=True), says="offload_optimizer: the key is deprecated", edge=True),
    valid("DSP04", zero(1, cpu_offload=True), edge=True),
    valid("DSP04", zero(2, cpu_offload_param=False), edge=True),
    valid("DSP05", zero(2, elastic_checkpoint=True), edge=True),
    valid("DSP05", zero(3, elastic_checkpoint=False), edge=True),
    invalid("DSP05", zero(3, elastic_checkpoint=True), says="elastic_checkpoint is true; allowed: false under stage 3"),
    invalid("DSP05", zero(3, cpu_offload_use_pin_memory=True), says="pin_memory in offload_optimizer or offload_param: the key is deprec"),
    # Comments, where DeepSpeed looks at no key that it doesn't know.
    *(valid("DSP05", ds(**{name: "tuned for 7B"})) for name in ("_comment", "__note__", "// batch", "comment")),
    invalid("DSP05", ds(commment="tuned for 7B"), says="commment is set, but no such key exists", edge=True),
    invalid("DSP05", zero(2, _comment="tuned"), says="_comment is set, but no such key exists; allowed: a key of zero_optimization"),
    invalid(
        "DSP05",
        zero(3, stage3_gather_fp16_weights_on_model_save=True),
        says="allowed: stage3_gather_16bit_weights_on_model_save: the key is deprecated",
    ),
    valid("DSP05", zero(3, stage3_gather_16bit_weights_on_model_save=True)),
    invalid("DSP05", zero(3, mics_shard_size=8), says="mics_shard_size is set; allowed: nothing"),
    valid("DSP06", ds(zero_optimization={"stage": 1}, pipeline={"stages": 4})),
    valid("DSP06", zero(3)),
    valid("DSP06", ds(optimizer={"type": "Adam"}, zero_optimization={"stage": 2})),
    valid("DSP06", ds(zero_optimization={"stage": 2}, expert_parallel={"enabled": True})),
    valid("DSP06", ds(zero_optimization={"stage": 2}, pipeline={"stages": 1}), edge=True),
    invalid("DSP06", ds(zero_optimization={"stage": 2}, pipeline={"stages": 2}), says="0 or 1 with pipeline stages", edge=True),
    invalid("DSP06", ds(zero_optimization={"stage": 3}, pipeline={"stages": 8}), says="zero_optimization.stage is 3"),
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
    # A Volcano CronJob makes its jobs in its own namespace, whatever their template says.
    invalid("DSP01", placed(FAR), weekly({"namespace": "training"}, None), says="1024 = 1 x 32 x 32"),
    invalid("DSP01", placed(FAR), weekly({"namespace": "training"}, {"namespace": "other"}), says="1024 = 1 x 32 x 32", edge=True),
    invalid("DSP01", placed(FAR, "default"), weekly({}, {"labels": {}}), says="1024 = 1 x 32 x 32", edge=True),
    valid("DSP01", placed(FAR), weekly({}, None), edge=True),
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
    valid("DSP07", schedule("LinearLR")),
    valid("DSP07", schedule("StepLR", step_size=100)),
    invalid("DSP07", schedule("CosineAnnealingLR"), says="T_max is unset; allowed: a value: CosineAnnealingLR has no default", edge=True),
    invalid("DSP07", schedule("CosineAnnealingWarmRestarts"), says="T_0 is unset; allowed: a value"),
    invalid("DSP07", schedule("CosineAnnealingWarmRestarts", T_0=100), says="type is CosineAnnealingWarmRestarts; allowed: WarmupCosineLR"),
    invalid("DSP07", schedule("CyclicLR", base_lr=0.1, max_lr=1), says="type is CyclicLR; allowed: WarmupCosineLR or another"),
    invalid("DSP07", schedule("CyclicLR", base_lr=0.1), says="max_lr is unset; allowed: a value: CyclicLR has no default"),
    invalid("DSP07", ds(scheduler={"type": "LinearLR"}), says="scheduler.params is unset; allowed: the parameters of LinearLR, {}"),
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
    # What pydantic takes for a number or a switch, and what it does not.
    valid("DSP02", zero("2", reduce_bucket_size="5", overlap_comm="on", contiguous_gradients=1, allgather_bucket_size="7.0")),
    valid("DSP02", mounted(zero_optimization={"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": None, "offload_param": None})),
    valid("DSP02", zero(2, reduce_bucket_size=1, allgather_bucket_size=0), edge=True),
    invalid("DSP02", zero(2, reduce_bucket_size=0), says="reduce_bucket_size is 0; allowed: a whole number of at least 1", edge=True),
    invalid(
        "DSP02", zero(2, allgather_bucket_size=-1), says="allgather_bucket_size is -1; allowed: a whole number of at least 0", edge=True
    ),
    invalid("DSP02", zero(2, reduce_bucket_size="big"), says="reduce_bucket_size is big"),
    invalid("DSP02", zero(2, reduce_bucket_size="5e8"), says="reduce_bucket_size is 5e8"),
    invalid("DSP02", zero(2, reduce_bucket_size=1.5), says="reduce_bucket_size is 1.5"),
    invalid("DSP02", zero(2, overlap_comm="perhaps"), says="overlap_comm is perhaps; allowed: true or false or null"),
    invalid("DSP02", mounted(zero_optimization={"stage": 2, "contiguous_gradients": None}), says="contiguous_gradients is null"),
    # A part where a value stands, and the other way round.
    valid("DSP02", ds(zero_optimization=True)),
    valid("DSP02", ds(zero_optimization=False, bf16=half("bf16")["bf16"])),
    invalid("DSP02", ds(zero_optimization=2), says="zero_optimization is 2; allowed: a mapping or true or false"),
    invalid("DSP02", ds(fp16=True), says="fp16 is true; allowed: a mapping"),
    invalid("DSP02", mounted(fp16=None), says="fp16 is null; allowed: a mapping"),
    invalid("DSP02", zero(2, offload_optimizer=True), says="offload_optimizer is true; allowed: a mapping or null"),
    invalid("DSP02", zero(2, offload_optimizer="cpu"), says="offload_optimizer is cpu"),
    invalid("DSP02", ds(optimizer="AdamW"), says="optimizer is AdamW; allowed: a mapping"),
    invalid("DSP02", ds(scheduler="WarmupLR"), says="scheduler is WarmupLR"),
    # Ranges and words.
    valid("DSP02", offload(3, "offload_optimizer", ratio=0), edge=True),
    valid("DSP02", ds(**half("fp16", loss_scale="128", initial_scale_power="16"), gradient_clipping=0)),
    valid("DSP02", ds(gradient_allreduce_op="SUM", checkpoint={"tag_validation": "warn", "parallel_write": {"pipeline_stage": 1}})),
    valid("DSP02", ds(seq_parallel_communication_data_type="BF16", data_types={"grad_accum_dtype": "float32"})),
    valid("DSP02", ds(torch_autocast={"enabled": True, "dtype": "bfloat16", "lower_precision_safe_modules": []})),
    invalid("DSP02", offload(3, "offload_optimizer", ratio=1.5), says="ratio is 1.5; allowed: a number from 0 to 1"),
    invalid("DSP02", ds(**half("fp16", loss_scale=-1)), says="loss_scale is -1; allowed: a number of at least 0", edge=True),
    invalid("DSP02", mounted(fp16={"enabled": True, "loss_scale": math.nan}), says="loss_scale is nan"),
    invalid("DSP02", ds(fp16={"loss_scale": True}), says="loss_scale is true"),
    invalid("DSP02", ds(**half("fp16", initial_scale_power="big")), says="initial_scale_power is big"),
    invalid("DSP02", ds(gradient_clipping="0.5"), says="gradient_clipping is 0.5; allowed: a number, not in quotes"),
    invalid("DSP02", ds(seq_parallel_communication_data_type="float16"), says="allowed: fp16, fp32, bf16 or null"),
    invalid("DSP02", ds(gradient_allreduce_op="avg"), says="gradient_allreduce_op is avg; allowed: mean, sum"),
    invalid("DSP02", ds(tensor_parallel={"vocab_parallel_ce_backend": "LIGER"}), says="is LIGER; allowed: torch, liger", edge=True),
    invalid("DSP02", ds(checkpoint={"tag_validation": "maybe"}), says="tag_validation is maybe; allowed: Ignore, Warn, Fail"),
    invalid("DSP02", ds(data_types={"grad_accum_dtype": "fp8"}), says="grad_accum_dtype is fp8"),
    invalid("DSP02", schedule("OneCycle", cycle_first_step_size=0), says="size is 0; allowed: a number above 0", edge=True),
    invalid("DSP02", zero(3, zenflow={"topk_ratio": 1}), says="topk_ratio is 1; allowed: a number above 0 and below 1", edge=True),
    invalid("DSP02", schedule("LRRangeTest", lr_range_test_step_size="5"), says="a whole number of at least 1, not in quotes"),
    # The word of the Hugging Face Trainer, at any depth; a few fields know it.
    valid("DSP02", ds(pipeline={"stages": "auto"}, data_types={"keep_in_fp32_modules": "auto"}, expert_parallel={"top_k": "auto"})),
    valid("DSP02", zero(3, zenflow={"select_strategy": "auto", "update_interval": "auto"})),
    valid("DSP02", ds(autotuning={"tuner_type": "auto"})),
    # What Hugging Face's Trainer fills in is right where it reads the file, which the file does not tell.
    invalid("DSP02", ds(**FILLED), says="gradient_clipping is auto; allowed: a value: only the Hugging Face Trainer fills in auto; where"),
    invalid("DSP02", ds(**FILLED), says="its default for enabled; where Hugging Face's Trainer alone reads the file, an exemption"),
    invalid("DSP02", ds(gradient_clipping="auto", zero_optimization={"stage": "auto"}), says="fills in auto.\n", edge=True),
    invalid("DSP02", ds(optimizer={"type": "AdamW", "params": {"betas": [0.9, "auto"]}}), says="fills in auto.\n", edge=True),
    invalid("DSP02", ds(optimizer={"type": "AdamW", "params": {"betas": "auto"}}), says="fills in auto; where", edge=True),
    invalid("DSP02", ds(bf16={"enabled": "auto"}), says="bf16.enabled is auto; allowed: a value: raw DeepSpeed drops the word"),
    invalid("DSP02", ds(gradient_clipping="auto"), says="gradient_clipping is auto; allowed: a value: only the Hugging Face Trainer"),
    invalid("DSP02", ds(optimizer={"type": "AdamW", "params": {"lr": "auto"}}), says="optimizer.params.lr is auto"),
    invalid("DSP02", ds(optimizer={"type": "AdamW", "params": {"betas": [0.9, "auto"]}}), says="params.betas[1] is auto"),
    invalid("DSP02", schedule(warmup_num_steps="auto", total_num_steps="auto"), says="scheduler.params.warmup_num_steps is auto"),
    # Stages in other spellings.
    valid("DSP04", ds(zero_optimization=True)),
    valid("DSP04", zero("3", offload_param={"device": "cpu"})),
    valid("DSP04", offload(2, "offload_optimizer", ratio=1.5)),
    invalid("DSP04", mounted(zero_optimization={"stage": None}), says="zero_optimization.stage is null; allowed: 0, 1, 2 or 3"),
    invalid("DSP04", mounted(zero_optimization={"stage": 3, "offload_param": {"device": None}}), says="device is null; allowed: none, cpu"),
    # Parts with models of their own take no other key.
    valid("DSP05", zero(3, prefetch_bucket_size=1), edge=True),
    valid("DSP05", ds(optimizer={"type": "AdamW", "params": {"lr": 0.001}}, pipeline={"my_own": 1}, activation_checkpointing={"x": 1})),
    invalid("DSP05", zero(2, prefetch_bucket_size=1), says="prefetch_bucket_size is set; allowed: nothing under stage 2", edge=True),
    invalid("DSP05", zero(2, reduce_bucket_sise=1), says="a key of zero_optimization, such as reduce_bucket_size"),
    invalid(
        "DSP05", offload(2, "offload_optimizer", pin_memori=True), says="a key of zero_optimization.offload_optimizer, such as pin_memory"
    ),
    invalid("DSP05", offload(3, "offload_param", ratio=1), says="ratio is set, but no such key exists"),
    invalid("DSP05", ds(**half("fp16", los_scale=0)), says="a key of fp16, such as loss_scale"),
    invalid("DSP05", ds(**half("bf16", foo=1)), says="bf16.foo is set, but no such key exists; allowed: a key of bf16."),
    invalid(
        "DSP05",
        ds(optimizer={"type": "AdamW", "params": {"max_grad_norm": 1}}),
        says="max_grad_norm is set; allowed: nothing: DeepSpeed clips",
    ),
    # What a stage can't do.
    valid("DSP06", zero(1, compute_grad_norm=True)),
    valid("DSP06", ds(zero_optimization={"stage": 2, "compute_grad_norm": False}, gradient_clipping=0), edge=True),
    valid("DSP06", ds(zero_optimization={"stage": 2}, gradient_allreduce_op="sum"), edge=True),
    valid("DSP06", ds(zero_optimization={"stage": 3}, gradient_allreduce_op="mean")),
    valid(
        "DSP06",
        ds(zero_optimization={"stage": 1}, **half("bf16", bf16_master_weights_and_grads=True, bf16_optimizer_states=True)),
        edge=True,
    ),
    invalid(
        "DSP06", ds(zero_optimization={"stage": 3, "compute_grad_norm": False}, gradient_clipping=0), says="true under stage 3", edge=True
    ),
    invalid(
        "DSP06",
        ds(zero_optimization={"stage": 2, "compute_grad_norm": "off"}),
        says="gradient_clipping is unset; allowed: 0 with compute_grad",
    ),
    invalid(
        "DSP06",
        ds(zero_optimization={"stage": 2, "compute_grad_norm": False, "offload_optimizer": {"device": "cpu"}}, gradient_clipping=0),
        says="device is cpu; allowed: none with compute_grad_norm: false",
    ),
    invalid(
        "DSP06",
        ds(zero_optimization={"stage": 2, "compute_grad_norm": False, "zenflow": {}}, gradient_clipping=0),
        says="zenflow is set; allowed: nothing with compute_grad_norm: false",
    ),
    invalid(
        "DSP06", ds(zero_optimization={"stage": 3}, gradient_allreduce_op="Sum"), says="is Sum; allowed: mean with ZeRO stage 3", edge=True
    ),
    invalid("DSP06", ds(zero_optimization={"stage": 2, "zenflow": {}}, gradient_allreduce_op="sum"), says="mean with ZenFlow"),
    invalid("DSP06", ds(compile={"deepcompile": True}, gradient_allreduce_op="sum"), says="mean with DeepCompile"),
    invalid("DSP06", ds(**half("bf16", bf16_master_weights_and_grads=True)), says="is true; allowed: false without ZeRO", edge=True),
    invalid("DSP06", ds(fp16={"fp16_master_weights_and_grads": True}), says="fp16_master_weights_and_grads is true"),
    invalid(
        "DSP06",
        ds(zero_optimization={"stage": 2}, **half("bf16", bf16_optimizer_states=True)),
        says="bf16_optimizer_states is true; allowed: false without bf16_master_weights_and_grads",
    ),
)

CASES = (*_CASES, *FEATURES)
