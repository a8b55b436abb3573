"""The names under which pods of a job find each other: which there are, and in which domain."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from guardrails.node import Node
from guardrails.rule import Resource
from guardrails.template import WORKER, PodTemplate, pod_templates
from guardrails.tokens import JOB, JOB_SET, PYTORCH_JOB, STATEFUL_SET
from guardrails.training_operator import ROLES, is_elastic, pods_to_train

_INDEX = r"([0-9]{1,9}|\$\w+|\$\{\w+\}|\$\(\w+\))"
_INDEXED = re.compile(rf".*-{_INDEX}")
_SHELL = re.compile(r"[$`]")


@dataclass(frozen=True)
class Hosts:
    """Pods called after what makes them, with an index, or one for each of its parts."""

    prefix: str
    indices: Sequence[range]
    domain: str | None = None
    """The name of their headless Service, empty where they have none; None where it is not known, or is not needed."""

    def indices_of(self, name: str) -> Sequence[str] | None:
        """The indices in a name; None where it is of another prefix."""
        matched = re.fullmatch(re.escape(self.prefix) + f"-{_INDEX}" * len(self.indices), name)
        return matched.groups() if matched else None

    def named(self, end: int) -> str:
        """The first (0) or last (-1) name of all."""
        return "-".join((self.prefix, *(str(each[end]) for each in self.indices)))


def hosts_of(resource: Resource) -> Iterator[Hosts]:
    """The pods of each of a resource's templates, in their order; nothing of a kind whose pods have no names that can be told."""
    make = _HOSTS.get(resource.type)
    if make is not None:
        yield from make(resource)


def looks_elsewhere(template: PodTemplate) -> bool:
    """Whether pods have hosts of their own making, or other places to look for names."""
    return any(template.spec.at(*keys).present for keys in (("hostAliases",), ("dnsConfig", "searches")))


def allowed_for(resource: Resource, host: str) -> str | None:
    """What else a host should be called that has the name of a pod of the resource and is none; None where it may be one.

    A name of another prefix may be that of a Service, as may one in a namespace.
    """
    name, _, domain = host.partition(".")
    if resource.type not in _HOSTS or not _INDEXED.fullmatch(name) or not resource.at("metadata", "name").present:
        return None
    known = ((hosts, hosts.indices_of(name)) for hosts in hosts_of(resource))
    hosts, indices = next((each for each in known if each[1] is not None), (None, None))
    if hosts is not None and indices is not None:
        allowed = _allowed(hosts, indices, name, domain)
    else:
        allowed = _allowed_in_set(resource, name, domain.partition(".")[0]) if resource.type == JOB_SET else None
    # The namespace may well be unknown, and only matters for what would be refused.
    return allowed if allowed and _is_among_pods(resource, domain) else None


def _is_among_pods(resource: Resource, domain: str) -> bool:
    """Whether a name in the domain is a pod's: of a PyTorchJob each has a Service of its own, of others one for all."""
    first, _, rest = domain.partition(".")
    namespace = resource.at("metadata", "namespace")
    if resource.type == PYTORCH_JOB:
        return not domain or first == namespace.value
    return bool(domain) and rest.partition(".")[0] != "svc" and domain != namespace.value


def _allowed(hosts: Hosts, indices: Sequence[str], name: str, domain: str) -> str | None:
    if not all(hosts.indices):
        # What is scaled to none now is meant to have pods later; a role that is left out is not.
        return f"a pod that is there: there is no {hosts.prefix}" if hosts.domain is None else None
    if any(index.isdigit() and int(index) not in known for index, known in zip(indices, hosts.indices, strict=True)):
        return f"a pod that is there, {' to '.join(dict.fromkeys(hosts.named(end) for end in (0, -1)))}"
    if hosts.domain is None or _SHELL.search(domain) or domain.partition(".")[0] == hosts.domain:
        return None
    return f"{name}.{hosts.domain}, the pods' headless Service" if hosts.domain else "network.enableDNSHostnames: true"


