"""Jobs whose pods are ranks: whole, at once, with an index and a host name."""

import re

from guardrails import gang, job_policy
from guardrails.meeting import host_of
from guardrails.node import Node
from guardrails.rule import Report, Resource
from guardrails.template import GPU, NEURON, PodTemplate, pod_templates
from guardrails.tokens import JOB, JOB_SET

_LEAST_PODS = "kueue.x-k8s.io/job-min-parallelism"
# Of <name>.<namespace>.svc the name is a Service's, of <name>.<service>.<namespace>.svc a pod's.
_POD_OF_SERVICE = re.compile(
    r"(.*(?:-[0-9]+|(?:HOSTNAME|hostname|POD_NAME).*[)}`]))\.[A-Za-z][\w-]*(?:\.(?!svc\b)[\w-]+(?:\.svc[\w.-]*)?)?"
)


def indexed(job: Resource, report: Report) -> None:
    """JOB01: judge a Job, or those that a CronJob or a JobSet makes."""
    if job.type == JOB_SET:
        for spec, template in jobs_of_set(job):
            job_policy.check(job, spec, report, indexed_unset=True)
            with report.part():
                _completion_in_set(job, spec, template, report)
        return
    spec = gang.job_spec(job)
    job_policy.check(job, spec, report)
    pods = spec.at("parallelism").integer()
    if pods is None or pods < 2:
        return
    if not _trains(job):
        _may_train(job, spec, pods, report)
        return
    for check in (_completion, _address, _restart, _all_at_once):
        with report.part():
            check(job, spec, pods, report)


def _trains(job: Resource) -> bool:
    """Whether the pods form one training run: they have devices, or a launcher of ranks, and do not work alone."""
    for template in pod_templates(job):
        computes = template.requested(GPU) or template.requested(NEURON) or any(gang.calls(one) for one in template.containers())
        if computes and gang.size(job, template) > 1:
            return True
    return False


def _may_train(job: Resource, spec: Node, pods: int, report: Report) -> None:
    """Pods with devices that all run at once may be copies that know nothing of each other, or ranks of a program that isn't seen."""
    mode = spec.at("completionMode")
    if _speaks_of_indices(spec):
        return
    if spec.at("completions").integer() == pods and any(template.devices() for template in pod_templates(job)):
        report.advise(job, mode, allowed=f"Indexed, which gives each its rank, unless the {pods} pods work alone")


def _speaks_of_indices(spec: Node) -> bool:
    """Whether another key of the Job is for indexed ones alone, so that `job_policy` asks for the mode."""
    return any(spec.at(key).present for key in job_policy.OF_INDICES)


def _completion(job: Resource, spec: Node, pods: int, report: Report) -> None:
    mode, completions = spec.at("completionMode"), spec.at("completions")
    if mode.text() != "Indexed" and not _speaks_of_indices(spec):
        report.refuse(job, mode, allowed="Indexed: the index is the pod's rank")
    if completions.integer() != pods:
        report.refuse(job, completions, allowed=f"{pods}, the parallelism: all ranks run at once")


def _all_at_once(job: Resource, spec: Node, pods: int, report: Report) -> None:
    """Kueue lets a Job that names a least parallelism start with that many pods, and lowers the parallelism to it."""
    least = job.at("metadata", "annotations", _LEAST_PODS)
    number = least.integer()
    if job.type != JOB or number is None:
        return
    containers = [container for template in pod_templates(job) for container in template.containers()]
    calls = [(container, call) for container in containers for call in gang.calls(container)]
    told = [nodes[0] for container, call in calls if (nodes := gang.nodes(call, container))]
    # A launcher that is told no number may start a run in each pod.
    needed = max(told, default=0 if calls else pods)
    if number < needed:
        allowed = f"unset, or {needed} at least: that many ranks wait for each other, and Kueue may start {number}"
        report.refuse(job, least, allowed=allowed)


def jobs_of_set(jobs: Resource) -> list[tuple[Node, PodTemplate]]:
    """The spec of the Jobs of each group of a JobSet, and the pods of all of them."""
    groups = (group.at("template", "spec") for group in jobs.at("spec", "replicatedJobs").elements())
    return list(zip(groups, pod_templates(jobs), strict=True))


def _completion_in_set(jobs: Resource, spec: Node, template: PodTemplate, report: Report) -> None:
    """As of a Job, but a JobSet makes its Jobs Indexed unless told otherwise."""
    pods, mode, completions = at_once(spec), spec.at("completionMode"), spec.at("completions")
    if pods < 2 or not gang.meets_others(template):
        return
    if mode.present and mode.text() != "Indexed" and not _speaks_of_indices(spec) and _needs_index(jobs, template):
        report.refuse(jobs, mode, allowed="Indexed: the index is the pod's rank")
    if completions.present and completions.integer() != pods:
        report.refuse(jobs, completions, allowed=f"{pods}, the parallelism: all ranks run at once")


def _needs_index(jobs: Resource, template: PodTemplate) -> bool:
    """Whether the pods' index is their rank or in their names: a backend elsewhere may give out ranks, to pods of any name."""
    calls = [(container, call) for container in template.containers() for call in gang.calls(container)]
    if not calls or any(not gang.is_dynamic(call, container) for container, call in calls):
        return True
    return any(_names_a_pod(jobs, address) for container, call in calls for address in gang.addresses(container, call))


def at_once(spec: Node) -> int:
    """The pods that a Job runs at once."""
    parallelism = spec.at("parallelism").integer()
    return 1 if parallelism is None else parallelism


def _address(job: Resource, spec: Node, pods: int, report: Report) -> None:
    subdomain = spec.at("template", "spec", "subdomain")
    if subdomain.present:
        return
    allowed = f"the name of a headless Service, which gives the {pods} pods host names"
    containers = [container for template in pod_templates(job) for container in template.containers()]
    told = [address for container in containers for address in gang.addresses(container, *gang.calls(container))]
    if any(_names_a_pod(job, address) for address in told):
        report.refuse(job, subdomain, allowed=allowed)
    else:
        # A Service that selects the pods has their addresses without it.
        report.advise(job, subdomain, allowed=f"{allowed}, unless they find rank 0 by a Service that selects them")


def _names_a_pod(job: Resource, address: str) -> bool:
    """Whether the address is that of a pod of the job under a Service, such as <job>-0.<service>."""
    matched = _POD_OF_SERVICE.fullmatch(host_of(address))
    if matched is None:
        return False
    names = (job.at("metadata", "name"), job.at("metadata", "generateName"))
    return "$" in matched[1] or "`" in matched[1] or any(name.present and matched[1].startswith(name.text()) for name in names)


def _restart(job: Resource, spec: Node, pods: int, report: Report) -> None:
    policy, limit = spec.at("template", "spec", "restartPolicy"), spec.at("backoffLimit")
    if policy.text() not in ("Never", "OnFailure"):
        report.refuse(job, policy, allowed="Never or OnFailure")
    if not limit.present and not spec.at("backoffLimitPerIndex").present:
        report.advise(job, limit, allowed=f"how many pods may fail in the run of {pods}", found="unset, so 6")
