"""DeepSpeed's keys: those that it reads."""

import difflib
import re

from guardrails.deepspeed_fields import sections
from guardrails.deepspeed_optimizer import parameters
from guardrails.deepspeed_zero import zero_keys
from guardrails.facts import load
from guardrails.rule import Report, Resource

_FACTS = load("deepspeed")
_OF_THE_PROGRAM = re.compile(r"resume|interval|every|keep|max_", re.IGNORECASE)
_NEAR = 0.8
"""How alike a key and a known one are at least where the known one is meant."""


def known_keys(config: Resource, report: Report) -> None:
    """DSP05: each key, optimizer and schedule is one that DeepSpeed has."""
    _top_level(config, report)
    for check in (_optimizer, _scheduler, _clipping, parameters, _open_keys, zero_keys):
        with report.part():
            check(config, report)
    for keys, section in sections().items():
        if section.closed:
            with report.part():
                _section_keys(config, keys, report)


def _top_level(config: Resource, report: Report) -> None:
    for name, node in config.properties.entries():
        if name in _FACTS["removed"]:
            report.refuse(config, node, allowed="nothing: DeepSpeed has removed it", found="set")
        elif name not in _FACTS["topLevel"] and not _is_remark(name):
            near = difflib.get_close_matches(name, _FACTS["topLevel"])
            allowed = f"a key of DeepSpeed{f', such as {near[0]}' if near else ''}"
            report.refuse(config, node, allowed=allowed, found="set, but no such key exists")


def _is_remark(name: str) -> bool:
    """Whether a key is one that people write comments under: DeepSpeed reads none of those."""
    return name.startswith(("_", "//")) or name == "comment"


def _optimizer(config: Resource, report: Report) -> None:
    kind, own, of_torch = config.at("optimizer", "type"), _FACTS["optimizers"], _FACTS["torchOptimizers"]
    if kind.present and kind.text().lower() not in own and kind.text() not in of_torch:
        report.refuse(config, kind, allowed=f"{', '.join(own)}, or torch's {', '.join(of_torch)}")


def _scheduler(config: Resource, report: Report) -> None:
    kind, own, of_torch = config.at("scheduler", "type"), _FACTS["schedules"], _FACTS["torchSchedules"]
    if kind.present and kind.text() not in {*own, *of_torch}:
        report.refuse(config, kind, allowed=f"{', '.join(own)}, or torch's {', '.join(of_torch)}")


def _clipping(config: Resource, report: Report) -> None:
    norm = config.at("optimizer", "params", "max_grad_norm")
    if norm.present:
        report.refuse(config, norm, allowed="nothing: DeepSpeed clips by gradient_clipping, beside optimizer", found="set")


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
            elif name not in known and not _is_remark(name) and (near := difflib.get_close_matches(name, known, n=1, cutoff=_NEAR)):
                report.refuse(config, node, allowed=f"a key of {section}, such as {near[0]}", found="set, and DeepSpeed does not read it")
            elif section == "checkpoint" and name not in known and _OF_THE_PROGRAM.search(name):
                allowed = "nothing: DeepSpeed saves, keeps and resumes where the program calls it"
                report.advise(config, node, allowed=allowed, found="set, and DeepSpeed does not read it")
