"""DeepSpeed configurations: batch identity, precision, ZeRO and keys that exist."""

import difflib
from typing import TypeGuard

from guardrails.deepspeed_fields import AUTO, autos, numeric, sections, trainer_fills, truth, whole
from guardrails.deepspeed_optimizer import parameters, values
from guardrails.document import DocumentError, read_hjson
from guardrails.facts import load
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.tokens import CONFIG_MAP, DEEPSPEED
from guardrails.world import TRAINERS, reads, world

_GLOBAL, _MICRO, _STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
_TYPES = frozenset({DEEPSPEED})
_FACTS = load("deepspeed")
_NEAR = 0.8
"""How alike a key and a known one are at least where the known one is meant."""
_POSITIVE = "a whole number of at least 1"
_OFFLOADS = (("offload_param", "cpu_offload_param", 3), ("offload_optimizer", "cpu_offload", 1))
"""A part, the key of old for it, and the least stage that offloads what it is about."""
_NEEDED = {"total_num_steps": "the run's optimizer steps: the rate has no horizon without"}


def _batch(program: Program, report: Report) -> None:
    for config in program.of(DEEPSPEED):
        with report.part():
            for replicas in _replicas(config, program, report):
                _identity(config, replicas, report)


def _replicas(config: Resource, program: Program, report: Report) -> list[int | None]:
    """Data-parallel replicas of each job that reads the configuration; None where no job does or a job's shape is not clear."""
    found: set[int] = set()
    for job in program.of(*sorted(TRAINERS)):
        with report.part():
            if reads(job, config, program):
                shape = world(job, config)
                if shape and shape.replicas:
                    found.add(shape.replicas)
    return [*sorted(found)] or [None]


def _identity(config: Resource, replicas: int | None, report: Report) -> None:
    numbers = {name: config.at(name) for name in (_GLOBAL, _MICRO, _STEPS)}
    total, micro, steps = (numbers[name].integer() for name in (_GLOBAL, _MICRO, _STEPS))
    if total is None or total < 1:
        return
    if micro and steps and replicas:
        if total != micro * steps * replicas:
            allowed = f"{micro * steps * replicas} = {micro} x {steps} x {replicas} (micro-batch x accumulation x data-parallel replicas)"
            report.refuse(config, numbers[_GLOBAL], allowed=allowed)
    elif total % (each := (micro or 1) * (steps or 1) * (replicas or 1)):
        report.refuse(config, numbers[_GLOBAL], allowed=f"a multiple of {each}, {_factors(micro, steps, replicas)}")


def _factors(micro: int | None, steps: int | None, replicas: int | None) -> str:
    named = (("micro-batch", micro), ("accumulation", steps), ("replicas", replicas))
    return " x ".join(f"{number} ({name})" for name, number in named if number)


def _sizes(config: Resource, report: Report) -> None:
    text = config.properties.raw
    if isinstance(text, str):
        report.refuse(config, config.properties, allowed="JSON or Hjson in which each key stands once", found=_fault(text))
        return
    with report.part():
        if not config.at(_GLOBAL).present and not config.at(_MICRO).present:
            report.refuse(config, config.at(_MICRO), allowed=f"a number, or one for {_GLOBAL}: DeepSpeed needs one of the two")
    for name in (_GLOBAL, _MICRO, _STEPS):
        with report.part():
            _positive(config, config.at(name), report)
    way_out = "; where Hugging Face's Trainer alone reads the file, an exemption" if trainer_fills(config.properties) else ""
    for keys, node in autos(config.properties):
        with report.part():
            if node.value == AUTO:
                report.refuse(config, node, allowed=f"{_instead_of_auto(keys)}{way_out}")
    with report.part():
        values(config, report)
    with report.part():
        steps = config.at("steps_per_print")
        if steps.present and steps.value != AUTO and (not isinstance(steps.value, int | float) or steps.value <= 0):
            report.refuse(config, steps, allowed="a number above 0, not in quotes: each step is divided by it")
    for keys, section in sections().items():
        with report.part():
            for name, node in config.at(*keys).entries():
                with report.part():
                    field = section.fields.get(name)
                    if field and node.value != AUTO and not field.takes(node.value):
                        report.refuse(config, node, allowed=str(field), found="null" if node.raw is None else None)


def _fault(text: str) -> str:
    """Why DeepSpeed can't read a file."""
    try:
        read_hjson(text)
    except DocumentError as error:
        return f"unreadable at line {error.line} ({error})"
    return "unreadable"


