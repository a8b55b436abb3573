"""Volcano jobs: what Volcano's own admission takes beyond the definition."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from guardrails.cron import CronError, parse
from guardrails.environment import variables
from guardrails.facts import load
from guardrails.names import OBJECT_NAME
from guardrails.node import Node
from guardrails.quantity import quantity
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.shell import without_comments
from guardrails.template import pod_templates
from guardrails.tokens import VOLCANO_CRON_JOB, VOLCANO_JOB

_LONGEST_NAME = 63
_LONGEST_CRON_NAME = 52
_EVERY = re.compile(r"@every (?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|ms|s|m|h))+")
_TIME_ZONE = re.compile(r"[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}(?:/[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13})*")
_ROLES = {"master": "master", "worker": "worker"}
"""Flag of the mpi plug-in -> name of the task where the flag is not given."""
_PORT = "port"
_FIRST = {
    "pytorch": ("master", ("master", "worker", _PORT), "no pod is told MASTER_ADDR, WORLD_SIZE and RANK"),
    "ray": ("head", ("head", "headContainer", "worker", "workerContainer", _PORT, "dashboardPort", "clientPort"), "no pod is made"),
}
"""Plug-in -> its flag for the task that the others look for, which is also that task's name where the flag is not given; the flags
that it knows; and what becomes of a job without that task."""
_NO_TOPOLOGY = ("", "none")
_HOST_PLUGINS = frozenset({"svc", "mpi", "pytorch", "tensorflow", "ray"})
"""They make each pod's name its host name and tell pods the names of all: svc itself, and those that bring it along."""
_HOST_FILES = "/etc/volcano"
# What has a default for the variable, makes the file or looks whether it is there does without the plug-in.
_READ = re.compile(r"\bVC_[A-Z0-9_]+_(?:HOSTS|NUM)\b(?!:?[-+=])|/etc/volcano/[\w.*$-]+")
_DONE_WITHOUT = re.compile(r"(?:(?:\[|\btest)\s+(?:!\s+)?-[defrs]\s+|>\s*)[\"']?/etc/volcano/")


def _admission(job: Resource, report: Report) -> None:
    if job.type == VOLCANO_CRON_JOB:
        for check in (_schedule, _time_zone, _cron_name):
            with report.part():
                check(job, report)
        return
    for check in (_tasks, _dependencies, _plugins, _hosts, _volumes):
        with report.part():
            check(job, report)
    with report.part():
        _network(job, job.at("spec", "networkTopology"), report)


def _schedule(cron: Resource, report: Report) -> None:
    schedule = cron.at("spec", "schedule")
    if "TZ" in schedule.text():
        report.refuse(cron, schedule, allowed="a schedule without TZ, and spec.timeZone beside it")
        return
    try:
        if not _EVERY.fullmatch(schedule.text()):
            parse(schedule.text())
    except CronError as error:
        report.refuse(cron, schedule, allowed=str(error))


def _time_zone(cron: Resource, report: Report) -> None:
    zone = cron.at("spec", "timeZone")
    if zone.present and (zone.text().lower() == "local" or not _TIME_ZONE.fullmatch(zone.text())):
        report.refuse(cron, zone, allowed="a name of the IANA's list, such as Europe/Madrid")


def _cron_name(cron: Resource, report: Report) -> None:
    name = cron.at("metadata", "name")
    if len(name.text()) > _LONGEST_CRON_NAME:
        report.refuse(cron, name, allowed=f"at most {_LONGEST_CRON_NAME} characters: each job's name is longer by its time")


def _named(job: Resource) -> Iterator[tuple[str, Node]]:
    """The tasks with their names; Volcano names one that has none by its place."""
    for index, task in enumerate(job.at("spec", "tasks").elements()):
        yield task.at("name").text() or f"default{index}", task


def _tasks(job: Resource, report: Report) -> None:
    seen: set[str] = set()
    for index, (name, task) in enumerate(_named(job)):
        with report.part():
            if name in seen:
                report.refuse(job, task.at("name"), allowed="a name of its own: another task has it")
            seen.add(name)
        with report.part():
            _pod_name(job, index, name, task, report)
        for check in (_containers, _partitions, _whole_cpus):
            with report.part():
                check(job, task, report)
    if not seen:
        report.refuse(job, job.at("spec", "tasks"), allowed="at least one task")


