"""A value that preview can't know, and a key that is not there: no rule raises, none passes in silence, none is downgraded."""

import itertools
import os
import re
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2

from guardrails import RULES, Rule, StackRule, tokens
from guardrails.judge import by_id
from guardrails.service import Service
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing, analyze, not_evaluated, registered, violations
from tests.unit.policy.case import Case
from tests.unit.policy.cases import CASES
from tests.unit.policy.cases.batch_job import ENV_FROM, SET, shell
from tests.unit.policy.cases.csi import CSI, FILES, FROM_FILES, MADE, volume
from tests.unit.policy.cases.eks import (
    MADE_ENTRY,
    MADE_ROLE,
    TEMPLATED,
    TRAINING,
    entry,
    in_cluster,
    of_cluster,
    policy,
    policy_of,
    template,
)
from tests.unit.policy.cases.eks import group as in_group
from tests.unit.policy.cases.network import CLOSED, CLUSTER, ML, OPEN, carrying, group, two_lists
from tests.unit.policy.cases.pod_devices import IN_P5, USER_DATA, hungry
from tests.unit.policy.cases.security import REST
from tests.unit.policy.mutation import REMOVE, with_each
from tests.unit.policy.test_cases import name

pytestmark = pytest.mark.policy

RULE_BY_ID = by_id(RULES)
SHARE = int(os.environ.get("TRAINYARD_POLICY_SWEEP", "23"))
"""One place in so many is changed."""
SELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
OUT = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}


@pytest.mark.parametrize("case", [case for case in CASES if case.refused], ids=name)
def test_an_unknown_in_a_refused_program_is_refused_or_listed(case: Case) -> None:
    rule = RULE_BY_ID[case.rule]
    level = {d.mandatory for d in analyze(*case.things, rules=[rule])}
    silent = []
    for place, things in with_each(case.things, UNKNOWN):
        said = analyze(*things, rules=[rule])
        found = violations(said, case.rule)
        if not found and not not_evaluated(said, case.rule):
            silent.append(place)
        assert {d.mandatory for d in said if d.message in found} <= level, f"downgraded by an unknown at {place}"
    assert not silent, f"{case.rule} passes in silence with an unknown at {silent}"


@pytest.mark.parametrize("case", [case for case in CASES if not case.refused], ids=name)
def test_an_unknown_in_a_valid_program_is_not_refused(case: Case) -> None:
    """What isn't known may come to be what was valid there, unless it comes from another thing of the program."""
    if case.rule == "HLM01":  # It tells of what can't be seen.
        return
    rule, come = RULE_BY_ID[case.rule], {f"{thing.name}:{key}" for thing in case.things for key in thing.sources}
    refused = []
    for place, things in with_each(case.things, UNKNOWN):
        # Nobody computes the name of a task, and a volume is mounted by its DNS name, whatever its handle is.
        if place.partition("/")[0] in come or re.search("/tasks/[0-9]+/name$|/volumeHandle$", place):
            continue
        refused += [place] if violations(analyze(*things, rules=[rule]), case.rule) else []
    assert not refused, f"{case.rule} refuses an unknown at {refused}"


def test_a_text_of_nothing_in_a_group_s_template_says_nothing() -> None:
    nothing = {"networkInterfaces": [{"subnetId": ""}], "instanceInitiatedShutdownBehavior": "", "imageId": ""}
    assert violations(analyze(in_group(**TEMPLATED), template(**nothing), rules=[RULE_BY_ID["EKS08"]]), "EKS08") == []


def test_settings_for_a_bucket_whose_name_is_made_up_elsewhere_may_be_its_own() -> None:
    given = {"bucket": UNKNOWN}
    bucket = Thing(type=tokens.BUCKET, name="store", properties=given, sources={"bucket": ["suffix"]})
    rest = [replace(each, sources={"bucket": ["suffix"]}) for each in REST]
    said = analyze(bucket, *rest, rules=[RULE_BY_ID["SEC04"]])
    assert violations(said, "SEC04") == []
    assert "needs closed.bucket" in not_evaluated(said, "SEC04")[0]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_missing_key_makes_the_rule_raise(rule: Rule | StackRule) -> None:
    for case in CASES:
        if case.rule == rule.id:
            for _, things in with_each(case.things, REMOVE):
                analyze(*things, rules=[rule])


