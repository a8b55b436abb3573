"""What rules that need not wait say as resources arrive, and what they leave until all are there."""

import pytest

from guardrails import RULES
from guardrails.service import Service
from tests.unit.policy.analyzer import analyze, registered, violations
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