def _pod_name(job: Resource, index: int, name: str, task: Node, report: Report) -> None:
    own, number = job.at("metadata", "name"), index
    reason = "Volcano takes no longer name of a pod"
    if not _HOST_PLUGINS.isdisjoint(plugin for plugin, _ in job.at("spec", "plugins").entries()):
        number, reason = max(index, (task.at("replicas").integer() or 1) - 1), "pods' names are host names"
    last = f"{own.text()}-{name}-{number}"
    if own.present and len(last) > _LONGEST_NAME:
        most = _LONGEST_NAME - (len(last) - len(own.text()))
        if most < 1:
            report.refuse(job, task.at("name"), allowed=f"at most {most + len(name) - 1} characters beside the job's name: {reason}")
            return
        report.refuse(job, own, allowed=f"at most {most} characters beside task {name}: {reason}")


def _containers(job: Resource, task: Node, report: Report) -> None:
    containers = task.at("template", "spec", "containers")
    if not any(True for _ in containers.elements()):
        report.refuse(job, containers, allowed="at least one container")


def _partitions(job: Resource, task: Node, report: Report) -> None:
    policy = task.at("partitionPolicy")
    if not policy.present:
        return
    total, size, least = (policy.at(key) for key in ("totalPartitions", "partitionSize", "minPartitions"))
    for count in (total, size):
        if not (count.integer() or 0) > 0:
            report.refuse(job, count, allowed="at least 1")
            return
    pods, together = (total.integer() or 0) * (size.integer() or 0), (least.integer() or 0) * (size.integer() or 0)
    if (task.at("replicas").integer() or 0) != pods:
        report.refuse(job, task.at("replicas"), allowed=f"{pods}, the partitions times their size")
    elif task.at("minAvailable").present and task.at("minAvailable").integer() != together:
        report.refuse(job, task.at("minAvailable"), allowed=f"{together}, minPartitions times the size of a partition")
    elif together > pods:
        report.refuse(job, least, allowed=f"at most {total.text()}, the partitions that there are")
    _network(job, policy.at("networkTopology"), report)


def _whole_cpus(job: Resource, task: Node, report: Report) -> None:
    if task.at("topologyPolicy").text() in _NO_TOPOLOGY:
        return
    spec = task.at("template", "spec")
    for container in (*spec.at("containers").elements(), *spec.at("initContainers").elements()):
        resources = container.at("resources")
        place = resources.at("requests" if any(True for _ in resources.at("requests").entries()) else "limits", "cpu")
        cpus = quantity(place.text()) if place.present else None
        if not cpus or cpus % 1:
            report.refuse(job, place, allowed="a whole number of CPUs, which a topology policy needs")


def _network(job: Resource, topology: Node, report: Report) -> None:
    tier = topology.at("highestTierName")
    if tier.text() and topology.at("highestTierAllowed").present:
        report.refuse(job, tier, allowed="unset beside highestTierAllowed: the tier is said once")


def _dependencies(job: Resource, report: Report) -> None:
    waits = {name: [each.text() for each in task.at("dependsOn", "name").elements()] for name, task in _named(job)}
    stuck = _never_started(waits)
    for name, task in _named(job):
        if name in stuck:
            report.refuse(job, task.at("dependsOn", "name"), allowed="tasks of this job that do not, in turn, wait for this one")
            return


def _never_started(waits: Mapping[str, Sequence[str]]) -> set[str]:
    """Tasks that wait for each other or for one that is not there."""
    left = dict(waits)
    while ready := [name for name, others in left.items() if not any(other in left or other not in waits for other in others)]:
        for name in ready:
            del left[name]
    return set(left)


def _plugins(job: Resource, report: Report) -> None:
    known = load("volcano")["plugins"]
    for name, arguments in job.at("spec", "plugins").entries():
        if name not in known:
            report.refuse(job, arguments, allowed=f"one of {', '.join(known)}", found=name)
        elif name == "mpi":
            _mpi_tasks(job, arguments, report)
        elif name in _FIRST:
            _first_task(job, name, arguments, report)


def _hosts(job: Resource, report: Report) -> None:
    """Host names that a task reads, where no plug-in tells them."""
    if not _HOST_PLUGINS.isdisjoint(name for name, _ in job.at("spec", "plugins").entries()):
        return
    if any(volume.at("mountPath").text().startswith(_HOST_FILES) for volume in job.at("spec", "volumes").elements()):
        return
    for template in pod_templates(job):
        for container in template.all_containers():
            with report.part():
                _hosts_of(job, container, report)