def test_no_missing_key_and_no_unknown_makes_any_rule_raise() -> None:
    """Every rule over every case; a share of the places by default, all with TRAINYARD_POLICY_SWEEP=1."""
    count = 0
    for index, case in enumerate(CASES):
        rules = [rule for rule in RULES if not rule.types or rule.types & {thing.type for thing in case.things}]
        for value in (REMOVE, UNKNOWN):
            for _, things in itertools.islice(with_each(case.things, value), index % SHARE, None, SHARE):
                analyze(*things, rules=rules)
                count += 1
    assert count > len(CASES)


def test_a_rule_that_needs_an_unknown_value_says_so_once_and_the_others_still_run() -> None:
    def unknown(name: str) -> Thing:
        return Thing(type=b.lustre().type, name=name, properties={"deploymentType": UNKNOWN, "perUnitStorageThroughput": 200})

    said = analyze(unknown("a"), unknown("b"))
    (once,) = not_evaluated(said, "FSX02")
    assert "needs a.deploymentType, b.deploymentType" in once
    assert len(not_evaluated(said, "FSX03")) == 1


def test_an_unknown_in_one_part_does_not_hide_a_violation_in_another() -> None:
    pool = b.node_pool({"spec/disruption/budgets": [{"nodes": UNKNOWN}, {"nodes": "150%"}]})
    said = analyze(pool)
    assert "budgets[1].nodes is 150%" in violations(said, "KRP03")[0]
    assert "p5.spec.disruption.budgets[0].nodes" in not_evaluated(said, "KRP03")[0]


@pytest.mark.parametrize("sources", [["nodes", "all"], ["nodes", "cluster"]])
@pytest.mark.parametrize("groups", [UNKNOWN, [UNKNOWN]])
def test_which_group_an_interface_carries_is_not_decided_where_another_has_groups_too(sources: list[str], groups: object) -> None:
    interfaces = [{"securityGroups": groups}, {"interfaceType": "efa-only", "networkCardIndex": 1, "securityGroups": groups}]
    template = Thing(
        type=tokens.LAUNCH_TEMPLATE,
        name="template",
        properties={"networkInterfaces": interfaces},
        sources={"networkInterfaces": sources},
    )
    said = analyze(group("nodes", **CLOSED), group("all", **OPEN), CLUSTER, template, rules=[RULE_BY_ID["EFA04"]])
    assert violations(said, "EFA04") == []
    assert "needs template.networkInterfaces[1].securityGroups" in not_evaluated(said, "EFA04")[0]


def test_a_list_of_groups_is_not_decided_where_others_than_groups_give_it_members() -> None:
    template = Thing(
        type=tokens.LAUNCH_TEMPLATE,
        name="template",
        properties={"networkInterfaces": [{"interfaceType": "efa"}], "vpcSecurityGroupIds": UNKNOWN},
        sources={"vpcSecurityGroupIds": ["nodes", "cluster"]},
    )
    said = analyze(group("nodes", **CLOSED), template, rules=[RULE_BY_ID["EFA04"]])
    assert violations(said, "EFA04") == []
    assert "needs template.vpcSecurityGroupIds" in not_evaluated(said, "EFA04")[0]


@pytest.mark.parametrize("dns", [UNKNOWN, "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com"])
@pytest.mark.parametrize("handle", ["my-volume", "fs-0123456789abcdef0/a"])
@pytest.mark.parametrize("files", [FILES, MADE])
def test_a_volume_is_of_the_file_system_that_gives_its_values_whatever_the_handle(files: Thing, handle: str, dns: str) -> None:
    of_files = volume({f"{CSI}/volumeHandle": handle, f"{CSI}/volumeAttributes": {"dnsname": dns, "mountname": "fsx"}}, FROM_FILES)
    (said,) = violations(analyze(files, of_files, rules=[RULE_BY_ID["CSI04"]]), "CSI04")
    assert "only SCRATCH_1 is called fsx, and this is PERSISTENT_2" in said


