"""The pack at work: which rules see which resource, at which level, and what could not be decided.

Free of Pulumi, so that the same judgement serves the engine (`guardrails.service`) and plain files (`guardrails.check`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from guardrails.configuration import Configuration, Level
from guardrails.node import printable
from guardrails.program import Program
from guardrails.rule import Finding, Report, Resource, Rule, StackRule
from guardrails.view import views

AnyRule = Rule | StackRule
PACK_RULE = "guardrails"
"""Name under which the pack speaks of itself: its exemptions, and faults of its own."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One thing to tell: a violation, advice, or that a rule could not decide."""

    rule: AnyRule | None
    """None: the pack speaks of itself."""
    level: Level
    message: str
    finding: Finding | None = None
    """None where there is no violation: something was not evaluated, or an exemption is of no use."""

    @property
    def policy(self) -> str:
        """The policy's name as the engine prints it."""
        return self.rule.policy_name if self.rule else PACK_RULE

    @property
    def urn(self) -> str:
        """URN of the resource, empty where the verdict is on the whole program."""
        return self.finding.resource.urn if self.finding else ""


class Judge:
    """Judges one program: each resource once as it comes, then all of them together. Make a new one for each run."""

    def __init__(self, rules: Sequence[AnyRule], configuration: Configuration | None = None) -> None:
        self.configuration = configuration or Configuration()
        self._by_type: dict[str, list[Rule]] = defaultdict(list)
        self._stack_rules: list[StackRule] = []
        for rule in rules:
            if self.level(rule) is Level.DISABLED:
                continue
            if isinstance(rule, Rule):
                for kind in rule.types:
                    self._by_type[kind].append(rule)
            else:
                self._stack_rules.append(rule)
        self._undecided: dict[AnyRule, list[str]] = {}
        self._faulty: set[str] = set()
        self._told: set[tuple[str, str, str, str]] = set()

    def level(self, rule: AnyRule) -> Level:
        """The level at which `rule` is told."""
        return self.configuration.level(rule)

    def resource(self, resource: Resource) -> list[Verdict]:
        """What the rules over one resource say of it and of the objects it carries."""
        return self.parts(views(resource))

    def parts(self, parts: Iterable[Resource]) -> list[Verdict]:
        """As `resource`, for a resource whose views are at hand."""
        verdicts: list[Verdict] = []
        for part in parts:
            for rule in self._by_type.get(part.type, ()):
                verdicts += self._tell(rule, lambda rule=rule, part=part: rule.run(part), part.name, (part,))
        return verdicts

    def program(self, resources: Iterable[Resource]) -> list[Verdict]:
        """What the stack rules say, then what no rule could decide and which exemptions are of no use.

        `resources` are those of the engine; the objects they carry are added here.
        """
        return self.whole(Program(part for resource in resources for part in views(resource)))

    def whole(self, program: Program) -> list[Verdict]:
        """As `program`, for resources whose views are at hand."""
        verdicts: list[Verdict] = []
        for rule in self._stack_rules:
            said = self._tell(rule, lambda rule=rule: rule.run(program), "the program", program)
            verdicts += [verdict for verdict in said if not rule.early or self._is_news(verdict)]
        verdicts += [self._not_evaluated(rule, places) for rule, places in self._undecided.items()]
        undecided = self._faulty | {rule.id for rule in self._undecided}
        verdicts += [Verdict(rule=None, level=Level.ADVISORY, message=said) for said in self.configuration.idle_exemptions(undecided)]
        return verdicts

    def so_far(self, parts: Sequence[Resource], seen: Callable[[], Program]) -> list[Verdict]:
        """What those stack rules that need not wait say once `parts` have come; `seen` gives these and all before."""
        kinds = {part.type for part in parts}
        rules = [rule for rule in self._stack_rules if rule.early and kinds & rule.types]
        if not rules:
            return []
        program, verdicts = seen(), []
        for rule in rules:
            verdicts += self._tell(rule, lambda rule=rule: rule.run(program), "the program", program, final=False)
        return [verdict for verdict in verdicts if self._is_news(verdict)]

    def _is_news(self, verdict: Verdict) -> bool:
        """Whether it has not been told at an earlier resource."""
        found = verdict.finding
        key = (verdict.policy, found.resource.urn, found.path, found.found) if found else (verdict.policy, verdict.message, "", "")
        news = key not in self._told
        self._told.add(key)
        return news

    def judges(self, kind: str) -> bool:
        """Whether a rule over one resource looks at this type."""
        return kind in self._by_type

    def stack_types(self) -> frozenset[str] | None:
        """The types that the stack rules look at; None where one looks at all."""
        if all(rule.types for rule in self._stack_rules):
            return frozenset().union(*(rule.types for rule in self._stack_rules))
        return None

    def _tell(
        self, rule: AnyRule, run: Callable[[], Report], place: str, judged: Iterable[Resource], *, final: bool = True
    ) -> list[Verdict]:
        try:
            report = run()
        except Exception as error:
            self._faulty.add(rule.id)
            # The text of an error may quote any value.
            words = "" if any(each.secrets for each in judged) else f": {error}"
            said = f"{rule.id} could not judge {place} ({type(error).__name__}{words}); please report this as a fault."
            return [Verdict(rule=rule, level=self.level(rule), message=printable(said))]
        if report.undecided and final:
            places = self._undecided.setdefault(rule, [])
            places += [each for each in report.undecided if each not in places]
        return [
            Verdict(
                rule=rule,
                level=Level.ADVISORY if finding.advice else self.level(rule),
                message=rule.message(finding),
                finding=finding,
            )
            for finding in report.findings
            if not self.configuration.exempts(rule, finding.resource)
        ]

    def _not_evaluated(self, rule: AnyRule, places: Sequence[str]) -> Verdict:
        needs = printable(", ".join(sorted(places)))
        said = f"{rule.id} not evaluated: needs {needs}, which only `up` knows and will judge."
        return Verdict(rule=rule, level=Level.ADVISORY, message=said)


def by_id(rules: Iterable[AnyRule]) -> Mapping[str, AnyRule]:
    """The rules by catalogue id."""
    return {rule.id: rule for rule in rules}
