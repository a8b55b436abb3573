"""What every refused case says, word for word: `python -m tests.unit.policy.messages` writes it anew, to be read as a difference.

One block a rule, and in it one block a case: the first line of each message and its level; the other two are the rule's own texts, which
docs/policies.md holds.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

from guardrails import RULES, clock
from tests.unit.policy.analyzer import Diagnostic, analyze
from tests.unit.policy.case import NOW, Case

FILE = Path(__file__).with_suffix(".txt")
_RULE = "== "
_BETWEEN = "\n\n"


def first_lines(said: Sequence[Diagnostic]) -> str:
    """The first line of each message, in the order of the pack, and whether it is only advice."""
    return "\n".join(f"{'' if each.mandatory else '(advice) '}{each.message.splitlines()[0]}" for each in said)


def recorded(case: Case, cases: Sequence[Case]) -> str:
    """What the file has for `case`, one of `cases`."""
    blocks = _blocks().get(case.rule, ())
    place = next(index for index, each in enumerate(_refused(case.rule, cases)) if each is case)
    return blocks[place] if place < len(blocks) else "nothing"


def write(cases: Sequence[Case]) -> None:
    """Judge every refused case and write what is said."""
    with clock.stopped_at(NOW):
        blocks = [
            _RULE
            + rule.id
            + _BETWEEN
            + _BETWEEN.join(first_lines(analyze(*case.things, rules=[rule])) for case in _refused(rule.id, cases))
            for rule in RULES
        ]
    FILE.write_text(_BETWEEN.join(blocks) + "\n")


def _refused(rule: str, cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if case.rule == rule and case.refused]


@functools.cache
def _blocks() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    rule = ""
    for block in FILE.read_text().rstrip("\n").split(_BETWEEN):
        if block.startswith(_RULE):
            rule = block.removeprefix(_RULE)
            found[rule] = []
        else:
            found[rule].append(block)
    return found


if __name__ == "__main__":
    from tests.unit.policy.cases import CASES

    write(CASES)