def _allowed_in_set(jobs: Resource, name: str, domain: str) -> str | None:
    """A name without a part of a pod's, or one under the JobSet's own Service, of no group; another may share a chosen domain."""
    own = jobs.at("metadata", "name").text()
    is_own = domain == own and not jobs.at("spec", "network", "subdomain").present
    whole = _whole_name(jobs, name, domain, own if is_own else "")
    if whole or not is_own or not re.fullmatch(rf"{re.escape(own)}-.+-{_INDEX}-{_INDEX}", name):
        return whole
    groups = [group.at("name").text() for group in jobs.at("spec", "replicatedJobs").elements()]
    return f"a pod of a group that is there: {', '.join(groups)}"


def _whole_name(jobs: Resource, name: str, domain: str, own: str) -> str | None:
    """A pod's name in place of one with an index too few, or of `own` and indices alone; what a variable stands for may be two of them."""
    matched = re.fullmatch(r"(.+?)-[0-9]{1,9}", name)
    if matched is None or any(template.spec.at("hostname").text() == name for template in pod_templates(jobs)):
        return None
    without_group = bool(own) and re.fullmatch(rf"{re.escape(own)}(?:-[0-9]{{1,9}}){{1,2}}", name) is not None
    for hosts in _of_job_set(jobs):
        if hosts.domain and hosts.domain == domain and all(hosts.indices) and (without_group or hosts.prefix == matched[1]):
            return f"{hosts.named(0)}.{domain}: a pod is called after its group, by the index of its Job and its own"
    return None


def _of_job(job: Resource) -> Iterator[Hosts]:
    spec = job.at("spec")
    subdomain = spec.at("template", "spec", "subdomain")
    yield Hosts(job.at("metadata", "name").text(), (_completed(spec),), subdomain.text() if subdomain.present else None)


def _of_job_set(jobs: Resource) -> Iterator[Hosts]:
    name, network = jobs.at("metadata", "name").text(), jobs.at("spec", "network")
    subdomain = network.at("subdomain").text() or name
    for group in jobs.at("spec", "replicatedJobs").elements():
        spec, replicas = group.at("template", "spec"), group.at("replicas").integer()
        # Without the JobSet's Service there may be one of the pods' own.
        domain = spec.at("template", "spec", "subdomain").text() if network.at("enableDNSHostnames").value is False else subdomain
        yield Hosts(f"{name}-{group.at('name').text()}", (range(1 if replicas is None else replicas), _completed(spec)), domain)


def _of_stateful_set(owner: Resource) -> Iterator[Hosts]:
    spec = owner.at("spec")
    first, replicas, service = spec.at("ordinals", "start").integer() or 0, spec.at("replicas").integer(), spec.at("serviceName")
    ordinals = range(first, first + (1 if replicas is None else replicas))
    yield Hosts(owner.at("metadata", "name").text(), (ordinals,), service.text() if service.present else None)


def _of_pytorch_job(job: Resource) -> Iterator[Hosts]:
    """Each pod has a Service of its own name."""
    name, pods = job.at("metadata", "name").text(), {each.role: each.replicas for each in pod_templates(job)}
    if is_elastic(job):
        pods[WORKER] = max(pods.get(WORKER, 0), pods_to_train(job, pods.get(WORKER, 0))[1])
    yield from (Hosts(f"{name}-{role.lower()}", (range(pods.get(role, 0)),)) for role in ROLES)


def _completed(spec: Node) -> range:
    """The indices of a Job's pods."""
    completions, parallelism = spec.at("completions").integer(), spec.at("parallelism").integer()
    return range(next((number for number in (completions, parallelism) if number is not None), 1))


_HOSTS: Mapping[str, Callable[[Resource], Iterator[Hosts]]] = {
    JOB: _of_job,
    JOB_SET: _of_job_set,
    STATEFUL_SET: _of_stateful_set,
    PYTORCH_JOB: _of_pytorch_job,
}
