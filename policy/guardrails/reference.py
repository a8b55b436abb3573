"""The rules as a page: `python -m guardrails.reference > ../docs/policies.md` in this folder. A test holds the page to the rules."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from guardrails import DOMAINS
from guardrails.judge import AnyRule
from guardrails.rule import Example, Rule
from guardrails.tokens import DEEPSPEED

_HEAD = """\
# Policies

<!-- Written by `make policies` from the rules themselves; a test compares. -->

`policy/` is a CrossGuard pack: `pulumi preview --policy-pack policy` in any Pulumi program, ours or another team's; it needs nothing
else of this repository. `python -m guardrails FILE...` in that folder (`trainyard policy check FILE...` here) judges manifests and
DeepSpeed configurations without Pulumi: exit status 0 nothing is refused, 1 a rule refuses something, 2 the input can't be read;
`--format` table, markdown, sarif or json.

- A **mandatory** rule ends the preview; **advice** is only told. A rule that needs a value which only `up` knows is listed once as
  not evaluated, and judged at `up`.
- The same object is judged alike whether it is a typed resource, a CustomResource, a child of a YAML group or of a rendered chart,
  an item of a List, or stands in the values of a Helm release (also as text).
- Levels and exemptions: `pulumi preview --policy-pack policy --policy-pack-config policy-config.json`; here a file of that name
  beside Pulumi.yaml is taken by itself. For plain files name it: `python -m guardrails FILE... --config policy-config.json`. An exemption
  names rule, resource, reason and its last day. The resource is a name or URN, `*` matches; in place of a URN a file has its path,
  and a DeepSpeed configuration is called as its file (`ds_config.json`):

```json
{
  "KRP04": "advisory",
  "guardrails": {"exemptions": [
    {"rule": "POD01", "resource": "efa-plugin*", "reason": "the device plug-in needs it", "expires": "2027-01-31"}
  ]}
}
```
"""


def reference() -> str:
    """The page as Markdown."""
    lines = [_HEAD, f"{sum(map(len, DOMAINS.values()))} rules.", "", "| rule | what | level |", "|---|---|---|"]
    lines += [f"| [{rule.id}](#{rule.id.lower()}) | {rule.title} | {_level(rule)} |" for rules in DOMAINS.values() for rule in rules]
    for title, rules in DOMAINS.items():
        lines += ["", f"## {title.rstrip('.')}"]
        for rule in sorted(rules, key=lambda rule: rule.id):
            lines += ["", *section(rule)]
    return "\n".join(lines) + "\n"


def section(rule: AnyRule) -> Iterator[str]:
    """The lines of the page on one rule."""
    yield f"### {rule.id}"
    yield ""
    yield f"{rule.title}. {_level(rule).capitalize()}; `{rule.policy_name}`, {_scope(rule)}."
    yield ""
    yield f"- Otherwise: {rule.why}"
    yield f"- Fix: {rule.fix}"
    yield f"- Source: {rule.source}"
    if rule.valid or rule.invalid:
        yield from ("", "```yaml", *_example("passes", rule.valid), *_example("refused", rule.invalid), "```")


def _level(rule: AnyRule) -> str:
    return "mandatory" if rule.mandatory else "advice"


def _scope(rule: AnyRule) -> str:
    kinds = sorted({kind.rpartition(":")[2] if kind != DEEPSPEED else "DeepSpeed configuration" for kind in rule.types})
    return f"{'judges' if isinstance(rule, Rule) else 'compares'} {', '.join(kinds) or 'all resources'}"


def _example(verdict: str, examples: Sequence[Example]) -> Iterator[str]:
    for number, example in enumerate(examples):
        yield f"# {verdict}" if number == 0 else "# with"
        yield from yaml.safe_dump(_shown(example), sort_keys=False, default_flow_style=None, width=120).rstrip().splitlines()


def _shown(example: Example) -> Mapping[str, Any]:
    kind = example.type.rpartition(":")[2]
    return dict(example.properties) if example.type == DEEPSPEED else {kind: dict(example.properties)}


if __name__ == "__main__":
    sys.stdout.write(reference())
