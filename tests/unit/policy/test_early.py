"""What rules that need not wait say as resources arrive, and what they leave until all are there."""

import pytest

from guardrails import RULES, placing, pool
from guardrails.service import Service
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing, analyze, registered, violations
from tests.unit.policy.cases import network

pytestmark = pytest.mark.policy


def test_subnets_without_ids_do_not_refuse_a_group_before_all_is_known() -> None:
    """While resources arrive none has an id, so that which subnets a group has is only told in the end."""
    template = network.template(network.nics(1), id="lt-1")
    group = network.node_group(2, network.PAIR, launchTemplate={"id": "lt-1"}, subnetIds=["subnet-1", "subnet-2"])
    for subnets, count in ((network.TWO_IN_A, 0), (network.IN_A_AND_B, 1)):
        service = Service(RULES)
        for thing in (*subnets, template, group):
            assert violations(registered(service, thing), "EFA05") == []
        assert len(violations(analyze(*subnets, template, group, service=service), "EFA05")) == count
    service = Service(RULES)
    registered(service, template)
    assert len(violations(registered(service, group), "EFA05")) == 1, "no subnet is made here, and none will come"


def test_subnets_that_a_class_selects_by_tags_may_come_after_it() -> None:
    pool, node_class = network.NO_ZONE, network.node_class(network.nics(1))
    late = [network.zoned(zone, zone, tags={"pool": "p5"}) for zone in (network.A, network.B)]
    service = Service(RULES)
    assert [violations(registered(service, thing), "EFA05") for thing in (pool, node_class, late[0])] == [[], [], []]
    assert violations(analyze(pool, node_class, late[0], service=service), "EFA05") == []
    assert len(violations(registered(service, late[1]), "EFA05")) == 1


def _pool(number: int) -> Thing:
    return b.node_pool(
        {"metadata/name": f"pool-{number}", "spec/template/metadata/labels": {"team": f"team-{number}"}}, name=f"pool-{number}"
    )


def _job(number: int, seconds: int = 60) -> Thing:
    pod = {"nodeSelector": {"team": f"team-{number}"}, "terminationGracePeriodSeconds": seconds}
    made = b.volcano_job({"metadata/name": f"job-{number}", **{f"spec/tasks/0/template/spec/{key}": value for key, value in pod.items()}})
    return Thing(type=made.type, name=f"job-{number}", properties=made.properties)


def test_a_pair_of_job_and_pool_is_compared_once_however_many_resources_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that looked at all pairs again with each resource would take hours over a program of thousands."""
    compared, read = [], []
    offers, said = placing.is_offered, pool._types_left
    monkeypatch.setattr(placing, "is_offered", lambda *pair: compared.append(pair) or offers(*pair))
    monkeypatch.setattr(pool, "_types_left", lambda *left: read.append(left) or said(*left))
    count = 6
    things = [thing for number in range(count) for thing in (_pool(number), _job(number))]
    analyze(*things)
    assert 0 < len(compared) <= count * count
    assert 0 < len(read) <= 3 * count


@pytest.mark.parametrize("jobs_first", [False, True])
def test_what_comes_last_is_compared_with_all_that_was_there(jobs_first: bool) -> None:
    pools = [_pool(number) for number in range(3)]
    jobs = [_job(number, seconds=7200) for number in range(3)]
    for each in pools:
        each.properties["spec"]["template"]["spec"]["terminationGracePeriod"] = "1h"
    service = Service(RULES)
    first, last = (jobs, pools) if jobs_first else (pools, jobs)
    assert not any(violations(registered(service, thing), "KRP05") for thing in first)
    assert [len(violations(registered(service, thing), "KRP05")) for thing in last] == [1, 1, 1]
    assert violations(analyze(*first, *last, service=service), "KRP05") == [], "each is told once"
