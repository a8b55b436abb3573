"""DeepSpeed's batch sizes: the global one is the product of the others."""

from guardrails.deepspeed_fields import GLOBAL, MICRO, STEPS
from guardrails.program import Program
from guardrails.rule import Report, Resource
from guardrails.tokens import DEEPSPEED
from guardrails.world import TRAINERS, reads, world


def batch(program: Program, report: Report) -> None:
    """DSP01: the global batch is what each job makes of the rest."""
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
    numbers = {name: config.at(name) for name in (GLOBAL, MICRO, STEPS)}
    total, micro, steps = (numbers[name].integer() for name in (GLOBAL, MICRO, STEPS))
    if total is None or total < 1:
        return
    if micro and steps and replicas:
        if total != micro * steps * replicas:
            allowed = f"{micro * steps * replicas} = {micro} x {steps} x {replicas} (micro-batch x accumulation x data-parallel replicas)"
            report.refuse(config, numbers[GLOBAL], allowed=allowed)
    elif total % (each := (micro or 1) * (steps or 1) * (replicas or 1)):
        report.refuse(config, numbers[GLOBAL], allowed=f"a multiple of {each}, {_factors(micro, steps, replicas)}")


def _factors(micro: int | None, steps: int | None, replicas: int | None) -> str:
    named = (("micro-batch", micro), ("accumulation", steps), ("replicas", replicas))
    return " x ".join(f"{number} ({name})" for name, number in named if number)
