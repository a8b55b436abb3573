"""What bash makes of rayStartParams: KubeRay writes each into its line as it stands."""

import json
import shlex
from typing import Any

from guardrails.node import Node
from guardrails.ray import groups, ray_container
from guardrails.rule import Report, Resource
from guardrails.template import NEURON_CORE, count

_OVERWRITTEN = "ray.io/overwrite-container-cmd"
_RESOURCES = "resources"
_JSON = (_RESOURCES, "system-config")
# KubeRay adds these to the resources that are given, and quotes the result itself.
_ADDED = {NEURON_CORE: "neuron_cores", "google.com/tpu": "TPU"}
_EXAMPLE = '{"disk": 1}'


def start_params(resource: Resource, report: Report) -> None:
    """RAY05: each parameter of each group is one word, and JSON where Ray reads that."""
    for group in groups(resource):
        with report.part():
            if _is_own_command(resource, group):
                continue
            for name, value in group.at("rayStartParams").entries():
                with report.part():
                    if isinstance(value.value, str) and not _is_rewritten(group, name, value.value):
                        _word(resource, name, value, report)


def _is_own_command(resource: Resource, group: Node) -> bool:
    """Whether the pods keep a command of their own, be it one that calls ray start."""
    places = (resource.at("metadata"), group.at("template", "metadata"))
    if any(place.at("annotations", _OVERWRITTEN).text().lower() == "true" for place in places):
        return True
    words = [word.text() for key in ("command", "args") for word in ray_container(group).at(key).elements()]
    return "ray start" in " ".join(words)


def _is_rewritten(group: Node, name: str, text: str) -> bool:
    given = _read(text.strip("'\"` "))
    if name != _RESOURCES or not _counts(given) or any(each in given for each in _ADDED.values()):
        return False
    limits = ray_container(group).at("resources", "limits")
    return any(count(limits.at(each)) > 0 for each in _ADDED)


def _word(resource: Resource, name: str, value: Node, report: Report) -> None:
    text = value.text()
    # What stands for another value only the shell knows.
    if "$" in text or "`" in text:
        return
    word = _one_word(text)
    if word is None and "password" in name:
        report.refuse(resource, value, allowed="one word of bash", found="several (not shown)")
    elif word is None:
        report.refuse(resource, value, allowed=f"one word of bash, such as {_quoted(name, text)} with quotes of its own")
    elif name == _RESOURCES and not _counts(_read(word)):
        report.refuse(
            resource, value, allowed=f"JSON, a number for each name, in quotes that bash takes off, such as {_quoted(name, text)}"
        )
    elif name in _JSON and not isinstance(_read(word), dict):
        report.refuse(resource, value, allowed=f"JSON in quotes that bash takes off, such as {_quoted(name, text)}")


def _one_word(text: str) -> str | None:
    """What bash has behind `--name=`; None where it ends there, or other words follow."""
    reader = shlex.shlex(f"={text}", posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        words = list(reader)
    except ValueError:
        return None
    return words[0].removeprefix("=") if len(words) == 1 else None


def _quoted(name: str, text: str) -> str:
    return shlex.quote(text if name not in _JSON or isinstance(_read(text), dict) else _EXAMPLE)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _counts(parsed: Any) -> bool:
    return isinstance(parsed, dict) and all(isinstance(each, int | float) and not isinstance(each, bool) for each in parsed.values())
