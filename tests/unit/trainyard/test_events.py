"""What is read out of the engine's event log."""

import json
from pathlib import Path

import pytest

from trainyard.events import Summary, Violation, plain_text, read_events, resource_name

pytestmark = pytest.mark.unit
VPC = "urn:pulumi:dev::trainyard::trainyard:network:Vpc$aws:ec2/vpc:Vpc::net"
STACK = "urn:pulumi:dev::trainyard::pulumi:pulumi:Stack::trainyard-dev"


def summed(*events: dict) -> Summary:
    summary = Summary()
    for event in events:
        summary.add(event)
    return summary


def test_steps_count_as_touched_and_the_engines_own_summary_as_changes():
    summary = summed({"resourcePreEvent": {}}, {"resourcePreEvent": {}}, {"summaryEvent": {"resourceChanges": {"create": 2, "same": 5}}})
    assert (summary.touched, summary.changed, summary.text()) == (2, 2, "create 2, same 5")


@pytest.mark.parametrize("quiet", ["same", "read", "read-replacement", "refresh", "discard"])
def test_what_leaves_resources_alone_is_no_change(quiet: str):
    assert summed({"summaryEvent": {"resourceChanges": {quiet: 3}}}).changed == 0


def test_a_run_that_did_nothing_says_so():
    assert summed({"summaryEvent": {"resourceChanges": None}}).text() == "nothing"


def test_an_error_names_its_resource_once_and_has_no_colour_marks():
    event = {"diagnosticEvent": {"urn": VPC, "severity": "error", "message": "<{%fg 1%}>refused<{%reset%}>\n"}}
    assert summed(event, event).errors == ["net: refused"]


@pytest.mark.parametrize(
    ("change", "errors", "warnings"),
    [
        ({"severity": "warning"}, [], ["net: text"]),
        ({"severity": "info"}, [], []),
        ({"severity": "error", "ephemeral": True}, [], []),
        # The stack as a whole is no resource to name.
        ({"severity": "error", "urn": STACK}, ["text"], []),
        ({"severity": "error", "urn": ""}, ["text"], []),
    ],
)
def test_a_diagnostic_goes_where_its_severity_says(change: dict, errors: list[str], warnings: list[str]):
    summary = summed({"diagnosticEvent": {"urn": VPC, "message": "text", **change}})
    assert (summary.errors, summary.warnings) == (errors, warnings)


def test_a_violation_is_told_in_the_rules_own_words():
    event = {
        "policyEvent": {
            "policyName": "fsx-lustre-limit-throughput",
            "resourceUrn": VPC,
            "enforcementLevel": "mandatory",
            "message": "<{%fg 1%}>perUnitStorageThroughput is 200<{%reset%}>\n  Fix: leave it out",
        }
    }
    said = "perUnitStorageThroughput is 200\n  Fix: leave it out"
    assert summed(event, event).violations == [
        Violation(policy="fsx-lustre-limit-throughput", resource="net", message=said, mandatory=True, urn=VPC)
    ]


def test_a_violation_of_one_line_keeps_it():
    summary = summed({"policyEvent": {"message": "only line", "enforcementLevel": "advisory"}})
    assert [(violation.message, violation.mandatory) for violation in summary.violations] == [("only line", False)]


def test_events_of_other_kinds_are_passed_over():
    assert summed({"preludeEvent": {"config": {}}}, {"sequence": 1}) == Summary()


def test_text_without_marks_stays():
    assert plain_text("a < b, 100 %") == "a < b, 100 %"


def test_a_component_is_named_by_its_last_part():
    assert resource_name("urn:pulumi:dev::p::a:b:C$d:e:F::the-name") == "the-name"


def test_only_whole_events_are_read_and_the_rest_comes_with_the_next_look(tmp_path: Path):
    log = tmp_path / "events.json"
    log.write_text(json.dumps({"sequence": 1}) + "\n" + '{"sequence"')
    first, position = read_events(log, 0)
    assert first == [{"sequence": 1}]
    with log.open("a") as file:
        file.write(": 2}\n")
    assert read_events(log, position) == ([{"sequence": 2}], log.stat().st_size)


def test_a_line_that_a_killed_engine_cut_short_hides_no_other(tmp_path: Path):
    log = tmp_path / "events.json"
    log.write_text('{"sequence": 1}\n{"sequ\n{"sequence": 3}\n')
    assert read_events(log, 0)[0] == [{"sequence": 1}, {"sequence": 3}]


def test_no_log_yet_is_no_events(tmp_path: Path):
    assert read_events(tmp_path / "absent.json", 7) == ([], 7)


def stack_outputs(old: dict | None, new: dict | None) -> dict:
    sides = {"old": None if old is None else {"outputs": old}, "new": None if new is None else {"outputs": new}}
    return {"resOutputsEvent": {"metadata": {"type": "pulumi:pulumi:Stack", "op": "same", "urn": STACK, **sides}}}


@pytest.mark.parametrize(
    ("events", "changes"),
    [
        ([stack_outputs({"a": 1}, {"a": 1})], False),
        ([stack_outputs({"a": 1}, {"a": 2})], True),
        ([stack_outputs({"a": 1}, {"a": 1, "b": 1})], True),
        ([stack_outputs(None, {"a": 1})], True),
        # A run that told nothing of the outputs must not be taken for one that leaves them alone.
        ([], True),
    ],
)
def test_an_output_that_moved_is_a_reason_to_update(events: list[dict], changes: bool):
    assert summed(*events).outputs_change is changes


def test_charts_that_change_are_named_since_no_preview_shows_their_objects():
    release = {"type": "kubernetes:helm.sh/v3:Release", "urn": "urn:pulumi:dev::trainyard::kubernetes:helm.sh/v3:Release::volcano"}
    events = [{"resourcePreEvent": {"metadata": {**release, "op": op}}} for op in ("create", "create")]
    assert summed(*events).charts == ["volcano"]
    assert summed({"resourcePreEvent": {"metadata": {**release, "op": "same"}}}).charts == []


def test_the_engines_word_on_an_ended_program_is_told_only_where_nothing_else_was():
    said, ended = (
        {"diagnosticEvent": {"urn": "", "severity": "error", "message": text}} for text in ("wrong", "an unhandled error occurred: x")
    )
    assert summed(said, ended).errors == ["wrong"]
    assert summed(ended).errors == ["an unhandled error occurred: x"]