@pytest.mark.parametrize(
    ("own", "first", "place"),
    [
        ({"id": UNKNOWN}, [UNKNOWN], "front.id"),
        ({}, [UNKNOWN], "template.networkInterfaces[0].securityGroups[0]"),
        ({}, UNKNOWN, "template.networkInterfaces[0].securityGroups"),
    ],
)
def test_the_ids_of_one_interface_are_not_taken_for_a_group_that_another_is_to_get(own: dict[str, Any], first: Any, place: str) -> None:
    said = analyze(group("front", **CLOSED, **own), two_lists(first, ["sg-0abc"]), rules=[RULE_BY_ID["EFA04"]])
    assert violations(said, "EFA04") == []
    assert f"needs {place}," in not_evaluated(said, "EFA04")[0]


@pytest.mark.parametrize(
    ("things", "place"),
    [
        ((replace(MADE_ENTRY, sources={"principalArn": ["elsewhere"]}), policy_of("elsewhere")), "policy.principalArn"),
        ((MADE_ROLE, MADE_ENTRY, policy_of()), "policy.principalArn"),
        ((MADE_ROLE, MADE_ENTRY, policy_of("elsewhere")), "policy.principalArn"),
        ((MADE_ROLE, replace(MADE_ENTRY, sources={}), policy_of("role")), "policy.principalArn"),
        ((replace(MADE_ENTRY, sources={}), policy("admin")), "node.principalArn"),
        ((replace(MADE_ROLE, properties={"name": "admin"}), MADE_ENTRY, policy("admin")), "node.principalArn"),
        ((replace(MADE_ROLE, properties={"name": UNKNOWN}), MADE_ENTRY, policy("admin")), "node.principalArn"),
        ((in_cluster(entry(), "a"), of_cluster(policy())), "policy.clusterName"),
        ((TRAINING, of_cluster(entry(), "training"), in_cluster(policy(), "training")), "node.clusterName"),
        ((TRAINING, of_cluster(entry(), "training"), of_cluster(policy(), "elsewhere")), "policy.clusterName"),
    ],
)
def test_whether_a_policy_is_for_an_entry_is_not_decided_unless_their_sources_tell(things: tuple[Thing, ...], place: str) -> None:
    said = analyze(*things, rules=[RULE_BY_ID["EKS02"]])
    assert violations(said, "EKS02") == []
    needed = not_evaluated(said, "EKS02")[0].partition("needs ")[2].partition(", which")[0]
    assert place in needed.split(", ")


@pytest.mark.parametrize(
    ("term", "place"),
    [
        ({"id": UNKNOWN}, "id"),
        ({"name": UNKNOWN}, "name"),
        ({"tags": UNKNOWN}, "tags"),
        ({"tags": {"team": "ml", "pool": UNKNOWN}}, "tags.pool"),
    ],
)
def test_what_a_term_that_is_not_known_selects_is_not_decided(term: dict[str, object], place: str) -> None:
    said = analyze(group("nodes", **CLOSED, **ML, id="sg-1", name="nodes"), carrying(ML, term), rules=[RULE_BY_ID["EFA04"]])
    assert violations(said, "EFA04") == []
    assert f"needs p5-class.spec.securityGroupSelectorTerms[1].{place}," in not_evaluated(said, "EFA04")[0]


@pytest.mark.parametrize(
    ("kept", "place"),
    [
        ({"tags": {"team": UNKNOWN, "kind": "nodes"}}, "more.tags.team"),
        ({"tags": {"team": UNKNOWN, "kind": "files"}}, None),
        ({"tags": UNKNOWN}, "more.tags"),
        ({"tags": {"team": "ml"}, "tagsAll": UNKNOWN}, "more.tagsAll"),
        ({"id": UNKNOWN}, None),
    ],
)
def test_tags_that_are_not_known_yet_may_be_what_a_term_selects(kept: dict[str, object], place: str | None) -> None:
    said = analyze(group("all", **OPEN, **ML), group("more", **CLOSED, **kept), carrying(ML), rules=[RULE_BY_ID["EFA04"]])
    assert violations(said, "EFA04") == []
    assert [f"needs {place}," in each for each in not_evaluated(said, "EFA04")] == ([True] if place else [])


