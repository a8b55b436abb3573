"""ZeRO in DeepSpeed: stages and what they offload, and keys that act."""

from guardrails.deepspeed_fields import AUTO, given, numeric, stage_of, truth, whole
from guardrails.facts import load
from guardrails.node import Node
from guardrails.rule import Report, Resource

_FACTS = load("deepspeed")
_OFFLOADS = (("offload_param", "cpu_offload_param", 3), ("offload_optimizer", "cpu_offload", 1))
"""A part, the key of old for it, and the least stage that offloads what it is about."""


def offloads(config: Resource, report: Report) -> None:
    """DSP04: what is offloaded, the stage can offload."""
    zero = config.at("zero_optimization")
    stage = zero.at("stage")
    with report.part():
        number = whole(stage.value)
        if given(zero, "stage") and (number is None or not 0 <= number <= 3):
            report.refuse(config, stage, allowed="0, 1, 2 or 3", found="null" if stage.raw is None else None)
            return
    for name, old, least in _OFFLOADS:
        with report.part():
            _offload(config, zero.at(name), name, least, stage_of(config), report)
        with report.part():
            if _is_idle(config, old):
                report.refuse(config, zero.at(old), allowed=f"false {_idle_below(name, least, stage_of(config))}")


def _offload(config: Resource, offload: Node, name: str, least: int, stage: int, report: Report) -> None:
    if not offload.present:
        return
    device, ratio = offload.at("device"), offload.at("ratio")
    if given(offload, "device") and device.text() not in _FACTS["offloadDevices"]:
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
    return any(name == old and stage_of(config) < least and truth(node.value) for _, old, least in _OFFLOADS)


def zero_keys(config: Resource, report: Report) -> None:
    """DSP05: each key of ZeRO acts in the stage, and is no key of old."""
    zero, stage = config.at("zero_optimization"), stage_of(config)
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
    beside = [each for each in names if given(zero, each) and zero.at(each).value != AUTO]
    if beside and node.value != AUTO:
        report.refuse(config, node, allowed=f"{beside[0]} alone: DeepSpeed stops where both are set", found="set")
    else:
        report.advise(config, node, allowed=f"{names[0]}: the key is deprecated", found="set")
