"""What an outcome looks like: in a terminal, as a comment on a pull request, for code scanning, for machines."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from guardrails import RULES
from guardrails.check import FORMATS
from guardrails.configuration import Level
from guardrails.judge import Verdict, by_id
from guardrails.node import Node
from guardrails.row import Kind, Row, counted, refused, row, row_of_verdict
from guardrails.rule import Finding, Resource
from guardrails.table import table

pytestmark = pytest.mark.unit

TEXT = {"type": "string", "minLength": 1}
SHORT = {**TEXT, "maxLength": 1024}


def having(**properties: Any) -> dict[str, Any]:
    """The schema of a mapping that must have all of these."""
    return {"type": "object", "required": list(properties), "properties": properties}


def listing(items: dict[str, Any], least: int = 1) -> dict[str, Any]:
    return {"type": "array", "minItems": least, "items": items}


# What code scanning requires of a SARIF file (https://docs.github.com: SARIF support for code scanning); an empty text counts as none.
_RULE = having(id=TEXT, shortDescription=having(text=SHORT), fullDescription=having(text=SHORT), help=having(text=TEXT))
_RULE["properties"] |= {
    "name": {**TEXT, "maxLength": 255},
    "defaultConfiguration": having(level={"enum": ["note", "warning", "error"]}),
}
_PLACE = having(
    artifactLocation=having(uri={**TEXT, "pattern": r"^(?!/)([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})+$"}),
    region=having(startLine={"type": "integer", "minimum": 1}),
)
_RESULT = having(
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level={"enum": ["none", "note", "warning", "error"]},
    message=having(text=TEXT),
    locations={**listing(having(physicalLocation=_PLACE)), "maxItems": 10},
)
SARIF = having(
    **{"$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"}},
    version={"const": "2.1.0"},
    runs=listing(
        having(
            tool=having(driver=having(name=TEXT, version=TEXT, rules=listing(_RULE, 0))),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            results=listing(_RESULT, 0),
        )
    ),
)

URN = "urn:pulumi:dev::project::kubernetes:karpenter.sh/v1:NodePool::p5"
MESSAGE = "KRP03 p5: spec.disruption.budgets[1].nodes is 150%; allowed: 0% to 100%.\n  Otherwise: the pool is refused.\n  Fix: set 10%."
IN_FILE = Row(
    kind=Kind.VIOLATION,
    rule="KRP03",
    resource="p5",
    path="spec.disruption.budgets[1].nodes",
    found="150%",
    allowed="0% to 100%",
    why="the pool is refused.",
    fix="set 10%.",
    message=MESSAGE,
    file="pools.yaml",
    line=18,
)
ADVICE = Row(
    kind=Kind.ADVICE,
    rule="VOL03",
    resource="finetune",
    path="spec.maxRetry",
    found="3",
    allowed="10 or more",
    why="few evictions end the job.",
    fix="raise it.",
    message="VOL03 finetune: ...",
    urn=URN,
)
NOTE = Row(kind=Kind.NOTE, rule="FSX02", message="FSX02 not evaluated: scratch.storageCapacity is not known yet")
OWN = Row(kind=Kind.NOTE, message="the exemption of x from KRP03 (r) is not used")


def written(*rows: Row, fallback: str = "Pulumi.yaml") -> dict[str, Any]:
    """The SARIF of rows, held to what code scanning requires."""
    log = json.loads(FORMATS["sarif"](rows, fallback))
    jsonschema.validate(log, SARIF)
    return log["runs"][0]


def test_the_terminal_shows_violations_first_and_the_count_last() -> None:
    assert table([OWN, ADVICE, IN_FILE]) == (
        "VIOLATION  KRP03  p5  pools.yaml:18\n"
        "    at:        spec.disruption.budgets[1].nodes\n"
        "    found:     150%\n"
        "    allowed:   0% to 100%\n"
        "    otherwise: the pool is refused.\n"
        "    fix:       set 10%.\n"
        "\n"
        f"ADVICE  VOL03  finetune  {URN}\n"
        "    at:        spec.maxRetry\n"
        "    found:     3\n"
        "    allowed:   10 or more\n"
        "    otherwise: few evictions end the job.\n"
        "    fix:       raise it.\n"
        "\n"
        "NOTE\n"
        "    the exemption of x from KRP03 (r) is not used\n"
        "\n"
        "1 violation, 1 advice, 1 note\n"
    )


def test_the_terminal_wraps_texts_and_no_words() -> None:
    word = "a" * 50
    shown = table([Row(kind=Kind.VIOLATION, rule="KRP03", path="x", found=word, allowed="one two three four", message="m")], width=30)
    assert f"    found:     {word}\n" in shown or f"    found:\n               {word}\n" in shown
    assert "    allowed:   one two three\n               four\n" in shown
    noted = table([Row(kind=Kind.NOTE, message="six words that are a note")], width=20)
    assert noted.startswith("NOTE\n    six words that\n    are a note\n\n")


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ([], "0 violations, 0 advice, 0 notes"),
        ([Kind.VIOLATION, Kind.ADVICE, Kind.NOTE], "1 violation, 1 advice, 1 note"),
        ([Kind.NOTE, Kind.VIOLATION, Kind.NOTE, Kind.VIOLATION, Kind.ADVICE, Kind.ADVICE], "2 violations, 2 advice, 2 notes"),
    ],
)
def test_rows_are_counted_by_kind(kinds: list[Kind], words: str) -> None:
    assert counted(Row(kind=kind, message="m") for kind in kinds) == words


def test_a_message_is_taken_apart() -> None:
    rule = by_id(RULES)["KRP03"]
    made = row(rule, MESSAGE, mandatory=True, file="pools.yaml", line=18)
    assert made == replace(IN_FILE, title=rule.title, source=rule.source)
    assert made.summary == "spec.disruption.budgets[1].nodes is 150%; allowed: 0% to 100%"
    assert row(rule, MESSAGE, mandatory=False, urn=URN) == replace(made, kind=Kind.ADVICE, urn=URN, file="", line=0)


@pytest.mark.parametrize(("mandatory", "kind"), [(True, Kind.VIOLATION), (False, Kind.NOTE)])
def test_a_rule_that_could_not_judge_is_shown_as_it_says_it(mandatory: bool, kind: Kind) -> None:
    said = "KRP03 could not judge p5 (KeyError: 'x'); please report this as a fault."
    made = row(by_id(RULES)["KRP03"], said, mandatory=mandatory)
    assert (made.kind, made.path, made.summary) == (kind, "", said)
    assert refused([made]) is mandatory


def test_json_leaves_out_what_is_empty() -> None:
    (result,) = json.loads(FORMATS["json"]([OWN], ""))["results"]
    assert result == {"kind": "note", "message": OWN.message}


def test_a_comment_has_a_table_for_each_kind_and_the_notes_below() -> None:
    assert FORMATS["markdown"]([NOTE, ADVICE, IN_FILE], "") == (
        "#### Policy\n"
        "\n"
        "1 violation, 1 advice, 1 note.\n"
        "\n"
        "**Violations**\n"
        "\n"
        "| rule | resource | found | allowed | why and fix |\n"
        "|---|---|---|---|---|\n"
        "| KRP03 | `p5 (pools.yaml:18)` | `spec.disruption.budgets[1].nodes` is `150%` | 0% to 100% "
        "| the pool is refused. **Fix:** set 10%. |\n"
        "\n"
        "**Advice**\n"
        "\n"
        "| rule | resource | found | allowed | why and fix |\n"
        "|---|---|---|---|---|\n"
        "| VOL03 | `finetune` | `spec.maxRetry` is `3` | 10 or more | few evictions end the job. **Fix:** raise it. |\n"
        "\n"
        "<details><summary>Notes</summary>\n"
        "\n"
        "- FSX02 not evaluated: scratch.storageCapacity is not known yet\n"
        "\n"
        "</details>\n"
    )


def test_a_comment_without_a_row_says_so() -> None:
    assert FORMATS["markdown"]([], "") == "#### Policy\n\nNo rule objects.\n"


def test_a_comment_shows_what_could_not_be_judged_in_its_words() -> None:
    said = "KRP03 could not judge p5 (KeyError: 'x'); please report this as a fault."
    text = FORMATS["markdown"]([row(by_id(RULES)["KRP03"], said, mandatory=True)], "")
    assert f"| KRP03 |  | {said} |  |  **Fix:**  |\n" in text


def test_a_value_cannot_become_markup_in_a_comment() -> None:
    hostile = Row(
        kind=Kind.VIOLATION,
        rule="KRP03",
        resource="a|b",
        path="spec.x",
        found="`</td><img src=x> @team|\\",
        allowed="no\nbreaks, [link](http://x), ![image](y), *a* _b_ `c` &lt; <d> @team |",
        why="w.",
        fix="f.",
        message="m",
    )
    (line,) = [line for line in FORMATS["markdown"]([hostile], "").splitlines() if line.startswith("| KRP03")]
    assert line == (
        r"| KRP03 | `a\|b` | `spec.x` is `` `</td><img src=x> @team\|\ `` "
        r"| no breaks, \[link\](http://x), !\[image\](y), \*a\* \_b\_ \`c\` &amp;lt; &lt;d> &#64;team \| | w. **Fix:** f. |"
    )


def test_code_in_a_comment_stands_as_it_is() -> None:
    image = Row(kind=Kind.VIOLATION, rule="POD03", resource="p", path="image", found="a/b:1@sha256:0c\\d&<", message="m")
    assert r"`image` is `a/b:1@sha256:0c\d&<`" in FORMATS["markdown"]([image], "")


def test_a_note_cannot_become_markup_in_a_comment() -> None:
    text = FORMATS["markdown"]([Row(kind=Kind.NOTE, message="needs [click](http://x) <b>")], "")
    assert "- needs \\[click\\](http://x) &lt;b>\n" in text


def test_a_row_of_a_file_has_the_parts_of_its_finding() -> None:
    rule = by_id(RULES)["KRP03"]
    resource = Resource(type="t", name="a: b\x1b: spec is c; allowed: d", properties=Node({}), urn="a.yaml")
    finding = Finding(resource, "spec.x", "y is z; allowed: q", "w; allowed: v")
    for mandatory, kind in ((True, Kind.VIOLATION), (False, Kind.ADVICE)):
        level = Level.MANDATORY if mandatory else Level.ADVISORY
        made = row_of_verdict(Verdict(rule=rule, level=level, message=rule.message(finding), finding=finding), file="a.yaml", line=3)
        assert (made.resource, made.path, made.found) == (r"a: b\x1b: spec is c; allowed: d", "spec.x", "y is z; allowed: q")
        assert (made.allowed, made.why, made.fix, made.kind, made.urn) == ("w; allowed: v", rule.why, rule.fix, kind, "a.yaml")


MORE = "There is more than a comment holds; the job's artifact has all of it.\n"


def noting(length: int) -> list[Row]:
    """Two notes that make a comment of so many characters."""
    frame = len(FORMATS["markdown"]([Row(kind=Kind.NOTE, message="a"), Row(kind=Kind.NOTE, message="b")], "")) - 2
    return [Row(kind=Kind.NOTE, message="a" * 100), Row(kind=Kind.NOTE, message="b" * (length - frame - 100))]


def test_a_comment_is_cut_between_lines_where_it_gets_too_long() -> None:
    longest = 60_000
    whole = FORMATS["markdown"](noting(longest), "")
    assert len(whole) == longest
    assert whole.endswith("</details>\n")
    more = noting(longest + 100)
    cut = FORMATS["markdown"](more, "")
    assert cut.startswith("#### Policy\n\n0 violations, 0 advice, 2 notes.\n")
    assert cut.endswith(f"- {more[0].message}\n\n</details>\n\n{MORE}")
    rows = FORMATS["markdown"]([IN_FILE] * 2000, "")
    assert len(rows) < longest + 200
    assert rows.endswith(f" **Fix:** {IN_FILE.fix} |\n\n{MORE}")


def test_code_scanning_gets_what_it_requires_of_every_rule() -> None:
    run = written(*(row(rule, f"{rule.id} x: a is b; allowed: c.\n  Otherwise: w\n  Fix: f", mandatory=rule.mandatory) for rule in RULES))
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [rule.id for rule in RULES]
    for described, rule, result in zip(run["tool"]["driver"]["rules"], RULES, run["results"], strict=True):
        level = "error" if rule.mandatory else "warning"
        assert described == {
            "id": rule.id,
            "name": rule.policy_name,
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.why},
            "help": {"text": f"{rule.fix}\nSource: {rule.source}"},
            "defaultConfiguration": {"level": level},
        }
        assert (result["ruleId"], result["level"]) == (rule.id, level)


def test_code_scanning_gets_only_the_rules_that_said_something() -> None:
    run = written(IN_FILE, ADVICE, IN_FILE)
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["KRP03", "VOL03"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1, 0]
    assert written() == {**run, "tool": {"driver": {**run["tool"]["driver"], "rules": []}}, "results": []}


def test_code_scanning_gets_place_value_and_words() -> None:
    (result,) = written(IN_FILE)["results"]
    assert result == {
        "ruleId": "KRP03",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": MESSAGE},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": "pools.yaml"}, "region": {"startLine": 18}},
                "logicalLocations": [
                    {"name": "p5", "fullyQualifiedName": "p5.spec.disruption.budgets[1].nodes", "kind": "resource"},
                ],
            }
        ],
    }


@pytest.mark.parametrize(
    ("shown", "name", "full"),
    [
        (ADVICE, "finetune", f"{URN}.spec.maxRetry"),
        (Row(kind=Kind.NOTE, rule="FSX02", urn=URN, message="m"), URN, URN),
        (Row(kind=Kind.NOTE, rule="FSX02", resource="scratch", message="m"), "scratch", "scratch"),
    ],
)
def test_code_scanning_shows_a_resource_without_a_file_at_the_top_of_another(shown: Row, name: str, full: str) -> None:
    ((location,),) = (result["locations"] for result in written(shown)["results"])
    assert location == {
        "physicalLocation": {"artifactLocation": {"uri": "Pulumi.yaml"}, "region": {"startLine": 1}},
        "logicalLocations": [{"name": name, "fullyQualifiedName": full, "kind": "resource"}],
    }


def test_code_scanning_gets_a_rule_for_what_the_pack_says_of_itself() -> None:
    run = written(NOTE, OWN)
    (fsx, own) = run["tool"]["driver"]["rules"]
    assert fsx["id"] == "FSX02"
    assert (own["id"], own["defaultConfiguration"]) == ("GUARDRAILS", {"level": "note"})
    assert "exemption" in own["help"]["text"]
    (_, result) = run["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("GUARDRAILS", 1, "note")
    assert "logicalLocations" not in result["locations"][0]


@pytest.mark.parametrize(
    ("file", "uri"), [("jobs/a b.yaml", "jobs/a%20b.yaml"), ("größe#1.yaml", "gr%C3%B6%C3%9Fe%231.yaml"), ("a%20b.yaml", "a%2520b.yaml")]
)
def test_code_scanning_gets_a_file_name_as_a_uri(file: str, uri: str) -> None:
    for run in (written(Row(kind=Kind.NOTE, message="m", file=file, line=1)), written(OWN, fallback=file)):
        assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_code_scanning_gets_a_file_outside_with_all_of_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    outside = (tmp_path / "a b.yaml").as_uri()
    for file in (str(tmp_path / "a b.yaml"), "../a b.yaml"):
        run = written(Row(kind=Kind.NOTE, message="m", file=file, line=1))
        assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == outside


def test_a_file_name_that_is_no_text_is_written(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff.yaml")
    run = written(Row(kind=Kind.NOTE, message="m", file=name, line=1))
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%FF.yaml"
    assert r"a\udcff.yaml:1" in table([Row(kind=Kind.NOTE, message="m", file=name, line=1)])
