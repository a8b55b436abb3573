"""What a team may change of the pack: the level of each rule, and exemptions that end.

It arrives as CrossGuard's policy configuration, a JSON file:

    {
      "krp04-node-pool-disallow-expiry": "advisory",
      "EFA05": {"enforcementLevel": "disabled"},
      "guardrails": {"exemptions": [
        {"rule": "POD01", "resource": "efa-plugin*", "reason": "ships privileged", "expires": "2027-01-31"}
      ]}
    }
"""

import datetime
import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, Protocol

from guardrails.rule import Resource

PACK_POLICY = "guardrails"
"""The entry of the configuration that is about the pack, not about one rule."""
_EXEMPTION_FIELDS = ("rule", "resource", "reason", "expires")


class Level(Enum):
    """How a rule's violation is told."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


class ConfigurationError(ValueError):
    """The configuration is not one; the text names field, value and what is allowed."""


class _Named(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def policy_name(self) -> str: ...
    @property
    def mandatory(self) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Exemption:
    """A rule that is not applied to some resources, for a reason, until a day."""

    rule: str
    """Id of the rule, such as POD01."""
    resource: str
    """Name or URN of the resource; `*`, `?` and `[...]` match as in a shell."""
    reason: str
    expires: datetime.date
    """The last day on which it holds, in UTC."""

    def covers(self, rule: _Named, resource: Resource) -> bool:
        """Whether it is about this rule and resource, whatever the day."""
        if rule.id != self.rule:
            return False
        names = [name for name in (resource.name, resource.urn) if name]
        # A logical name may have brackets of its own.
        return self.resource in names or any(fnmatchcase(name, self.resource) for name in names)

    def __str__(self) -> str:
        return f"the exemption of {self.resource} from {self.rule} ({self.reason})"


@dataclass(kw_only=True)
class Configuration:
    """Levels by rule id and exemptions, and which of these were of use in the run so far."""

    levels: Mapping[str, Level] = field(default_factory=dict)
    exemptions: Sequence[Exemption] = ()
    today: datetime.date = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).date())
    used: dict[Exemption, int] = field(default_factory=dict)
    """How many findings each exemption has kept back."""

    def level(self, rule: _Named) -> Level:
        """The level of a rule."""
        default = Level.MANDATORY if rule.mandatory else Level.ADVISORY
        return self.levels.get(rule.id, default)

    def exempts(self, rule: _Named, resource: Resource) -> bool:
        """Whether a finding of `rule` at `resource` is to be kept back; counts it."""
        for exemption in self.exemptions:
            if exemption.covers(rule, resource):
                self.used[exemption] = self.used.get(exemption, 0) + 1
                if exemption.expires >= self.today:
                    return True
        return False

    def idle_exemptions(self, undecided: Collection[str] = ()) -> list[str]:
        """What to say of exemptions that have expired or that nothing needs; rules that are `undecided` may yet need theirs."""
        said = []
        for exemption in self.exemptions:
            if exemption.expires < self.today:
                said.append(f"{exemption} expired on {exemption.expires}; mend the resource, or renew it with a new reason.")
            elif exemption not in self.used and exemption.rule not in undecided:
                said.append(f"{exemption} is not used: nothing there violates the rule. Remove it.")
        return said


def read_configuration(values: Mapping[str, Any], rules: Iterable[_Named]) -> Configuration:
    """The configuration in a policy configuration file. Raises ConfigurationError naming field, value and what is allowed."""
    names = {name: rule.id for rule in rules for name in (rule.id, rule.policy_name)}
    levels: dict[str, Level] = {}
    exemptions: Sequence[Exemption] = ()
    if "all" in values:
        level = _level("all", values["all"])
        levels = dict.fromkeys(names.values(), level)
    # The engine sends every policy by its name, with its default; so what stands under an id is what the file says.
    for name, value in sorted(values.items(), key=lambda item: names.get(item[0]) == item[0]):
        if name == PACK_POLICY:
            exemptions = _exemptions(value, frozenset(names.values()))
        elif name != "all":
            if name not in names:
                raise ConfigurationError(f"{name}: there is no such rule{_near(name, names)}")
            levels[names[name]] = _level(name, value)
    return Configuration(levels=levels, exemptions=exemptions)


def _level(name: str, value: Any) -> Level:
    allowed = ", ".join(level.value for level in Level)
    if isinstance(value, Mapping):
        unknown = sorted(set(value) - {"enforcementLevel"})
        if unknown:
            raise ConfigurationError(f"{name}.{unknown[0]}: no such setting; allowed: enforcementLevel")
        value = value.get("enforcementLevel")
        name = f"{name}.enforcementLevel"
    try:
        return Level(value)
    except ValueError:
        raise ConfigurationError(f"{name} is {value!r}; allowed: {allowed}") from None


def _exemptions(value: Any, ids: frozenset[str]) -> list[Exemption]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{PACK_POLICY} is {value!r}; allowed: a mapping with exemptions")
    for key in value:
        if key not in ("exemptions", "enforcementLevel"):
            raise ConfigurationError(f"{PACK_POLICY}.{key}: no such setting; allowed: exemptions")
    entries = value.get("exemptions", [])
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ConfigurationError(f"{PACK_POLICY}.exemptions is {entries!r}; allowed: a list of exemptions")
    return [_exemption(f"{PACK_POLICY}.exemptions[{index}]", entry, ids) for index, entry in enumerate(entries)]


def _exemption(place: str, entry: Any, ids: frozenset[str]) -> Exemption:
    if not isinstance(entry, Mapping):
        raise ConfigurationError(f"{place} is {entry!r}; allowed: a mapping with {', '.join(_EXEMPTION_FIELDS)}")
    for key in entry:
        if key not in _EXEMPTION_FIELDS:
            raise ConfigurationError(f"{place}.{key}: no such field; allowed: {', '.join(_EXEMPTION_FIELDS)}")
    for key in _EXEMPTION_FIELDS:
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise ConfigurationError(f"{place}.{key} is {entry.get(key, 'unset')!r}; allowed: a text that is not empty")
    if entry["rule"] not in ids:
        raise ConfigurationError(f"{place}.rule is {entry['rule']!r}: there is no such rule{_near(entry['rule'], ids)}")
    try:
        expires = datetime.date.fromisoformat(entry["expires"])
    except ValueError:
        raise ConfigurationError(f"{place}.expires is {entry['expires']!r}; allowed: a day such as 2027-01-31") from None
    return Exemption(rule=entry["rule"], resource=entry["resource"], reason=entry["reason"], expires=expires)


def _near(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, names)
    return f"; did you mean {close[0]}?" if close else ""