def _hosts_of(job: Resource, container: Node, report: Report) -> None:
    own = {variable.name for variable in variables(container)}
    if any(mount.at("mountPath").text().startswith(_HOST_FILES) for mount in container.at("volumeMounts").elements()):
        return
    for word in (*container.at("command").elements(), *container.at("args").elements()):
        script = without_comments(word.text())
        read = [name for name in _READ.findall(script) if name not in own]
        if read and not _DONE_WITHOUT.search(script):
            allowed = "svc in spec.plugins, which makes it (mpi, pytorch, tensorflow and ray bring svc along)"
            report.refuse(job, word, allowed=allowed, found=f"reading {read[0]}")
            return


def _first_task(job: Resource, plugin: str, arguments: Node, report: Report) -> None:
    flag, flags, otherwise = _FIRST[plugin]
    wanted = _flags([argument.text() for argument in arguments.elements()], flags).get(flag, flag)
    names = [name for name, _ in _named(job)]
    if wanted not in names:
        allowed = f"--{flag}= with one of the tasks {', '.join(names)}: {otherwise} otherwise"
        report.refuse(job, arguments, allowed=allowed, found=f"without a task {wanted}")


def _mpi_tasks(job: Resource, arguments: Node, report: Report) -> None:
    names = [name for name, _ in _named(job)]
    for flag, wanted in mpi_tasks(arguments).items():
        if wanted not in names:
            report.refuse(job, arguments, allowed=f"--{flag}= with one of the tasks {', '.join(names)}", found=f"without a task {wanted}")


def mpi_tasks(arguments: Node) -> Mapping[str, str]:
    """`master` and `worker` -> the names of these tasks, by the arguments of the mpi plug-in."""
    given = _flags([argument.text() for argument in arguments.elements()], (*_ROLES, _PORT))
    return {flag: given.get(flag, usual) for flag, usual in _ROLES.items()}


def _flags(words: Sequence[str], known: Sequence[str]) -> Mapping[str, str]:
    """The flags as the plug-in reads them, with Go's parser: up to the first word that is none of its own, the last of a name counts."""
    given: dict[str, str] = {}
    left = iter(words)
    for word in left:
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        if not word.startswith("-") or name not in known:
            break
        for last in [value] if equals else islice(left, 1):
            given[name] = last
    return given


def _volumes(job: Resource, report: Report) -> None:
    seen: set[str] = set()
    for volume in job.at("spec", "volumes").elements():
        with report.part():
            _volume(job, volume, seen, report)


def _volume(job: Resource, volume: Node, seen: set[str], report: Report) -> None:
    path, name, claim = volume.at("mountPath"), volume.at("volumeClaimName"), volume.at("volumeClaim")
    if not path.text():
        report.refuse(job, path, allowed="a path")
    elif path.text() in seen:
        report.refuse(job, path, allowed="a path of its own: another volume is mounted there")
    seen.add(path.text())
    if bool(name.text()) == claim.present:
        report.refuse(
            job, volume, allowed="volumeClaimName or volumeClaim, one of both", found="with both" if claim.present else "with neither"
        )
    elif name.text() and not OBJECT_NAME.fullmatch(name.text()):
        report.refuse(job, name, allowed="lower-case letters, digits, - and ., with a letter or digit at both ends")


def _job(**spec: object) -> Example:
    template = {"spec": {"containers": [{"name": "main", "image": "registry.example/trainer:1.4.2"}]}}
    tasks = [{"name": name, "replicas": 1, "template": template} for name in ("master", "worker")]
    return Example(VOLCANO_JOB, {"metadata": {"name": "finetune"}, "spec": {"tasks": tasks, **spec}})


RULES = (
    Rule(
        id="VOL04",
        name="job-require-admission",
        title="Tasks, plug-ins and volumes are ones that Volcano's admission takes, and bring the hosts that tasks read",
        types=frozenset({VOLCANO_JOB, VOLCANO_CRON_JOB}),
        check=_admission,
        why="Volcano's admission refuses the job when the rest is made, or a task ends at once for want of the hosts that it reads.",
        fix="name each task and mount path once, keep pods' names within 63 characters, and name the plug-ins that tasks need.",
        source="volcano 1.14.1: admission of jobs (admit_job.go, util.go, mutate_job.go) and cronjobs (admit_cronjob.go); "
        "job/plugins: svc, pytorch, ray",
        valid=(_job(plugins={"mpi": ["--master=master", "--worker=worker"]}),),
        invalid=(_job(plugins={"mpi": ["--master=launcher"]}),),
    ),
)