def _positive(config: Resource, node: Node, report: Report) -> None:
    if node.present and node.value != AUTO and (not _counts(node.value) or node.value < 1):
        report.refuse(config, node, allowed="a whole number of at least 1, not in quotes" if isinstance(node.value, str) else _POSITIVE)


def _instead_of_auto(keys: tuple[str, ...]) -> str:
    section = sections().get(keys[:-1])
    if section and section.closed:
        return f"a value: raw DeepSpeed drops the word and takes its default for {keys[-1]}"
    return "a value: only the Hugging Face Trainer fills in auto"


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
    bf16 = _bf16(config)
    if truth(config.at("fp16", "enabled").value) and truth(bf16.at("enabled").value):
        report.refuse(config, bf16.at("enabled"), allowed="false, or fp16.enabled: false; only one of the two can be on")


def _bf16(config: Resource) -> Node:
    return config.at("bf16") if config.at("bf16").present else config.at("bfloat16")


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


def _stage(config: Resource) -> int:
    zero = config.at("zero_optimization")
    return int(zero.value) if isinstance(zero.value, bool) else whole(zero.at("stage").value) or 0


def _given(node: Node, name: str) -> bool:
    """Whether a mapping has a key, be it for null."""
    return isinstance(node.value, dict) and name in node.value


def _zero(config: Resource, report: Report) -> None:
    zero = config.at("zero_optimization")
    stage = zero.at("stage")
    with report.part():
        number = whole(stage.value)
        if _given(zero, "stage") and (number is None or not 0 <= number <= 3):
            report.refuse(config, stage, allowed="0, 1, 2 or 3", found="null" if stage.raw is None else None)
            return
    for name, old, least in _OFFLOADS:
        with report.part():
            _offload(config, zero.at(name), name, least, _stage(config), report)
        with report.part():
            if _is_idle(config, old):
                report.refuse(config, zero.at(old), allowed=f"false {_idle_below(name, least, _stage(config))}")


def _offload(config: Resource, offload: Node, name: str, least: int, stage: int, report: Report) -> None:
    if not offload.present:
        return
    device, ratio = offload.at("device"), offload.at("ratio")
    if _given(offload, "device") and device.text() not in _FACTS["offloadDevices"]:
        report.refuse(config, device, allowed=", ".join(_FACTS["offloadDevices"]), found="null" if device.raw is None else None)
    elif device.text() == "nvme" and not offload.at("nvme_path").text():
        report.refuse(config, offload.at("nvme_path"), allowed="a folder on a local NVMe disk")
    if device.text() in ("cpu", "nvme") and stage < least:
        report.refuse(config, device, allowed=f"none {_idle_below(name, least, stage)}")
    share = numeric(ratio.value)
    if share is not None and share < 1 and stage < 3:
        report.refuse(config, ratio, allowed=f"1 under stage {stage}: a partial offload needs stage 3")


def _idle_below(name: str, least: int, stage: int) -> str:
    return f"under stage {stage}: {name} works from stage {least} on and is ignored below"


def _is_idle(config: Resource, name: str) -> bool:
    """Whether a key is one of old that asks for an offload which the stage does not do."""
    node = config.at("zero_optimization", name)
    return any(name == old and _stage(config) < least and truth(node.value) for _, old, least in _OFFLOADS)


def _keys(config: Resource, report: Report) -> None:
    for name, node in config.properties.entries():
        if name in _FACTS["removed"]:
            report.refuse(config, node, allowed="nothing: DeepSpeed has removed it", found="set")
        elif name not in _FACTS["topLevel"] and not _is_remark(name):
            near = difflib.get_close_matches(name, _FACTS["topLevel"])
            report.refuse(
                config, node, allowed=f"a key of DeepSpeed{f', such as {near[0]}' if near else ''}", found="set, but no such key exists"
            )
    with report.part():
        optimizer = config.at("optimizer", "type")
        if optimizer.present and optimizer.text().lower() not in _FACTS["optimizers"] and optimizer.text() not in _FACTS["torchOptimizers"]:
            report.refuse(
                config, optimizer, allowed=f"{', '.join(_FACTS['optimizers'])}, or torch's {', '.join(_FACTS['torchOptimizers'])}"
            )
    with report.part():
        kind = config.at("scheduler", "type")
        if kind.present and kind.text() not in {*_FACTS["schedules"], *_FACTS["torchSchedules"]}:
            report.refuse(config, kind, allowed=f"{', '.join(_FACTS['schedules'])}, or torch's {', '.join(_FACTS['torchSchedules'])}")
    with report.part():
        norm = config.at("optimizer", "params", "max_grad_norm")
        if norm.present:
            report.refuse(config, norm, allowed="nothing: DeepSpeed clips by gradient_clipping, beside optimizer", found="set")
    for check in (parameters, _open_keys, _zero_keys):
        with report.part():
            check(config, report)
    for keys, section in sections().items():
        if section.closed:
            with report.part():
                _section_keys(config, keys, report)


