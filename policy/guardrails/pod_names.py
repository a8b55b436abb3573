"""The Services that give pods their names: each selects the pods that are called under it, where they are."""

from collections.abc import Callable, Iterator, Mapping

from guardrails import gang
from guardrails.links import demand, indexed
from guardrails.meeting import host_of
from guardrails.node import Node
from guardrails.pod_hosts import Hosts, hosts_of, looks_elsewhere
from guardrails.program import Program
from guardrails.rule import Report, Resource
from guardrails.template import PodTemplate, pod_templates
from guardrails.tokens import JOB, JOB_SET, SERVICE, STATEFUL_SET
from guardrails.world import namespace

NAMED = (JOB, JOB_SET, STATEFUL_SET)
"""The kinds whose pods' names stand under a Service."""
_BY_CONTROLLERS = frozenset({"batch.kubernetes.io", "jobset.sigs.k8s.io", "apps.kubernetes.io", "statefulset.kubernetes.io"})
_OF_OLD = frozenset({"job-name", "controller-uid"})
_HEADLESS = "None"


def names(program: Program, report: Report) -> None:
    """JOB05: judge the Services of a program by the pods that stand under them."""
    for job in program.of(*NAMED) if program.has({SERVICE}) else ():
        with report.part():
            told = list(_told(job))
            for hosts, template in zip(hosts_of(job), pod_templates(job), strict=True):
                with report.part():
                    _of_pods(program, job, hosts, template, told, report)


def _told(job: Resource) -> Iterator[str]:
    """The addresses at which pods of the job look for each other."""
    for template in pod_templates(job):
        for container in template.all_containers():
            yield from map(host_of, gang.addresses(container, *gang.calls(container)))


def _of_pods(program: Program, job: Resource, hosts: Hosts, template: PodTemplate, told: list[str], report: Report) -> None:
    if not hosts.domain or not all(hosts.indices) or not job.at("metadata", "name").present:
        return
    # A pod that nobody looks for may do without a name; where nobody says whom he looks for, it may be one of these.
    looked_for = any(_is_one(job, hosts, host) for host in told)
    if looks_elsewhere(template) or not (looked_for or (not told and gang.size(job, template) > 1)):
        return
    known, unknown = indexed(program, SERVICE, "metadata", "name")
    called = known.get(hosts.domain, ())
    here = next((service for service in called if _written(service) == _written(job)), None)
    if here is not None:
        _selection(job, hosts, template, here, report.refuse if looked_for else report.advise)
    elif unknown is not None:
        demand(unknown)
    elif called:
        _namespaces(job, hosts, template, called[0], report)
    elif job.type != JOB_SET or job.at("spec", "network", "enableDNSHostnames").value is False:
        _called_otherwise(program, job, hosts, template, report)


def _is_one(job: Resource, hosts: Hosts, host: str) -> bool:
    """Whether a host is one of the pods under their Service, in their namespace."""
    name, domain, *rest = [*host.split("."), ""]
    return domain == hosts.domain and hosts.indices_of(name) is not None and rest[:1] in ([], [""], [namespace(job)])


def _written(resource: Resource) -> str:
    """The namespace as the program says it: one that is left out is the provider's."""
    return resource.at("metadata", "namespace").text()


def _selection(job: Resource, hosts: Hosts, template: PodTemplate, service: Resource, tell: Callable[..., None]) -> None:
    wrong = _foreign(job, hosts, template, service)
    if wrong is not None:
        place, had = wrong
        so = f"{had}, as in the pods of {job.name}" if had else f"a label that the pods of {job.name} have"
        tell(service, place, allowed=f"{so}: {hosts.named(0)}.{hosts.domain} is nobody's name otherwise")


def _foreign(job: Resource, hosts: Hosts, template: PodTemplate, service: Resource) -> tuple[Node, str] | None:
    """The first label that the Service wants and the pods have not, and what they have in its place."""
    if service.at("spec", "type").text() == "ExternalName":
        return None
    given, labels = _given(job, hosts), template.metadata.at("labels")
    for key, wanted in service.at("spec", "selector").entries():
        own, has = given.get(key, labels.at(key).text()), key in given or labels.at(key).present
        if key not in given and (key.partition("/")[0] in _BY_CONTROLLERS or key in _OF_OLD or ("/" in key and not own)):
            continue
        if own != wanted.text() or not has:
            return wanted, own
    return None


def _given(job: Resource, hosts: Hosts) -> Mapping[str, str]:
    """The labels that its controller gives each pod, as far as they tell one workload from another."""
    name = job.at("metadata", "name").text()
    if job.type == JOB:
        return dict.fromkeys(("job-name", "batch.kubernetes.io/job-name"), name)
    if job.type == JOB_SET:
        group = hosts.prefix.removeprefix(f"{name}-")
        return {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": group}
    return {}


def _is_theirs(job: Resource, hosts: Hosts, template: PodTemplate, service: Resource) -> bool:
    """Whether a headless Service selects the pods for sure."""
    labels = {**{key: value.text() for key, value in template.metadata.at("labels").entries()}, **_given(job, hosts)}
    selector = {key: value.text() for key, value in service.at("spec", "selector").entries()}
    return bool(selector) and selector.items() <= labels.items() and service.at("spec", "clusterIP").text() == _HEADLESS


def _namespaces(job: Resource, hosts: Hosts, template: PodTemplate, service: Resource, report: Report) -> None:
    """Another program may have a Service of that name where the pods are."""
    if _written(job) and _written(service) and _is_theirs(job, hosts, template, service):
        allowed = f"{_written(job)}, the namespace of the pods of {job.name}, which look for {hosts.domain} there"
        report.advise(service, service.at("metadata", "namespace"), allowed=allowed)


def _called_otherwise(program: Program, job: Resource, hosts: Hosts, template: PodTemplate, report: Report) -> None:
    for service in program.of(SERVICE):
        name = service.at("metadata", "name")
        if name.present and _written(service) == _written(job) and _is_theirs(job, hosts, template, service):
            allowed = f"{hosts.domain}, under which the pods of {job.name} have their names"
            report.advise(service, name, allowed=allowed)
            return
