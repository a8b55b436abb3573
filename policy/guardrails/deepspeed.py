"""DeepSpeed configurations: batch identity, precision, ZeRO and keys that exist."""

from guardrails.deepspeed_batch import batch
from guardrails.deepspeed_features import together
from guardrails.deepspeed_fields import MICRO, bf16_of, numeric, truth, whole
from guardrails.deepspeed_keys import known_keys
from guardrails.deepspeed_schedule import schedule
from guardrails.deepspeed_values import sizes
from guardrails.deepspeed_zero import offloads
from guardrails.facts import load
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.tokens import CONFIG_MAP, DEEPSPEED
from guardrails.world import TRAINERS

_TYPES = frozenset({DEEPSPEED})
_FACTS = load("deepspeed")


def _precision(config: Resource, report: Report) -> None:
    with report.part():
        _one_half(config, report)
    with report.part():
        kind = config.at("communication_data_type")
        if kind.present and kind.text().lower() not in _FACTS["communicationTypes"]:
            report.refuse(config, kind, allowed=", ".join(_FACTS["communicationTypes"]))
    with report.part():
        _scaler(config, report)


def _one_half(config: Resource, report: Report) -> None:
    bf16 = bf16_of(config)
    if truth(config.at("fp16", "enabled").value) and truth(bf16.at("enabled").value):
        report.refuse(config, bf16.at("enabled"), allowed="false, or fp16.enabled: false; only one of the two can be on")


def _scaler(config: Resource, report: Report) -> None:
    fp16 = config.at("fp16")
    if not truth(fp16.at("enabled").value):
        return
    scale = fp16.at("loss_scale")
    if numeric(scale.value) == 1:
        report.refuse(config, scale, allowed="0 (dynamic) or a power of two above 1: small gradients vanish in fp16")
    for name in ("loss_scale_window", "min_loss_scale"):
        with report.part():
            node = fp16.at(name)
            if not numeric(scale.value) and (number := whole(node.value)) is not None and number < 1:
                report.refuse(config, node, allowed="at least 1 while the loss scale is dynamic")


def _ds(**settings: object) -> Example:
    return Example(DEEPSPEED, {MICRO: 1, **settings})


RULES = (
    StackRule(
        id="DSP01",
        name="deepspeed-require-batch-identity",
        title="The global batch is micro-batch x accumulation x replicas",
        types=_TYPES | TRAINERS | {CONFIG_MAP},
        check=batch,
        why="every rank stops with an assertion, after all nodes were started and paid for.",
        fix="set train_batch_size to the product, with world size / (tensor x pipeline x sequence) replicas, or leave it out.",
        source="DeepSpeed 0.19.8: runtime/config.py; field guide section on batch arithmetic",
        valid=(_ds(train_batch_size=64, gradient_accumulation_steps=32),),
        invalid=(_ds(train_batch_size=65, gradient_accumulation_steps=32),),
    ),
    Rule(
        id="DSP02",
        name="deepspeed-require-numbers",
        title="Values are of the type and in the range that DeepSpeed takes",
        types=_TYPES,
        check=sizes,
        why="all ranks stop at start-up, often with a TypeError that names no field, or the word auto is dropped for a default in silence.",
        fix="write numbers, true and false without quotes; auto is only for Hugging Face's Trainer and Accelerate, which replace it: "
        "exempt a file that they alone read, as docs/policies.md says.",
        source="DeepSpeed 0.19.8, measured: runtime/config.py and its models; pydantic 2.14; field guide section on DeepSpeed",
        valid=(_ds(zero_optimization={"stage": 2, "reduce_bucket_size": 500000000}),),
        invalid=(_ds(zero_optimization={"stage": 2, "reduce_bucket_size": "auto"}),),
    ),
    Rule(
        id="DSP03",
        name="deepspeed-require-one-precision",
        title="One half precision, with a scaler where it needs one",
        types=_TYPES,
        check=_precision,
        why="ranks stop at start-up, or fp16 gradients vanish without scaling.",
        fix="use bf16 alone on A100 and later; fp16 with loss_scale 0 elsewhere.",
        source="DeepSpeed 0.19.8: precision configuration",
        valid=(_ds(bf16={"enabled": True}),),
        invalid=(_ds(bf16={"enabled": True}, fp16={"enabled": True}),),
    ),
    Rule(
        id="DSP04",
        name="deepspeed-require-effective-offload",
        title="ZeRO's stage and its offloads fit together",
        types=_TYPES,
        check=offloads,
        why="DeepSpeed accepts several of these in silence: nothing is offloaded and the run is out of memory at its first step.",
        fix="offload parameters only with stage 3, optimizer state from stage 1 on, and give NVMe a path.",
        source="DeepSpeed 0.19.8, measured: zero/config.py, offload_config.py",
        valid=(_ds(zero_optimization={"stage": 3, "offload_param": {"device": "cpu"}}),),
        invalid=(_ds(zero_optimization={"stage": 2, "offload_param": {"device": "cpu"}}),),
    ),
    Rule(
        id="DSP05",
        name="deepspeed-disallow-unknown-keys",
        title="Every key is one that DeepSpeed reads",
        types=_TYPES,
        check=known_keys,
        why="a misspelt key is ignored (clipping is off), one of stage 3 does nothing; where DeepSpeed looks, all ranks stop at start-up.",
        fix="correct the key, or remove it.",
        source="DeepSpeed 0.19.8: runtime/config.py and its pydantic models; torch 2.15: optim",
        valid=(_ds(gradient_clipping=1.0),),
        invalid=(_ds(gradient_cliping=1.0),),
    ),
    Rule(
        id="DSP06",
        name="deepspeed-disallow-incompatible-features",
        title="ZeRO stages and other features are used only with what works beside them",
        types=_TYPES,
        check=together,
        why="DeepSpeed stops at initialisation on all ranks.",
        fix="use stage 0 or 1 with pipelines, and say where the optimizer is one that ZeRO is not tested with.",
        source="DeepSpeed 0.19.8: pipe/engine.py, runtime/config.py, runtime/engine.py (checks of optimizer and experts), zero/utils.py, "
        "zero/stage_1_and_2.py, zero/stage3.py, activation_checkpointing/checkpointing.py",
        valid=(_ds(zero_optimization={"stage": 1}, pipeline={"stages": 4}),),
        invalid=(_ds(zero_optimization={"stage": 2}, pipeline={"stages": 4}),),
    ),
    Rule(
        id="DSP07",
        name="deepspeed-require-bounded-schedule",
        title="A schedule has its parameters, and warm-up ends before it does",
        types=_TYPES,
        check=schedule,
        why="DeepSpeed stops at initialisation on all ranks, or the rate never reaches its peak or rises again past the horizon.",
        fix="count warm-up and total in optimizer steps (not micro-steps), warm-up below the total.",
        source="DeepSpeed 0.19.8: lr_schedules.py; field guide section on schedules",
        valid=(_ds(scheduler={"type": "WarmupDecayLR", "params": {"warmup_num_steps": 1000, "total_num_steps": 100000}}),),
        invalid=(_ds(scheduler={"type": "WarmupDecayLR", "params": {"warmup_num_steps": 1000, "total_num_steps": 500}}),),
    ),
)