def _is_remark(name: str) -> bool:
    """Whether a key is one that people write comments under: DeepSpeed reads none of those."""
    return name.startswith(("_", "//")) or name == "comment"


def _section_keys(config: Resource, keys: tuple[str, ...], report: Report) -> None:
    """Keys that the model of a part of the configuration does not have, which stops every rank."""
    fields = sections()[keys].fields
    for name, node in config.at(*keys).entries():
        if name not in fields and name not in _FACTS["removedZero"]:
            near = difflib.get_close_matches(name, fields)
            allowed = f"a key of {'.'.join(keys)}{f', such as {near[0]}' if near else ''}"
            report.refuse(config, node, allowed=allowed, found="set, but no such key exists")


def _open_keys(config: Resource, report: Report) -> None:
    """Keys of sections of which DeepSpeed reads some and leaves the rest to others, where they are meant for one that it reads."""
    for section, known in _FACTS["openSections"].items():
        renamed = _FACTS["renamed"].get(section, {})
        for name, node in config.at(section).entries():
            if name in renamed:
                report.advise(config, node, allowed=f"{renamed[name]}: DeepSpeed no longer reads {name}", found="set")
            elif name not in known and (near := difflib.get_close_matches(name, known, n=1, cutoff=_NEAR)):
                report.refuse(config, node, allowed=f"a key of {section}, such as {near[0]}", found="set, and DeepSpeed does not read it")


def _zero_keys(config: Resource, report: Report) -> None:
    zero, stage = config.at("zero_optimization"), _stage(config)
    for name, node in zero.entries():
        with report.part():
            _zero_key(config, node, name, stage, report)
    elastic = zero.at("elastic_checkpoint")
    if stage == 3 and truth(elastic.value):
        report.refuse(config, elastic, allowed="false under stage 3, which can save no such checkpoint")


def _zero_key(config: Resource, node: Node, name: str, stage: int, report: Report) -> None:
    if name in _FACTS["removedZero"]:
        report.refuse(config, node, allowed="nothing: DeepSpeed has removed it", found="set")
    elif name in _FACTS["idleZero"]:
        report.refuse(config, node, allowed=f"{_FACTS['idleZero'][name]}: the key is deprecated and sets nothing", found="set")
    elif name in _FACTS["stage3Zero"] and stage < 3:
        report.refuse(config, node, allowed=f"nothing under stage {stage}: it only acts in stage 3", found="set")
    elif name in _FACTS["stage3Features"] and stage < 3 and _is_used(name, node):
        report.refuse(config, node, allowed=f"unset under stage {stage}: it only acts in stage 3")
    elif name in _FACTS["deprecatedZero"]:
        _deprecated(config, node, name, report)


def _is_used(name: str, node: Node) -> bool:
    """Whether a switch is on, or a group has several ranks."""
    return (whole(node.value) or 0) > 1 if name.endswith("_size") else truth(node.value) is True


def _deprecated(config: Resource, node: Node, name: str, report: Report) -> None:
    """A key that DeepSpeed takes for another one, unless both are there; what stands idle is DSP04's."""
    if _is_idle(config, name):
        return
    names = _FACTS["deprecatedZero"][name]
    zero = config.at("zero_optimization")
    # DeepSpeed's models leave out what says auto.
    beside = [each for each in names if _given(zero, each) and zero.at(each).value != AUTO]
    if beside and node.value != AUTO:
        report.refuse(config, node, allowed=f"{beside[0]} alone: DeepSpeed stops where both are set", found="set")
    else:
        report.advise(config, node, allowed=f"{names[0]}: the key is deprecated", found="set")


