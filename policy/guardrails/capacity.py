"""Reserved capacity: capacity blocks, reservations that Karpenter uses, and jobs that end before their block."""

import datetime
from typing import Any

from guardrails import clock, reserved_zone
from guardrails.facts import load
from guardrails.launch import groups_with, pools_with
from guardrails.links import targets
from guardrails.node import Node
from guardrails.placing import selects
from guardrails.pool import CAPACITY_TYPE, allowed_values, capacity_types
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import pod_templates
from guardrails.tokens import (
    CAPACITY_BLOCK,
    CAPACITY_RESERVATION,
    JOB,
    LAUNCH_TEMPLATE,
    MPI_JOB,
    NODE_CLASS,
    NODE_GROUP,
    NODE_POOL,
    PYTORCH_JOB,
    SCALING_GROUP,
    SUBNET,
)
from guardrails.zones import group_words, group_zones

_BLOCK = "capacity-block"
_GROUP_BLOCK = "CAPACITY_BLOCK"
_RESERVED = "reserved"
_BLOCK_LABEL = "karpenter.k8s.aws/capacity-reservation-type"
_DEADLINES = {
    JOB: ("spec", "activeDeadlineSeconds"),
    **dict.fromkeys((MPI_JOB, PYTORCH_JOB), ("spec", "runPolicy", "activeDeadlineSeconds")),
}


def _blocks(program: Program, report: Report) -> None:
    _ends(program, report)
    for template in program.of(LAUNCH_TEMPLATE):
        groups = list(groups_with(program, template))
        with report.part():
            reserved_zone.of_groups(program, template, report)
        with report.part():
            wanted = template.at("instanceMarketOptions", "marketType").text() == _BLOCK
            for group in groups:
                with report.part():
                    _block_group(program, template, group, wanted, report)
    for group in program.of(NODE_GROUP):
        with report.part():
            if group.at("capacityType").text() == _GROUP_BLOCK and not group.at("launchTemplate").present:
                report.refuse(group, group.at("launchTemplate"), allowed=f"one that names the reservation, with {_GROUP_BLOCK}")


def _ends(program: Program, report: Report) -> None:
    """A reservation ends at a date, or when it is cancelled."""
    for reservation in program.of(CAPACITY_RESERVATION):
        with report.part():
            kind, date = reservation.at("endDateType").text(), reservation.at("endDate")
            if kind == "limited" and not date.text():
                report.refuse(reservation, date, allowed="a date, because endDateType is limited")
            elif kind == "unlimited" and date.text():
                report.refuse(reservation, date, allowed="unset, because endDateType is unlimited")


def _block_group(program: Program, template: Resource, group: Resource, wanted: bool, report: Report) -> None:
    kind = group.at("capacityType")
    if not wanted and kind.text() != _GROUP_BLOCK:
        return
    if kind.text() != _GROUP_BLOCK:
        report.refuse(group, kind, allowed=f"{_GROUP_BLOCK}, because template {template.name} buys from a capacity block")
    if not wanted:
        market = template.at("instanceMarketOptions", "marketType")
        report.refuse(template, market, allowed=f"{_BLOCK}, because group {group.name} is of {_GROUP_BLOCK}")
    reservation = template.at("capacityReservationSpecification", "capacityReservationTarget", "capacityReservationId")
    if not reservation.present:
        report.refuse(template, reservation, allowed="the id of the block's reservation")
    if not template.at("instanceType").present:
        report.refuse(template, template.at("instanceType"), allowed="the block's instance type, here and not in the group")
    types = group.at("instanceTypes")
    if types.present and types.value != []:
        report.refuse(group, types, allowed="unset: the launch template names the type")
    _block_place(program, template, group, report)


def _block_place(program: Program, template: Resource, group: Resource, report: Report) -> None:
    place = group.at("subnetIds")
    with report.part():
        _one_zone(program, group, place, report)
    for block in targets(program, template, "capacityReservationSpecification", CAPACITY_RESERVATION, CAPACITY_BLOCK):
        most, size = group.at("scalingConfig", "maxSize"), block.at("instanceCount").integer()
        if size is not None and (most.integer() or 0) > size:
            report.refuse(group, most, allowed=f"at most {size}, the instances of {block.name}")
        zone = block.at("availabilityZone")
        for subnet in targets(program, group, "subnetIds", SUBNET):
            own = subnet.at("availabilityZone")
            if zone.present and own.present and zone.text() != own.text():
                report.refuse(group, place, allowed=f"a subnet in {zone.text()}, the zone of {block.name}", found=f"in {own.text()}")


