"""The examples of the documentation are judged as it says, and docs/policies.md is what the rules say."""

import importlib
import importlib.util
import pkgutil
from types import ModuleType

import pytest

import guardrails
from guardrails import RULES, Example, Rule, StackRule
from guardrails.reference import reference, section
from local.paths import REPOSITORY
from tests.unit.policy.analyzer import Diagnostic, Thing, analyze, not_evaluated, violations

pytestmark = pytest.mark.policy
PAGE = REPOSITORY / "docs/policies.md"

MODULES = [name for _, name, _ in pkgutil.iter_modules(guardrails.__path__) if name != "__main__"]
DOMAINS = [name for name in MODULES if hasattr(importlib.import_module(f"guardrails.{name}"), "RULES")]


def made_anew(name: str) -> ModuleType:
    """The module once more, beside the one that everything else uses: what makes its rules runs while a test looks."""
    spec = importlib.util.find_spec(f"guardrails.{name}")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judged(rule: Rule | StackRule, examples: tuple[Example, ...]) -> list[Diagnostic]:
    things = [Thing(type=each.type, name=each.name, properties=each.properties, sources=each.sources) for each in examples]
    return analyze(*things, rules=[rule])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_examples_are_judged_as_the_page_says(rule: Rule | StackRule) -> None:
    assert rule.valid, "give the rule an example that passes"
    assert rule.invalid, "give the rule an example that is refused"
    said = judged(rule, tuple(rule.valid))
    assert violations(said, rule.id) == []
    assert not_evaluated(said, rule.id) == []
    assert violations(judged(rule, tuple(rule.invalid)), rule.id)


def test_the_page_is_what_the_rules_say() -> None:
    assert PAGE.read_text() == reference(), "run `make policies`"


def test_the_page_shows_every_rule_with_its_texts() -> None:
    page = PAGE.read_text()
    for rule in RULES:
        assert f"### {rule.id}\n" in page
        for text in (rule.title, rule.why, rule.fix, rule.source, rule.policy_name):
            assert text in page


@pytest.mark.parametrize("name", DOMAINS)
def test_the_page_is_what_each_module_makes(name: str) -> None:
    page = PAGE.read_text()
    for rule in made_anew(name).RULES:
        assert "\n".join(section(rule)) in page
        assert violations(judged(rule, tuple(rule.valid)), rule.id) == []
        assert violations(judged(rule, tuple(rule.invalid)), rule.id)