def _together(config: Resource, report: Report) -> None:
    stage = _stage(config)
    with report.part():
        stages = config.at("pipeline", "stages")
        if stage >= 2 and (stages.integer() or 0) > 1:
            report.refuse(config, config.at("zero_optimization", "stage"), allowed="0 or 1 with pipeline stages")
    for check in (_untested, _without_norm, _summed, _half_masters, _scaled_before, _contiguous):
        with report.part():
            check(config, stage, report)
    with report.part():
        if stage == 3 and config.at("expert_parallel", "enabled").value:
            _experts(config, report)


def _untested(config: Resource, stage: int, report: Report) -> None:
    optimizer = config.at("optimizer", "type").text()
    known = optimizer.lower() in _FACTS["optimizers"] or optimizer in _FACTS["torchOptimizers"]
    # DeepSpeed asks this key only whether it is something.
    if stage and known and optimizer.lower() not in _FACTS["zeroOptimizers"] and not config.at("zero_allow_untested_optimizer").value:
        allowed = f"true: DeepSpeed has tested ZeRO with {', '.join(_FACTS['zeroOptimizers'])}, not with {optimizer}"
        report.refuse(config, config.at("zero_allow_untested_optimizer"), allowed=allowed)


def _without_norm(config: Resource, stage: int, report: Report) -> None:
    zero = config.at("zero_optimization")
    norm, clipping, device = zero.at("compute_grad_norm"), config.at("gradient_clipping"), zero.at("offload_optimizer", "device")
    if truth(norm.value) is not False:
        return
    if stage not in (1, 2):
        report.refuse(config, norm, allowed=f"true under stage {stage}: only stages 1 and 2 can do without the norm")
        return
    if (numeric(clipping.value if clipping.present else _FACTS["defaultClipping"]) or 0) > 0:
        report.refuse(config, clipping, allowed=f"0 with compute_grad_norm: false; DeepSpeed's default is {_FACTS['defaultClipping']:g}")
    if device.present and device.text() != "none":
        report.refuse(config, device, allowed="none with compute_grad_norm: false")
    if zero.at("zenflow").present:
        report.refuse(config, zero.at("zenflow"), allowed="nothing with compute_grad_norm: false", found="set")


def _summed(config: Resource, stage: int, report: Report) -> None:
    operation = config.at("gradient_allreduce_op")
    if operation.text().lower() != "sum":
        return
    beside = (
        ("ZeRO stage 3", stage == 3),
        ("ZenFlow", config.at("zero_optimization", "zenflow").present),
        ("DeepCompile", truth(config.at("compile", "deepcompile").value)),
    )
    for feature, used in beside:
        if used:
            report.refuse(config, operation, allowed=f"mean with {feature}")


def _scaled_before(config: Resource, stage: int, report: Report) -> None:
    """Where reduce-scatter sums the gradients, DeepSpeed can scale them only afterwards."""
    scatter, operation = config.at("zero_optimization", "reduce_scatter"), config.at("gradient_allreduce_op").text().lower()
    if stage < 2 or truth(scatter.value) is False or (stage == 2 and operation == "sum"):
        return
    before, factor = config.at("prescale_gradients"), config.at("gradient_predivide_factor")
    if before.value:
        report.refuse(config, before, allowed=f"false under stage {stage}, or zero_optimization.reduce_scatter false")
    if factor.present and factor.value != 1:
        report.refuse(config, factor, allowed=f"1 under stage {stage}, or zero_optimization.reduce_scatter false")


def _contiguous(config: Resource, _: int, report: Report) -> None:
    section = config.at("activation_checkpointing")
    if not section.at("contiguous_memory_optimization").value:
        return
    because = "because contiguous_memory_optimization is on"
    with report.part():
        if not section.at("partition_activations").value:
            report.refuse(config, section.at("partition_activations"), allowed=f"true, {because}")
    with report.part():
        # Megatron's programs give it to deepspeed.checkpointing.configure.
        if not section.at("number_checkpoints").value:
            allowed = f"the number of checkpointed layers, {because}, unless the program gives it"
            report.advise(config, section.at("number_checkpoints"), allowed=allowed)


def _half_masters(config: Resource, stage: int, report: Report) -> None:
    masters = _bf16(config).at("bf16_master_weights_and_grads")
    for node in (config.at("fp16", "fp16_master_weights_and_grads"), masters, _bf16(config).at("bf16_optimizer_states")):
        with report.part():
            if truth(node.value) and stage == 0:
                report.refuse(config, node, allowed="false without ZeRO; stages 1 to 3 have master weights of their own")
    with report.part():
        states = _bf16(config).at("bf16_optimizer_states")
        if truth(states.value) and not truth(masters.value):
            report.refuse(config, states, allowed="false without bf16_master_weights_and_grads")