def _one_zone(program: Program, group: Resource, place: Node, report: Report) -> None:
    zones = group_zones(program, group)
    if len(list(place.elements())) != 1 and zones.most != 1:
        report.refuse(group, place, allowed="one subnet, or several in one zone, the block's", found=group_words(group, zones))


def _reservations(program: Program, report: Report) -> None:
    for node_class in program.of(NODE_CLASS):
        with report.part():
            place = node_class.at("spec", "capacityReservationSelectorTerms")
            terms = list(place.elements())
            for term in terms:
                with report.part():
                    _term(node_class, term, report)
            pools: list[Resource] = []
            are_all = False
            with report.part():
                for pool in pools_with(program, node_class):
                    pools.append(pool)
                are_all = True
            for pool in pools:
                with report.part():
                    if terms:
                        # Another pool that uses the reservations may yet come.
                        if program.whole and are_all and not any(_RESERVED in capacity_types(each) for each in pools):
                            _idle(node_class, pool, report)
                    else:
                        _without_terms(node_class, pool, place, report)
        with report.part():
            reserved_zone.of_pools(program, node_class, report)


def _term(node_class: Resource, term: Node, report: Report) -> None:
    given = [key for key in ("id", "tags", "instanceMatchCriteria", "ownerID") if term.at(key).present]
    if "id" in given and len(given) > 1:
        report.refuse(node_class, term, allowed="an id alone", found=f"id beside {', '.join(given[1:])}")
    elif not set(given) - {"ownerID"}:
        report.refuse(node_class, term, allowed="an id, tags or instanceMatchCriteria", found="empty")


def _idle(node_class: Resource, pool: Resource, report: Report) -> None:
    place = pool.at("spec", "template", "spec", "requirements")
    allowed = f"{_RESERVED} too, because {node_class.name} names reservations, which stay idle else"
    report.refuse(pool, place, allowed=allowed, found=f"capacity type {', '.join(capacity_types(pool)) or 'none'}")


def _without_terms(node_class: Resource, pool: Resource, terms: Node, report: Report) -> None:
    kinds, named = capacity_types(pool), allowed_values(pool, CAPACITY_TYPE)
    if kinds == [_RESERVED] or _RESERVED in (named or ()):
        # Beside another type it is only of no use.
        tell = report.refuse if kinds == [_RESERVED] else report.advise
        allowed = f"the reservations of pool {pool.name}, which asks for {_RESERVED}: open ones are not found by themselves"
        tell(node_class, terms, allowed=allowed, found="unset" if not terms.present else "empty")


def _deadlines(program: Program, report: Report) -> None:
    lead = datetime.timedelta(minutes=load("placement")["blockLeadMinutes"])
    for pool in program.of(NODE_POOL):
        with report.part():
            if _BLOCK in (allowed_values(pool, _BLOCK_LABEL) or ()):
                end = _end_of(program, pool)
                for job in program.of(*_DEADLINES):
                    with report.part():
                        _deadline(job, pool, end, lead, report)


def _end_of(program: Program, pool: Resource) -> datetime.datetime | None:
    """When the first reservation of the pool's class ends, where the program says so."""
    ends: list[datetime.datetime] = []
    for node_class in program.of(NODE_CLASS):
        if any(each is pool for each in pools_with(program, node_class)):
            for block in targets(program, node_class, "spec", CAPACITY_RESERVATION, CAPACITY_BLOCK):
                ends += [moment] if (moment := _moment(block.at("endDate").text())) else []
    return min(ends, default=None)


def _moment(text: str) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _deadline(job: Resource, pool: Resource, end: datetime.datetime | None, lead: datetime.timedelta, report: Report) -> None:
    if not any(selects(template, pool) for template in pod_templates(job)):
        return
    place = job.at(*_DEADLINES[job.type])
    seconds = place.integer()
    if seconds is None:
        allowed = f"a deadline 40 minutes before the capacity block of {pool.name} ends"
        report.refuse(job, place, allowed=allowed)
    elif end is not None and seconds > (left := (end - clock.now() - lead).total_seconds()):
        allowed = f"at most {max(0, int(left))}, the seconds until 40 minutes before the capacity block of {pool.name} ends"
        report.refuse(job, place, allowed=allowed)


