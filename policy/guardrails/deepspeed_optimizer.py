"""The optimizer that DeepSpeed makes of a configuration: parameters that its constructor takes."""

import difflib
from collections.abc import Sequence

from guardrails.deepspeed_fields import AUTO, truth
from guardrails.facts import load
from guardrails.node import Node
from guardrails.rule import Report, Resource

_TORCH = "torch_adam"
_ADAMS = ("adam", "adamw")
_OWN_LOOP = ("adam", "adamw", "lamb", "lion")
"""Kernels that first read the rate at the first step, when a schedule has put another in its place."""


def parameters(config: Resource, report: Report) -> None:
    """DSP05: each parameter is one of the constructor's, which stops every rank else."""
    given, known = config.at("optimizer", "params"), _known(config)
    for name, node in given.entries() if known else ():
        if name not in known and name != "max_grad_norm":
            near = difflib.get_close_matches(name, known)
            allowed = f"a parameter of {config.at('optimizer', 'type').text()}{f', such as {near[0]}' if near else ''}: {', '.join(known)}"
            report.refuse(config, node, allowed=allowed, found="set, but it has none of that name")


def values(config: Resource, report: Report) -> None:
    """DSP02: rates are numbers, betas a pair of them, and no kernel does what it can't."""
    given = config.at("optimizer", "params")
    for check in (_rate, _betas, _variant):
        with report.part():
            check(config, given, report)


def _known(config: Resource) -> Sequence[str]:
    """What the constructor takes; nothing where that is not known."""
    optimizers, name = load("deepspeed")["optimizerParameters"], config.at("optimizer", "type").text().lower()
    if name in _ADAMS:
        made = "torch" if _is_of_torch(config) else "cpu" if _is_offloaded(config) else "fused"
        return [*optimizers["own"], *optimizers[f"adam on {made}"]]
    return optimizers.get(f"{name} on cpu", ()) if _is_offloaded(config) and name != "lamb" else optimizers.get(name, ())


def _is_of_torch(config: Resource) -> bool:
    return bool(config.at("optimizer", "params", _TORCH).value)


def _is_offloaded(config: Resource) -> bool:
    zero = config.at("zero_optimization")
    return zero.at("offload_optimizer", "device").text() in ("cpu", "nvme") or truth(zero.at("cpu_offload").value) is True


def _rate(config: Resource, given: Node, report: Report) -> None:
    rate = given.at("lr")
    if isinstance(rate.value, str) and rate.value != AUTO and not _is_replaced(config):
        report.refuse(config, rate, allowed="a number, not in quotes")


def _is_replaced(config: Resource) -> bool:
    """Whether a schedule puts a number for the rate before anything reads it."""
    kernel = config.at("optimizer", "type").text().lower() in _OWN_LOOP and not _is_of_torch(config) and not _is_offloaded(config)
    return kernel and config.at("scheduler", "type").present


def _betas(config: Resource, given: Node, report: Report) -> None:
    betas = given.at("betas")
    if not betas.present or betas.value == AUTO:
        return
    members = [each.value for each in betas.elements()]
    if AUTO in members:
        return  # That has been told.
    if len(members) != 2 or not all(isinstance(each, int | float) and not isinstance(each, bool) and 0 <= each < 1 for each in members):
        report.refuse(config, betas, allowed="a list of two numbers from 0 on and below 1, such as [0.9, 0.999]")


def _variant(config: Resource, given: Node, report: Report) -> None:
    name, amsgrad = config.at("optimizer", "type").text().lower(), given.at("amsgrad")
    fused = name == "lamb" or (name in _ADAMS and not _is_of_torch(config) and not _is_offloaded(config))
    if fused and amsgrad.value:
        report.refuse(config, amsgrad, allowed="false: the fused kernel does not do AMSGrad")