def test_a_type_that_no_rule_knows_is_passed_over() -> None:
    thing = Thing(type="acme:storage:Lustre", properties={"deploymentType": "SCRATCH_2", "perUnitStorageThroughput": 200})
    assert analyze(thing) == []


def test_a_rule_that_need_not_wait_refuses_when_the_resource_is_registered_and_only_once() -> None:
    pool = b.node_pool({"spec/template/spec/requirements/1/values": ["us-east-1a", "us-east-1b"]})
    efa = b.node_class({"spec/networkInterfaces": [{"interfaceType": "interface"}, {"interfaceType": "efa-only"}]})
    service = Service(RULES)
    assert violations(registered(service, pool), "EFA05") == [], "its class may yet come"
    assert len(violations(registered(service, efa), "EFA05")) == 1
    assert violations(registered(service, b.cpu_pool()), "EFA05") == []
    assert len(violations(analyze(pool, efa, b.cpu_pool()), "EFA05")) == 1


def test_at_update_a_stack_rule_sees_the_inputs_and_not_the_provider_s_defaults() -> None:
    group = b.efa_group(ingress=[SELF], egress=[OUT])
    service = Service(RULES)
    registered(service, group)
    request = analyzer_pb2.AnalyzeStackRequest()
    resource = request.resources.add(type=group.type, urn=group.urn, name=group.name)
    json_format.ParseDict({"description": "", "egress": [SELF], "ingress": [SELF]}, resource.properties)
    assert "egress" in service.AnalyzeStack(request, None).diagnostics[0].message


def test_a_parallel_size_of_nothing_is_refused_and_divides_nothing() -> None:
    """Sizes of 0 stand in for every number that a rule divides by."""
    for case in CASES:
        if case.rule in ("PAR01", "PAR02", "DSP01"):
            for _, things in with_each(case.things, 0):
                analyze(*things, rules=[RULE_BY_ID[case.rule]])


def test_a_rendezvous_that_a_config_map_may_hold_is_not_decided() -> None:
    said = analyze(shell("torchrun --nnodes=4 train.py", **{ENV_FROM: SET}), rules=[RULE_BY_ID["JOB03"]])
    assert violations(said, "JOB03") == []
    assert "pretrain.spec.template.spec.containers[0].envFrom" in not_evaluated(said, "JOB03")[0]


@pytest.mark.parametrize("count", ["$NP", "$((4 * 8))", "`wc -l < /etc/mpi/hostfile`", "$(wc -l < /etc/mpi/hostfile)"])
def test_a_number_of_processes_that_only_the_shell_knows_is_not_decided(count: str) -> None:
    said = analyze(b.mpi_job({b.LAUNCHER_COMMAND: ["bash", "-c", f"mpirun -np {count} ./train"]}), rules=[RULE_BY_ID["MPI02"]])
    assert violations(said, "MPI02") == []
    assert "containers[0].command" in not_evaluated(said, "MPI02")[0]


def test_an_unknown_variable_matters_only_where_it_is_used() -> None:
    env = [{"name": "BUCKET", "value": UNKNOWN}, {"name": "NP", "value": "32"}]
    launcher = {"spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/env": env}
    for count, decided in (("$(NP)", True), ("$(BUCKET)", False)):
        said = analyze(
            b.mpi_job({**launcher, b.LAUNCHER_COMMAND: ["mpirun", "-x", "A=$(BUCKET)", "-np", count, "x"]}), rules=[RULE_BY_ID["MPI02"]]
        )
        assert violations(said, "MPI02") == []
        assert bool(not_evaluated(said, "MPI02")) is not decided


def test_user_data_that_is_not_known_may_set_huge_pages_aside() -> None:
    said = analyze(b.node_class({USER_DATA: UNKNOWN}), b.node_pool(), hungry(**IN_P5))
    assert violations(said, "POD05") == []
    assert any("p5-class.spec.userData" in each for each in not_evaluated(said, "POD05"))