def _bought(kind: str) -> tuple[Example, ...]:
    target = {"capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}}
    template = {
        "name": "block",
        "instanceType": "p5.48xlarge",
        "instanceMarketOptions": {"marketType": _BLOCK},
        "capacityReservationSpecification": target,
    }
    group = {"capacityType": kind, "subnetIds": ["subnet-1"], "launchTemplate": {"name": "block", "version": "1"}}
    return Example(LAUNCH_TEMPLATE, template, name="template"), Example(NODE_GROUP, group, name="group")


def _reserved(*kinds: str, **requirement: Any) -> tuple[Example, ...]:
    requirements = [{"key": CAPACITY_TYPE, "operator": "In", "values": list(kinds)}, *requirement.get("more", ())]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "p5"}
    template = {"metadata": {"labels": {"pool": "p5"}}, "spec": {"nodeClassRef": reference, "requirements": requirements}}
    terms = [{"id": "cr-0123456789abcdef0"}]
    return (
        Example(NODE_CLASS, {"metadata": {"name": "p5"}, "spec": {"capacityReservationSelectorTerms": terms}}, name="p5-class"),
        Example(NODE_POOL, {"metadata": {"name": "p5"}, "spec": {"template": template}}, name="p5"),
    )


def _job(**spec: Any) -> Example:
    template = {"spec": {"nodeSelector": {"pool": "p5"}, "containers": [{"name": "trainer"}]}}
    return Example(JOB, {"metadata": {"name": "pretrain"}, "spec": {"template": template, **spec}}, name="pretrain")


_OF_BLOCKS = {"more": [{"key": _BLOCK_LABEL, "operator": "In", "values": [_BLOCK]}]}

RULES = (
    StackRule(
        id="CR01",
        name="node-group-require-whole-capacity-block",
        title="A node group on a capacity block says so in the group and in its launch template; a reservation is used in its zone and "
        "ends as it says",
        check=_blocks,
        types=frozenset({LAUNCH_TEMPLATE, NODE_GROUP, SCALING_GROUP, CAPACITY_RESERVATION, CAPACITY_BLOCK, SUBNET}),
        why="EKS refuses the group, or it waits for capacity beside a block or reservation that is paid for.",
        fix="set capacityType CAPACITY_BLOCK on the group; marketType capacity-block, the reservation and the type on the template; choose "
        "subnets in the zone of the reservation.",
        source="EKS guide: capacity blocks with managed node groups; aws-parallelcluster CapacityBlockValidator; botocore 1.44.8 ec2 "
        "model, CreateCapacityReservation",
        valid=_bought(_GROUP_BLOCK),
        invalid=_bought("ON_DEMAND"),
    ),
    StackRule(
        id="CR02",
        name="node-pool-require-reserved-type",
        title="Reservations and the capacity type reserved go together, in one zone",
        check=_reservations,
        types=frozenset({NODE_CLASS, NODE_POOL, CAPACITY_RESERVATION, SUBNET}),
        early=True,
        why="nodes are bought on demand beside an idle reservation, or the pool never finds capacity.",
        fix="allow reserved in the pool, in the zone of the reservations, and name these in the EC2NodeClass.",
        source="karpenter-provider-aws 1.14.1 tasks/odcrs and instance.go (getCapacityType)",
        valid=_reserved(_RESERVED, "on-demand"),
        invalid=_reserved("on-demand"),
    ),
    StackRule(
        id="CR03",
        name="job-require-deadline-within-block",
        title="A job on a capacity block ends before the block does",
        check=_deadlines,
        types=frozenset({NODE_POOL, NODE_CLASS, CAPACITY_RESERVATION, CAPACITY_BLOCK, *_DEADLINES}),
        mandatory=False,
        why="EC2 ends the instances 30 minutes before the block, and Karpenter drains 10 minutes before that: the job dies mid-step.",
        fix="set activeDeadlineSeconds to less than what is left of the block, minus 40 minutes.",
        source="karpenter-provider-aws 1.14.1 tasks/odcrs",
        valid=(*_reserved(_RESERVED, **_OF_BLOCKS), _job(activeDeadlineSeconds=72000)),
        invalid=(*_reserved(_RESERVED, **_OF_BLOCKS), _job()),
    ),
)