def _experts(config: Resource, report: Report) -> None:
    """What DeepSpeed does not divide experts beside in stage 3."""
    for place in (
        ("sequence_parallel_size",),
        ("zero_optimization", "zero_hpz_partition_size"),
        ("expert_parallel", "expert_tensor_parallel_size"),
    ):
        with report.part():
            size = config.at(*place)
            if (whole(size.value) or 1) > 1:
                report.refuse(config, size, allowed="1 with expert_parallel under stage 3")
    with report.part():
        quantized = config.at("zero_optimization", "zero_quantized_gradients")
        if truth(quantized.value):
            report.refuse(config, quantized, allowed="false with expert_parallel under stage 3")


def _schedule(config: Resource, report: Report) -> None:
    kind, params = config.at("scheduler", "type").text(), config.at("scheduler", "params")
    known = _FACTS["schedules"].get(kind)
    if known is None:
        return
    if not params.present:
        report.refuse(config, params, allowed=f"the parameters of {kind}, {{}} where the defaults will do")
    for name in known["needs"]:
        with report.part():
            if not params.at(name).present:
                report.refuse(config, params.at(name), allowed=_NEEDED.get(name, f"a value: {kind} has no default for it"))
    for name, node in params.entries():
        if name not in known["needs"] and name not in known["takes"]:
            report.refuse(config, node, allowed=f"a parameter of {kind}: {', '.join([*known['needs'], *known['takes']])}", found="set")
    with report.part():
        if "warmup_num_steps" in known["takes"]:
            _warmup(config, params, "total_num_steps" in known["needs"], report)
    with report.part():
        shape = params.at("warmup_type")
        if "warmup_type" in known["takes"] and shape.present and shape.text() != AUTO and shape.text() not in _FACTS["warmupTypes"]:
            report.refuse(config, shape, allowed=f"{' or '.join(_FACTS['warmupTypes'])}: DeepSpeed takes log for any other")
    for name in ("cos_min_ratio", "warmup_min_ratio"):
        with report.part():
            _ratio(config, params.at(name), report)


def _warmup(config: Resource, params: Node, ends: bool, report: Report) -> None:
    warmup, total = params.at("warmup_num_steps"), params.at("total_num_steps")
    for steps in (warmup, total) if ends else (warmup,):
        if steps.present and steps.text() != AUTO and (not _counts(steps.value) or steps.value < 1):
            report.refuse(config, steps, allowed="optimizer steps, a whole number of at least 1")
            return
    least, horizon = warmup.value if warmup.present else _FACTS["defaultWarmup"], total.value
    if ends and _counts(least) and _counts(horizon) and least >= horizon:
        default = "" if warmup.present else f"; DeepSpeed's default is {least}"
        report.refuse(config, warmup, allowed=f"fewer than total_num_steps = {horizon}, in optimizer steps{default}")


def _counts(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number as Python has it, which digits in a text are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _ratio(config: Resource, node: Node, report: Report) -> None:
    value = node.value
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1):
        report.refuse(config, node, allowed="a share of the peak rate, 0 to 1")


def _ds(**settings: object) -> Example:
    return Example(DEEPSPEED, {_MICRO: 1, **settings})


RULES = (
    StackRule(
        id="DSP01",
        name="deepspeed-require-batch-identity",
        title="The global batch is micro-batch x accumulation x replicas",
        types=_TYPES | TRAINERS | {CONFIG_MAP},
        check=_batch,
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
        check=_sizes,
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
        check=_zero,
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
        check=_keys,
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
        check=_together,
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
        check=_schedule,
        why="DeepSpeed stops at initialisation on all ranks, or the rate never reaches its peak or rises again past the horizon.",
        fix="count warm-up and total in optimizer steps (not micro-steps), warm-up below the total.",
        source="DeepSpeed 0.19.8: lr_schedules.py; field guide section on schedules",
        valid=(_ds(scheduler={"type": "WarmupDecayLR", "params": {"warmup_num_steps": 1000, "total_num_steps": 100000}}),),
        invalid=(_ds(scheduler={"type": "WarmupDecayLR", "params": {"warmup_num_steps": 1000, "total_num_steps": 500}}),),
    ),
)
