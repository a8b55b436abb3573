"""DeepSpeed's values: of the type and in the range that it takes."""

from guardrails.deepspeed_fields import AUTO, GLOBAL, MICRO, STEPS, Section, autos, counts, sections, trainer_fills
from guardrails.deepspeed_optimizer import values
from guardrails.document import DocumentError, read_hjson
from guardrails.node import Node
from guardrails.rule import Report, Resource

_POSITIVE = "a whole number of at least 1"


def sizes(config: Resource, report: Report) -> None:
    """DSP02: what is there is of a type and in a range that DeepSpeed takes."""
    text = config.properties.raw
    if isinstance(text, str):
        report.refuse(config, config.properties, allowed="JSON or Hjson in which each key stands once", found=_fault(text))
        return
    for check in (_batch_sizes, _autos, values, _print_interval):
        with report.part():
            check(config, report)
    for keys, section in sections().items():
        with report.part():
            _fields(config, keys, section, report)


def _fault(text: str) -> str:
    """Why DeepSpeed can't read a file."""
    try:
        read_hjson(text)
    except DocumentError as error:
        return f"unreadable at line {error.line} ({error})"
    return "unreadable"


def _batch_sizes(config: Resource, report: Report) -> None:
    with report.part():
        if not config.at(GLOBAL).present and not config.at(MICRO).present:
            report.refuse(config, config.at(MICRO), allowed=f"a number, or one for {GLOBAL}: DeepSpeed needs one of the two")
    for name in (GLOBAL, MICRO, STEPS):
        with report.part():
            _positive(config, config.at(name), report)


def _positive(config: Resource, node: Node, report: Report) -> None:
    if node.present and node.value != AUTO and (not counts(node.value) or node.value < 1):
        report.refuse(config, node, allowed="a whole number of at least 1, not in quotes" if isinstance(node.value, str) else _POSITIVE)


def _autos(config: Resource, report: Report) -> None:
    way_out = "; where Hugging Face's Trainer alone reads the file, an exemption" if trainer_fills(config.properties) else ""
    for keys, node in autos(config.properties):
        with report.part():
            if node.value == AUTO:
                report.refuse(config, node, allowed=f"{_instead_of_auto(keys)}{way_out}")


def _instead_of_auto(keys: tuple[str, ...]) -> str:
    section = sections().get(keys[:-1])
    if section and section.closed:
        return f"a value: raw DeepSpeed drops the word and takes its default for {keys[-1]}"
    return "a value: only the Hugging Face Trainer fills in auto"


def _print_interval(config: Resource, report: Report) -> None:
    steps = config.at("steps_per_print")
    if steps.present and steps.value != AUTO and (not isinstance(steps.value, int | float) or steps.value <= 0):
        report.refuse(config, steps, allowed="a number above 0, not in quotes: each step is divided by it")


def _fields(config: Resource, keys: tuple[str, ...], section: Section, report: Report) -> None:
    for name, node in config.at(*keys).entries():
        with report.part():
            field = section.fields.get(name)
            if field and node.value != AUTO and not field.takes(node.value):
                report.refuse(config, node, allowed=str(field), found="null" if node.raw is None else None)
