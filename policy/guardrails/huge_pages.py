"""Huge pages: what pods ask for and mount, and what their nodes set aside."""

import re
from collections.abc import Iterator

from guardrails.launch import class_of, launchers_with, user_data, user_data_of
from guardrails.node import Node, shown
from guardrails.placing import chooses_nodes, may_take, names_pools, pools_of
from guardrails.pod_requests import KINDS, asked, names
from guardrails.program import Program
from guardrails.quantity import MEBIBYTE, quantity
from guardrails.rule import Report, Resource
from guardrails.template import EFA, POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import LAUNCH_TEMPLATE, NODE_POOL

_PAGES = re.compile(r"hugepages-([0-9]+[KMG]i)")
# The EFA driver's set-up on EKS keeps 5128 pages of 2 MiB on each node.
_MOST_WITH_EFA = 5128 * 2 * MEBIBYTE
# Neither EKS nor AWS makes an image for these, and their own set-up sets other pages aside.
_SET_UP_BY_HAND = ("habana.ai/gaudi",)
# vm.nr_hugepages, a file of that name, or hugepages= of the kernel's command line; transparent ones are something else.
_SETS_PAGES = re.compile(r"hugepages")
_MEDIUM = "HugePages"


def check(program: Program, report: Report) -> None:
    """POD05: judge each pod that has come, and against its nodes once all are there."""
    for resource in program.news or program:
        with report.part():
            for template in pod_templates(resource) if resource.type in POD_TYPES else ():
                _huge_pages(program, resource, template, report)


def _huge_pages(program: Program, resource: Resource, template: PodTemplate, report: Report) -> None:
    with report.part():
        for holder in _holders(template):
            for name in names(holder, _PAGES):
                with report.part():
                    _limited(resource, holder, name, report)
    with report.part():
        _total(program, resource, template, report)
    with report.part():
        _volumes(resource, template, report)


def _holders(template: PodTemplate) -> list[Node]:
    """What has resources: the containers, and the pod itself."""
    return [*template.all_containers(), template.spec]


def _limited(resource: Resource, holder: Node, name: str, report: Report) -> None:
    request, limit = (holder.at("resources", kind, name) for kind in KINDS)
    page, wanted = quantity(name.removeprefix("hugepages-")) or 1, quantity(limit.text())
    if limit.present and wanted is None:
        report.refuse(resource, limit, allowed="a quantity such as 5120Mi")
    elif not limit.present or (request.present and quantity(request.text()) != wanted):
        report.refuse(resource, request, allowed=f"the same as the limit, which is {limit.text() or 'unset'}")
    elif wanted and wanted % page:
        report.refuse(resource, limit, allowed=f"a multiple of {name.removeprefix('hugepages-')}")
    if not any(holder.at("resources", kind, other).present for kind in KINDS for other in ("cpu", "memory")):
        report.refuse(resource, holder.at("resources"), allowed=f"cpu or memory beside {name}", found=f"only {name}")


def _total(program: Program, resource: Resource, template: PodTemplate, report: Report) -> None:
    """Nodes that may yet come may set more pages aside, so this is for the end."""
    total = asked(template, "hugepages-2Mi")
    if not program.whole or total <= _MOST_WITH_EFA or not template.requested(EFA):
        return
    if any(template.requested(device) for device in _SET_UP_BY_HAND) or _set_aside(program, template):
        return
    found = f"asking {_mib(total)} of hugepages-2Mi"
    allowed = f"at most {_mib(_MOST_WITH_EFA)}, the pages that an EFA node sets aside unless its user data sets them"
    report.refuse(resource, template.place, allowed=allowed, found=found)


def _set_aside(program: Program, template: PodTemplate) -> bool:
    """Whether the user data of any nodes that the pod may go to speaks of huge pages. Raises `Undecided` where only `up` knows."""
    # One that is known to set pages decides, whatever those of which only `up` knows turn out to say.
    sources = sorted(_launched_with(program, template), key=lambda source: not user_data_of(source).known)
    return any(_SETS_PAGES.search(user_data(source)) for source in sources)


def _launched_with(program: Program, template: PodTemplate) -> Iterator[Resource]:
    """The classes and launch templates of the nodes that the pod may go to."""
    pools = pools_of(program, template)
    classes = (class_of(program, pool) for pool in pools or ([] if chooses_nodes(template) else program.of(NODE_POOL)))
    yield from (node_class for node_class in classes if node_class is not None)
    if pools and names_pools(template):
        return
    for launch_template in program.of(LAUNCH_TEMPLATE):
        if any(may_take(program, group, template) for group in launchers_with(program, launch_template)):
            yield launch_template


def _volumes(resource: Resource, template: PodTemplate, report: Report) -> None:
    """The kubelet takes a volume's page size from its medium, or from the one size that the pod asks for."""
    for volume in template.spec.at("volumes").elements():
        medium = volume.at("emptyDir", "medium")
        if not medium.text().startswith(_MEDIUM):
            continue
        sizes = {name.removeprefix("hugepages-") for holder in _holders(template) for name in names(holder, _PAGES)}
        size = medium.text().removeprefix(_MEDIUM).removeprefix("-")
        if size and quantity(size) not in {quantity(each) for each in sizes}:
            report.refuse(resource, medium, allowed=f"hugepages-{size} among a container's limits, or medium Memory")
        elif not sizes:
            report.refuse(resource, medium, allowed="hugepages-2Mi among a container's limits, or medium Memory")
        elif not size and len(sizes) > 1:
            report.refuse(resource, medium, allowed=f"{' or '.join(f'{_MEDIUM}-{each}' for each in sorted(sizes))}: the pod asks for both")


def _mib(number: float) -> str:
    return f"{shown(int(number / MEBIBYTE))}Mi"
