"""DeepSpeed's schedules of the learning rate: their parameters, and the warm-up."""

from guardrails.deepspeed_fields import AUTO, counts
from guardrails.facts import load
from guardrails.node import Node
from guardrails.rule import Report, Resource

_FACTS = load("deepspeed")
_NEEDED = {"total_num_steps": "the run's optimizer steps: the rate has no horizon without"}


def schedule(config: Resource, report: Report) -> None:
    """DSP07: a schedule has its parameters, and its warm-up ends before it does."""
    kind, params = config.at("scheduler", "type").text(), config.at("scheduler", "params")
    known, of_torch = _FACTS["schedules"].get(kind), _FACTS["torchSchedules"].get(kind)
    if known is None and of_torch is None:
        return
    if not params.present:
        report.refuse(config, params, allowed=f"the parameters of {kind}, {{}} where the defaults will do")
    for name in of_torch if known is None else known["needs"]:
        with report.part():
            if not params.at(name).present:
                report.refuse(config, params.at(name), allowed=_NEEDED.get(name, f"a value: {kind} has no default for it"))
    if kind in _FACTS["risingSchedules"]:
        allowed = (
            "WarmupCosineLR or another that ends with the run: this one raises the rate again, the last time maybe just before the end"
        )
        report.advise(config, config.at("scheduler", "type"), allowed=allowed)
    if known is not None:
        _of_deepspeed(config, kind, params, report)


def _of_deepspeed(config: Resource, kind: str, params: Node, report: Report) -> None:
    known = _FACTS["schedules"][kind]
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
        if steps.present and steps.text() != AUTO and (not counts(steps.value) or steps.value < 1):
            report.refuse(config, steps, allowed="optimizer steps, a whole number of at least 1")
            return
    least, horizon = warmup.value if warmup.present else _FACTS["defaultWarmup"], total.value
    if ends and counts(least) and counts(horizon) and least >= horizon:
        default = "" if warmup.present else f"; DeepSpeed's default is {least}"
        report.refuse(config, warmup, allowed=f"fewer than total_num_steps = {horizon}, in optimizer steps{default}")


def _ratio(config: Resource, node: Node, report: Report) -> None:
    value = node.value
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1):
        report.refuse(config, node, allowed="a share of the peak rate, 0 to 1")
