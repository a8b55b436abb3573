"""Gangs, queues and restart policies."""

from dataclasses import replace
from typing import Any

from guardrails import tokens
from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid

POLICIES = "spec/policies"
GANG = "spec/runPolicy/schedulingPolicy"
RETRY = {"spec/maxRetry": 5}


def queue(name: str, *, state: str | None = None, **spec: Any) -> Thing:
    status = {"status": {"state": state}} if state else {}
    return Thing(type=tokens.QUEUE, name=name, properties={"metadata": {"name": name}, "spec": spec, **status})


def owed(amounts: dict[str, Any]) -> dict[str, Any]:
    """What a queue deserves, guaranteed to the last."""
    return {"guarantee": {"resource": amounts}, "deserved": amounts}


def job(where: Any, changes: dict[str, Any] | None = None) -> Thing:
    return b.volcano_job({"spec/queue": where, **(changes or {})})


def mpi(where: str) -> Thing:
    return b.mpi_job({"spec/runPolicy/schedulingPolicy/queue": where})


def policies(*each: dict[str, Any], **changes: Any) -> Thing:
    return b.volcano_job({POLICIES: list(each), **RETRY, **changes})


def on(event: str, action: str = "RestartJob", **more: Any) -> dict[str, Any]:
    return {"event": event, "action": action, **more}


def gang_of(command: list[str] | None = None, **task: Any) -> Thing:
    """A job that leaves its gang to its task."""
    changes = {"spec/minAvailable": b.DELETE, **{f"spec/tasks/0/{key}": value for key, value in task.items()}}
    return b.volcano_job({**changes, **({f"{b.TASK_CONTAINER}/command": command} if command else {})})


def task(name: str, replicas: int, *command: str, after: Any = None, **more: Any) -> dict[str, Any]:
    container = {"name": name, "image": "registry.example/mpi:1", "command": list(command)}
    depends = {"dependsOn": after if isinstance(after, dict) else {"name": after}} if after else {}
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": [container]}}, **depends, **more}


def steps(least: Any, *tasks: dict[str, Any]) -> Thing:
    """A job of several tasks, some of which may wait for others."""
    return b.volcano_job({"spec/minAvailable": b.DELETE if least is None else least, "spec/tasks": list(tasks)})


WORKERS = task("worker", 10, "sleep", "1d")
MASTER = task("master", 1, "mpiexec", "-np", "10", "hello", after=["worker"])
SERVERS = task("nginx", 6, "nginx")
EVICTED = on("PodEvicted")
FAILED_ENDS = on("PodFailed", "TerminateJob")
TASK_POLICIES = "spec/tasks/0/policies"


def unnamed(**spec: Any) -> Thing:
    """A queue called `theirs` in the program, whose name in the cluster Pulumi makes of that."""
    return Thing(type=tokens.QUEUE, name="theirs", properties={"metadata": {}, "spec": spec})


CASES = (
    valid("VOL01", b.volcano_job()),
    valid("VOL01", b.volcano_job({"spec/minAvailable": b.DELETE})),
    valid("VOL01", b.volcano_job({"spec/minAvailable": 2, f"{b.TASK_CONTAINER}/command": ["torchrun", "--nnodes=2:4", "train.py"]})),
    valid("VOL01", b.mpi_job({"spec/launcherCreationPolicy": "AtStartup", "spec/runPolicy/schedulingPolicy/minAvailable": 5})),
    valid("VOL01", b.mpi_job()),
    valid("VOL01", b.volcano_job({"spec/tasks/0/minAvailable": 4}), edge=True),
    valid("VOL01", b.mpi_job({"spec/launcherCreationPolicy": "AtStartup", GANG: {"queue": "training"}})),
    valid("VOL01", b.mpi_job({GANG: b.DELETE})),
    valid("VOL01", b.mpi_job({GANG: b.DELETE, f"{b.WORKER}/template/spec/schedulerName": "default-scheduler"}), edge=True),
    invalid("VOL01", b.mpi_job({GANG: {"queue": "training"}}), says="minAvailable is unset, so 5; allowed: 4 for 4 workers"),
    invalid(
        "VOL01",
        b.mpi_job({GANG: b.DELETE, f"{b.WORKER}/template/spec/schedulerName": "volcano"}),
        says="minAvailable is unset, so 5; allowed: 4 for 4 workers, because the launcher is only made once the workers run",
        edge=True,
    ),
    invalid("VOL01", b.volcano_job({"spec/tasks/0/minAvailable": 5}), says="tasks[0].minAvailable is 5", edge=True),
    invalid("VOL01", b.volcano_job({"spec/minAvailable": 5}), says="sum of all tasks' replicas", edge=True),
    invalid("VOL01", b.volcano_job({"spec/minAvailable": 3}), says="every rank is needed", edge=True),
    invalid("VOL01", b.volcano_job({"spec/minAvailable": 32}), says="it counts pods, not nodes"),
    invalid("VOL01", b.volcano_job({"spec/minAvailable": 1}), says="minAvailable is 1; allowed: 4"),
    invalid("VOL01", b.volcano_job({"spec/tasks/0/minAvailable": 9}), says="at most 4, the task's replicas"),
    invalid("VOL01", b.volcano_job({"spec/schedulerName": "default-scheduler"}), says="volcano, because 4 pods"),
    invalid(
        "VOL01",
        b.mpi_job({"spec/runPolicy/schedulingPolicy/minAvailable": 5}),
        says="4 for 4 workers, because the launcher is only made once",
    ),
    valid("VOL02", job("research"), queue("research")),
    valid("VOL02", job("made-elsewhere")),
    valid("VOL02", mpi("research"), queue("research", parent="ml"), queue("ml")),
    valid("VOL02", b.mpi_job()),
    *(
        invalid("VOL02", queue("ml", capability={name: amount}), says=f"is {amount}; allowed: {allowed}", edge=True)
        for name, amount, allowed in (
            ("cpu", "-4", "at least 0"),
            ("memory", "-1Gi", "at least 0"),
            ("nvidia.com/gpu", "500m", "a whole number"),
            ("pods", "1.5", "a whole number"),
        )
    ),
    *(
        valid("VOL02", queue("ml", capability={name: amount}), edge=True)
        for name, amount in (("cpu", "0"), ("cpu", "500m"), ("nvidia.com/gpu", "8000m"), ("kubernetes.io/x", "500m"), ("memory", "soon"))
    ),
    invalid("VOL02", queue("ml", deserved={"cpu": "-4"}), says="spec.deserved.cpu is -4"),
    invalid("VOL02", queue("ml", guarantee={"resource": {"cpu": "-4"}}), says="spec.guarantee.resource.cpu is -4"),
    valid("VOL02", queue("ml", capability={"cpu": "96"}), queue("research", parent="ml", capability={"cpu": "96000m"}), edge=True),
    valid(
        "VOL02",
        queue("ml", **owed({"cpu": 8})),
        queue("a", parent="ml", **owed({"cpu": 4})),
        queue("b", parent="ml", **owed({"cpu": 4})),
        edge=True,
    ),
    # Sums of thousandths are exact, and so is what is held against them.
    valid(
        "VOL02",
        queue("ml", **owed({"cpu": "300m"})),
        queue("a", parent="ml", **owed({"cpu": "100m"})),
        queue("b", parent="ml", **owed({"cpu": "200m"})),
        edge=True,
    ),
    invalid(
        "VOL02",
        queue("ml", **owed({"cpu": "299m"})),
        queue("a", parent="ml", **owed({"cpu": "100m"})),
        queue("b", parent="ml", **owed({"cpu": "200m"})),
        says="guarantee.resource.cpu is 299m; allowed: at least 0.3, what the queues below",
        edge=True,
    ),
    valid("VOL02", queue("ml", deserved={"cpu": "2300m"}, capability={"cpu": "2.3"}), edge=True),
    invalid("VOL02", queue("ml", deserved={"cpu": "2301m"}, capability={"cpu": "2.3"}), says="at most 2.3, the queue's own", edge=True),
    valid("VOL02", queue("ml", deserved={"cpu": "2.3002"}, capability={"cpu": "2301m"}), edge=True),
    # Whole bytes, rounded up, though their thousandths differ.
    valid("VOL02", queue("ml", deserved={"memory": "1000.5"}, capability={"memory": "1000.25"}), edge=True),
    invalid("VOL02", queue("ml", deserved={"memory": "1000.5"}, capability={"memory": "1000"}), says="memory is 1000.5", edge=True),
    invalid(
        "VOL02",
        queue("ml", deserved={"ephemeral-storage": "1000.5"}, capability={"ephemeral-storage": "1000.25"}),
        says="deserved.ephemeral-storage is 1000.5",
        edge=True,
    ),
    invalid("VOL02", job("root"), says="spec.queue is root; allowed: a leaf queue"),
    invalid("VOL02", job(b.DELETE), says="unset, so `default`"),
    invalid("VOL02", job("ml"), queue("ml"), queue("research", parent="ml"), says="ml is the parent of others"),
    invalid("VOL02", mpi("research"), queue("research", state="Closed"), says="research is Closed"),
    invalid(
        "VOL02",
        queue("ml", capability={"cpu": "96"}),
        queue("research", parent="ml", capability={"cpu": "97"}),
        says="capability.cpu is 97; allowed: at most 96, the capability of ml",
        edge=True,
    ),
    invalid(
        "VOL02",
        queue("ml", **owed({"cpu": 7})),
        queue("a", parent="ml", **owed({"cpu": 4})),
        queue("b", parent="ml", **owed({"cpu": 4})),
        says="guarantee.resource.cpu is 7; allowed: at least 8",
        edge=True,
    ),
    valid("VOL03", b.volcano_job()),
    valid("VOL03", policies(on("PodFailed"))),
    valid("VOL03", policies(on("PodEvicted"), on("TaskCompleted", "CompleteJob"))),
    valid("VOL03", policies({"exitCode": 75, "action": "RestartJob"}, {"exitCode": 78, "action": "AbortJob"})),
    valid("VOL03", policies({"events": ["PodFailed", "PodEvicted"], "action": "RestartTask"})),
    valid("VOL03", policies(EVICTED, {"exitCode": 78, "action": "TerminateJob"})),
    valid("VOL03", policies(on("PodFailed", "TerminateJob"))),
    valid("VOL03", policies(on("PodEvicted", "TerminateJob"), FAILED_ENDS)),
    valid("VOL03", policies(EVICTED, FAILED_ENDS, **{TASK_POLICIES: [on("PodFailed")]})),
    valid("VOL03", policies(EVICTED, on("PodFailed"), {"exitCode": 143, "action": "TerminateJob"})),
    valid("VOL03", b.volcano_job({POLICIES: [FAILED_ENDS], "spec/maxRetry": 1})),
    valid("VOL03", policies(on("*")), edge=True),
    valid("VOL03", policies(on("PodFailed"), **{"spec/maxRetry": 4}), edge=True),
    valid("VOL03", policies(on("*"), {"exitCode": -1, "action": "AbortJob"}, {"exitCode": 3, "action": "AbortJob"}), edge=True),
    invalid("VOL03", policies(on("*"), on("PodFailed")), says="no other event beside *", edge=True),
    invalid("VOL03", policies(on("PodRunning")), says="policies[0].event is PodRunning"),
    invalid("VOL03", policies(on("PodFailed", "Restart")), says="policies[0].action is Restart; allowed: AbortJob"),
    invalid("VOL03", policies(on("PodFailed", exitCode=1)), says="with both; allowed: an event or an exitCode"),
    invalid("VOL03", policies({"action": "RestartJob"}), says="with neither"),
    invalid("VOL03", policies({"exitCode": 0, "action": "RestartJob"}), says="a code other than 0"),
    invalid("VOL03", policies(on("PodFailed"), on("PodFailed", "AbortJob")), says="PodFailed once"),
    invalid("VOL03", b.volcano_job({POLICIES: [on("PodFailed")]}), says="unset, so 3"),
    invalid("VOL03", b.volcano_job({TASK_POLICIES: [on("PodGone")], **RETRY}), says="tasks[0].policies[0].event is PodGone"),
    invalid("VOL03", policies(on("PodFailed"), **{"spec/maxRetry": 3}), says="maxRetry is 3; allowed: more than 3", edge=True),
    invalid("VOL03", policies(EVICTED, FAILED_ENDS), says="policies[1].action is TerminateJob; allowed: Restart* as on PodEvicted"),
    invalid("VOL03", policies(FAILED_ENDS, on("PodEvicted", "RestartTask")), says="policies[0].action is TerminateJob"),
    invalid(
        "VOL03",
        policies({"events": ["PodEvicted", "TaskFailed"], "action": "RestartPod"}, {"events": ["PodFailed"], "action": "AbortJob"}),
        says="policies[1].action is AbortJob; allowed: Restart*",
    ),
    invalid("VOL03", policies(EVICTED, **{TASK_POLICIES: [FAILED_ENDS]}), says="spec.tasks[0].policies[0].action is TerminateJob"),
    invalid("VOL03", policies(on("*", "AbortJob"), **{TASK_POLICIES: [EVICTED]}), says="spec.policies[0].action is AbortJob"),
    invalid("VOL03", policies(**{TASK_POLICIES: [EVICTED, FAILED_ENDS]}), says="spec.tasks[0].policies[1].action is TerminateJob"),
    invalid("VOL03", policies(EVICTED, {"exitCode": 143, "action": "TerminateJob"}), says="policies[1].action is TerminateJob", edge=True),
    invalid(
        "VOL03",
        policies(EVICTED, {"exitCode": 143, "action": "RestartJob"}, {"exitCode": 137, "action": "AbortJob"}),
        says="policies[2].action is AbortJob; allowed: Restart* as on PodEvicted",
        edge=True,
    ),
    invalid(
        "VOL03",
        b.volcano_job({"spec/tasks": [MASTER, {**WORKERS, "policies": [EVICTED, FAILED_ENDS]}], **RETRY}),
        says="spec.tasks[1].policies[1].action is TerminateJob",
    ),
    # So does Volcano, whose admission then finds fewer pods than the gang needs.
    invalid(
        "VOL01",
        b.volcano_job({"spec/tasks/0/replicas": b.DELETE, "spec/minAvailable": 1}),
        says="minAvailable is 1; allowed: 0, the sum of all tasks' replicas",
        edge=True,
    ),
    # Volcano's admission adds up what the tasks need where the job says nothing, or 0.
    valid("VOL01", b.volcano_job({"spec/minAvailable": 0}), edge=True),
    valid("VOL01", gang_of(minAvailable=4), edge=True),
    valid("VOL01", gang_of(partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2}), edge=True),
    valid("VOL01", gang_of(minAvailable=2, command=["torchrun", "--nnodes=2:4", "train.py"])),
    invalid("VOL01", gang_of(minAvailable=3), says="spec.minAvailable is unset, so 3; allowed: 4", edge=True),
    invalid("VOL01", b.volcano_job({"spec/minAvailable": 0, "spec/tasks/0/minAvailable": 2}), says="spec.minAvailable is 0, so 2"),
    invalid(
        "VOL01",
        gang_of(partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}),
        says="spec.minAvailable is unset, so 2; allowed: 4, because every rank is needed",
    ),
    invalid("VOL01", gang_of(partitionPolicy={"totalPartitions": 2, "partitionSize": 2}), says="unset, so 0; allowed: 4"),
    invalid("VOL01", gang_of(partitionPolicy={"totalPartitions": 2, "minPartitions": 2}), says="unset, so 0; allowed: 4"),
    valid("VOL01", b.volcano_job({"spec/tasks": [{"name": "worker", "replicas": 4}, {"name": "evaluator", "replicas": 0}]})),
    valid(
        "VOL01", b.volcano_job({"spec/tasks/0/replicas": 1, "spec/minAvailable": 1, "spec/schedulerName": "default-scheduler"}), edge=True
    ),
    invalid(
        "VOL01",
        b.volcano_job({"spec/tasks/0/replicas": 2, "spec/minAvailable": 2, "spec/schedulerName": "default-scheduler"}),
        says="volcano, because 2 pods",
        edge=True,
    ),
    invalid(
        "VOL01", b.mpi_job({"spec/launcherCreationPolicy": "AtStartup"}), says="5 for 4 workers, because the launcher counts too", edge=True
    ),
    # The MPI Operator takes 0 workers where the number is left out.
    invalid("VOL01", b.mpi_job({f"{b.WORKER}/replicas": b.DELETE}), says="0 for 0 workers"),
    # The pods of a task that depends on another are only made once that one's run.
    valid("VOL01", steps(10, MASTER, WORKERS), edge=True),
    invalid("VOL01", steps(11, MASTER, WORKERS), says="spec.minAvailable is 11; allowed: 10, the pods of the tasks that wait", edge=True),
    invalid("VOL01", steps(9, MASTER, WORKERS), says="spec.minAvailable is 9; allowed: 10, because every rank is needed", edge=True),
    invalid("VOL01", steps(12, MASTER, WORKERS), says="spec.minAvailable is 12; allowed: 10, the pods of the tasks that wait"),
    invalid("VOL01", steps(None, MASTER, WORKERS), says="spec.minAvailable is unset, so 11; allowed: 10, the pods of the tasks that wait"),
    invalid("VOL01", steps(0, MASTER, WORKERS), says="spec.minAvailable is 0, so 11; allowed: 10"),
    valid("VOL01", steps(None, {**MASTER, "minAvailable": 0}, WORKERS), edge=True),
    # Where the job needs as many as its tasks do, the gang waits for each task's own number too.
    invalid("VOL01", steps(10, MASTER, {**WORKERS, "minAvailable": 5}), says="tasks[0].minAvailable is unset, so 1; allowed: 0"),
    invalid(
        "VOL01", steps(10, {**MASTER, "minAvailable": 1}, {**WORKERS, "minAvailable": 9}), says="tasks[0].minAvailable is 1; allowed: 0"
    ),
    valid("VOL01", steps(10, {**MASTER, "minAvailable": 0}, {**WORKERS, "minAvailable": 9})),
    # Nothing waits for a task that needs no pod, nor where no task is named.
    valid("VOL01", steps(11, MASTER, {**WORKERS, "minAvailable": 0}), edge=True),
    valid("VOL01", steps(11, {**MASTER, "dependsOn": {"name": []}}, WORKERS), edge=True),
    valid("VOL01", steps(11, {**MASTER, "dependsOn": {"name": ["worker", "none"], "iteration": "any"}}, WORKERS, task("none", 0))),
    invalid(
        "VOL01",
        steps(11, {**MASTER, "dependsOn": {"name": ["worker", "none"], "iteration": "all"}}, WORKERS, task("none", 0)),
        says="spec.minAvailable is 11; allowed: 10",
        edge=True,
    ),
    # Servers are no ranks: they may well start one by one.
    valid("VOL01", steps(6, SERVERS), edge=True),
    invalid(
        "VOL01", steps(3, SERVERS), says="spec.minAvailable is 3; allowed: 6, unless the job's pods can do without each other", edge=True
    ),
    invalid("VOL01", steps(3, task("a", 6, "torchrun", "--nnodes=6", "x")), says="allowed: 6, because every rank is needed"),
    invalid("VOL01", steps(10, task("master", 1, "mpirun", "-np", "10", "x"), WORKERS), says="allowed: 11, because every rank is needed"),
    valid(
        "VOL02",
        queue("ml", **owed({"cpu": 8})),
        queue("a", parent="ml", **owed({"cpu": 4})),
        queue("b", parent="ml", **owed({"cpu": 4})),
        queue("c", parent="ml"),
        edge=True,
    ),
    invalid(
        "VOL02",
        queue("ml", **owed({"memory": "1Ti"})),
        queue("a", parent="ml", **owed({"memory": "600Gi"})),
        queue("b", parent="ml", **owed({"memory": "601Gi"})),
        says="at least 1289563930624, what the queues below",
    ),
    invalid("VOL02", job("ml"), replace(queue("ml"), name="queue-ml"), queue("research", parent="ml"), says="ml is the parent of others"),
    invalid("VOL02", unnamed(), queue("research", parent="theirs"), job("theirs"), says="theirs is the parent of others"),
    invalid("VOL02", job("root"), replace(queue(UNKNOWN), name="theirs"), says="spec.queue is root"),
    # Whether it is called as its parent is, or as that of another, is not known.
    invalid("VOL02", job("root"), replace(queue(UNKNOWN, parent="theirs"), name="theirs"), says="spec.queue is root"),
    invalid("VOL02", job("root"), replace(queue(UNKNOWN), name="theirs"), queue("a", parent="ml"), says="spec.queue is root"),
    invalid(
        "VOL02",
        queue("org", capability={"cpu": "96"}),
        queue("ml", parent="org"),
        queue("research", parent="ml", capability={"cpu": "97"}),
        says="cpu in the capability of ml, where",
    ),
    valid("VOL02", queue("ml", capability={GPU: 0}), queue("research", parent="ml", capability={GPU: 0}), edge=True),
    invalid(
        "VOL02",
        queue("ml", capability={GPU: 0}),
        queue("research", parent="ml", capability={GPU: 1}),
        says='capability["nvidia.com/gpu"] is 1; allowed: at most 0, the capability of ml',
        edge=True,
    ),
    invalid(
        "VOL02",
        queue("ml", **owed({GPU: 0})),
        queue("research", parent="ml", **owed({GPU: 1})),
        says='guarantee.resource["nvidia.com/gpu"] is 0; allowed: at least 1',
        edge=True,
    ),
    valid("VOL02", queue("ml", guarantee={"resource": {"cpu": 4}}, deserved={"cpu": 8}, capability={"cpu": 16})),
    valid("VOL02", queue("ml", **owed({"cpu": 8}), capability={"cpu": "8000m"}), edge=True),
    # Of cpu and memory nothing is 0 to Volcano, of other names it is less.
    valid("VOL02", queue("ml", deserved={"cpu": 8, "memory": 0}, capability={"cpu": 8}), edge=True),
    valid("VOL02", queue("ml", deserved={"cpu": 8, GPU: 0}, capability={"cpu": 8, GPU: 0}), edge=True),
    valid("VOL02", queue("ml", deserved={"cpu": 8, GPU: 0}), edge=True),
    invalid("VOL02", queue("ml", deserved={"cpu": 8, GPU: 0}, capability={"cpu": 8}), says="for less than 0", edge=True),
    invalid("VOL02", queue("ml", deserved={"cpu": 8, "memory": 1}, capability={"cpu": 8}), says="is left out for 0", edge=True),
    invalid("VOL02", queue("ml", guarantee={"resource": {GPU: 0}}), says="nvidia.com/gpu in the queue's own deserved", edge=True),
    invalid("VOL02", queue("ml", deserved={"pods": 0, "cpu": 1}, capability={"cpu": 8}), says="deserved.pods is 0", edge=True),
    # Quotas on objects, and names that no node offers, are none of Volcano's.
    valid("VOL02", queue("ml", guarantee={"resource": {"count/pods": 3, "requests.nvidia.com/gpu": 3, "services": 3, "a/b/c": 1}})),
    valid("VOL02", queue("ml", deserved={"count/jobs.batch": 3}), queue("a", parent="ml", deserved={"count/jobs.batch": 4})),
    invalid("VOL02", queue("ml", deserved={"cpu": 1}, capability={"count/pods": 3}), says="deserved.cpu is 1", edge=True),
    invalid("VOL02", queue("ml", guarantee={"resource": {"hugepages-2Mi": "2Mi"}}), says="hugepages-2Mi is 2Mi; allowed: unset, or"),
    invalid("VOL02", queue("ml", guarantee={"resource": {"attachable-volumes-aws-ebs": 3}}), says="is 3; allowed: unset, or attachable"),
    invalid("VOL02", queue("ml", guarantee={"resource": {"count.example/pods": 3}}), says="is 3; allowed: unset, or count.example"),
    invalid("VOL02", queue("ml", guarantee={"resource": {"requests.kubernetes.io/x": 3}}), says="is 3; allowed: unset, or requests"),
    invalid(
        "VOL02",
        queue("ml", guarantee={"resource": {"cpu": 9}}, deserved={"cpu": 8}),
        says="guarantee.resource.cpu is 9; allowed: at most 8, the queue's own deserved",
        edge=True,
    ),
    invalid(
        "VOL02",
        queue("ml", guarantee={"resource": {GPU: 1}}),
        says="is 1; allowed: unset, or nvidia.com/gpu in the queue's own deserved",
        edge=True,
    ),
    invalid(
        "VOL02",
        queue("ml", deserved={"cpu": 9}, capability={"cpu": 8}),
        says="deserved.cpu is 9; allowed: at most 8, the queue's own capability",
        edge=True,
    ),
    invalid(
        "VOL02",
        queue("ml", deserved={"cpu": 8, GPU: 1}, capability={"cpu": 8}),
        says='deserved["nvidia.com/gpu"] is 1; allowed: unset, or nvidia.com/gpu in the queue\'s own capability, where',
        edge=True,
    ),
    # Where the queue above deserves nothing by name, its capability is what there is to share.
    valid(
        "VOL02", queue("ml", capability={GPU: 8}), queue("a", parent="ml", deserved={GPU: 4}), queue("b", parent="ml", deserved={GPU: 4})
    ),
    valid("VOL02", queue("ml"), queue("a", parent="ml", **owed({GPU: 4}))),
    invalid(
        "VOL02",
        queue("ml", capability={GPU: 7}),
        queue("a", parent="ml", deserved={GPU: 4}),
        queue("b", parent="ml", deserved={GPU: 4}),
        says='ml: spec.capability["nvidia.com/gpu"] is 7; allowed: at least 8, what the queues below deserve together',
        edge=True,
    ),
    invalid(
        "VOL02",
        queue("ml", deserved={"cpu": 7}, capability={"cpu": 8}),
        queue("a", parent="ml", deserved={"cpu": 4}),
        queue("b", parent="ml", deserved={"cpu": 4}),
        says="ml: spec.deserved.cpu is 7; allowed: at least 8, what the queues below deserve together",
        edge=True,
    ),
    invalid(
        "VOL02",
        queue("ml", **owed({"cpu": 8})),
        queue("research", parent="ml", **owed({"cpu": 8, GPU: 1})),
        says='ml: spec.guarantee.resource["nvidia.com/gpu"] is unset; allowed: at least 1, what the queues below are guaranteed together',
    ),
    invalid(
        "VOL02",
        queue("ml"),
        queue("research", parent="ml", capability={GPU: 1}),
        says='capability["nvidia.com/gpu"] is 1; allowed: unset, or nvidia.com/gpu in the capability of ml, where Volcano 1.14.1 takes',
        edge=True,
    ),
    invalid("VOL02", queue("ml"), queue("research", parent="ml", capability={GPU: 0}), says="takes what is left out for less", edge=True),
    valid("VOL02", queue("ml"), queue("research", parent="ml", capability={"cpu": 0}), edge=True),
    invalid("VOL02", queue("ml"), queue("research", parent="ml", capability={"cpu": 1}), says="what is left out for 0", edge=True),
    invalid(
        "VOL02",
        queue("ml", deserved={"cpu": 8}),
        queue("research", parent="ml", deserved={GPU: 0}),
        says='deserved["nvidia.com/gpu"] is unset; allowed: at least 0, what',
        edge=True,
    ),
    # What the queues below are guaranteed comes out of what the parent may use where nothing else is said.
    invalid(
        "VOL02",
        queue("ml", capability={"cpu": 7}),
        queue("a", parent="ml", **owed({"cpu": 4})),
        queue("b", parent="ml", **owed({"cpu": 4})),
        says="spec.capability.cpu is 7; allowed: at least 8, what the queues below are guaranteed together",
        edge=True,
    ),
    valid("VOL02", queue("research", parent="made-elsewhere", capability={GPU: 1})),
    valid("VOL02", queue("root", **owed({"cpu": 8}), capability={"cpu": 8}), queue("ml", parent="root", **owed({"cpu": 9})), edge=True),
    invalid("VOL02", queue("ml", parent="ml"), says="spec.parent is ml; allowed: another queue", edge=True),
    # The root is held against itself, though none against it, and nothing stands above it.
    valid("VOL02", queue("root", parent="root", deserved={"cpu": 2}, capability={"cpu": 2})),
    valid("VOL02", queue("root", parent="ml"), queue("ml")),
    invalid("VOL02", queue("root", deserved={"cpu": 4}, capability={"cpu": 2}), says="root: spec.deserved.cpu is 4; allowed: at most 2"),
    # Of two queues that are above each other neither can be made first; one below them is no part of that.
    invalid(
        "VOL02", queue("ml", parent="org"), queue("org", parent="ml"), says="parent is org; allowed: a queue that is not below this one"
    ),
    invalid("VOL02", queue("a", parent="c"), queue("b", parent="a"), queue("c", parent="b"), says="c: spec.parent is b", edge=True),
    invalid(
        "VOL02",
        queue("ml", parent="org", capability={"cpu": "96"}),
        queue("org", parent="ml", capability={"cpu": "96"}),
        queue("research", parent="org", capability={"cpu": "97"}),
        says="capability.cpu is 97; allowed: at most 96, the capability of org",
    ),
    # A queue's name in the program is not that in the cluster.
    valid("VOL02", unnamed(parent="theirs", capability={GPU: 1}), edge=True),
    valid("VOL02", unnamed(capability={GPU: 1}), queue("research", parent="theirs", capability={GPU: 2})),
    valid("VOL02", replace(unnamed(), properties={"metadata": {"generateName": "theirs-"}, "status": {"state": "Closed"}}), job("theirs")),
    invalid("VOL02", unnamed(deserved={"cpu": 2}, capability={"cpu": 1}), says="theirs: spec.deserved.cpu is 2"),
    # What is unknown of one share hides no other.
    invalid(
        "VOL02",
        queue("ml", deserved={"memory": UNKNOWN, "cpu": 2}, capability={"memory": 1, "cpu": 1}),
        says="deserved.cpu is 2; allowed: at most 1",
    ),
    invalid(
        "VOL02",
        queue("ml", **owed({"cpu": 7})),
        queue("a", parent="ml", **owed({"cpu": 8})),
        queue("b", parent="ml", **owed({"cpu": UNKNOWN})),
        queue("c", parent=UNKNOWN),
        says="guarantee.resource.cpu is 7; allowed: at least 8",
    ),
    valid("VOL03", policies({"event": "PodFailed", "events": ["PodFailed", "PodFailed"], "action": "RestartJob"}), edge=True),
    valid("VOL03", policies({"events": ["*", "*"], "action": "RestartJob"})),
    invalid("VOL03", policies({"events": ["PodFailed", "PodFailed"], "action": "RestartJob"}, on("PodFailed")), says="PodFailed once"),
    invalid("VOL03", policies({"action": "RestartJob"}, on("PodRunning")), says="policies[1].event is PodRunning"),
)

OF_DEFAULT = {"spec/tasks/0/template/spec/schedulerName": "default-scheduler"}
MEMORY = {f"{b.TASK_CONTAINER}/resources": {"requests": {"memory": "1Gi"}}}

CASES += (
    # A pod's own scheduler goes before the job's.
    invalid("VOL01", b.volcano_job(OF_DEFAULT), says="template.spec.schedulerName is default-scheduler; allowed: unset, or volcano"),
    valid("VOL01", b.volcano_job({"spec/tasks/0/template/spec/schedulerName": "volcano"}), edge=True),
    valid("VOL01", b.volcano_job({**OF_DEFAULT, "spec/tasks/0/replicas": 1, "spec/minAvailable": 1}), edge=True),
    # A gang that its queue has no room for.
    invalid("VOL02", queue("ml", capability={GPU: 31}), job("ml"), says="a gang that asks for 32 nvidia.com/gpu", edge=True),
    valid("VOL02", queue("ml", capability={GPU: 32}), job("ml"), edge=True),
    valid("VOL02", queue("ml", capability={"cpu": 8}), job("ml")),
    valid("VOL02", queue("ml", deserved={GPU: 8}, capability={GPU: 64}), job("ml")),
    invalid("VOL02", queue("org", capability={GPU: 16}), queue("ml", parent="org"), job("ml"), says="org may use 16"),
    invalid("VOL02", queue("ml", capability={"memory": "3Gi"}), job("ml", MEMORY), says="asks for 4096Mi memory"),
    valid("VOL02", queue("ml", capability={"memory": "4Gi"}), job("ml", MEMORY), edge=True),
    # A gang that does with fewer of its pods.
    valid("VOL02", queue("ml", capability={GPU: 16}), job("ml", {"spec/minAvailable": 2}), edge=True),
    invalid("VOL02", queue("ml", capability={GPU: 15}), job("ml", {"spec/minAvailable": 2}), says="asks for 16", edge=True),
    invalid("VOL02", queue("ml", capability={GPU: 16}), job("ml", {"spec/minAvailable": b.DELETE}), says="asks for 32"),
    valid("VOL02", queue("ml", capability={GPU: 16}), job("ml", {"spec/minAvailable": b.DELETE, "spec/tasks/0/minAvailable": 2})),
)


def in_tree(name: str, path: Any, weights: Any = None) -> Thing:
    """A queue with a place in the tree by annotations."""
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    own = {key: value for key, value in annotations.items() if value is not None}
    return Thing(type=tokens.QUEUE, name=name, properties={"metadata": {"name": name, "annotations": own}, "spec": {}})


CASES += (
    # The hierarchy by annotations: a weight for each part of the path, and queues at its ends alone.
    valid("VOL02", in_tree("sci", "root/sci", "1/2"), in_tree("eng", "root/eng/dev", "1/2/8.5")),
    valid("VOL02", in_tree("sci", "root/sci", "1/2"), in_tree("sciences", "root/sciences/dev", "1/2/3"), edge=True),
    valid("VOL02", in_tree("sci", "sci", "2"), in_tree("eng", "eng/dev", "2/8"), edge=True),
    valid("VOL02", in_tree("sci", "root/sci", "1/2"), in_tree("more", "root/sci", "1/2"), edge=True),
    valid("VOL02", in_tree("sci", "", "")),
    valid("VOL02", in_tree("sci", None, "1"), edge=True),
    *(valid("VOL02", in_tree("sci", "root/sci", f"1/{weight}"), edge=True) for weight in ("1", "1.", "1e3", "+2", "Inf", "0x8p-2")),
    *(
        invalid("VOL02", in_tree("sci", path, weights), says=f'hierarchy-weights"] is {found}; allowed: {allowed}', edge=edge)
        for path, weights, found, allowed, edge in (
            ("root/sci/dev", "1/2", "1/2", "a number for each part of volcano.sh/hierarchy, 3 in all", True),
            ("root/sci", "1/2/8", "1/2/8", "a number for each part of volcano.sh/hierarchy, 2 in all", True),
            ("root/sci", None, "unset", "a number for each part of volcano.sh/hierarchy, 2 in all", False),
            ("", "1/2", "1/2", "a number for each part of volcano.sh/hierarchy, 1 in all", False),
            ("root", None, "unset", "numbers above 0", True),
            ("root/sci", "1/0", "1/0", "numbers above 0", True),
            ("root/sci", "1/-2", "1/-2", "numbers above 0", False),
            ("root/sci", "1/", "1/", "numbers above 0", True),
            ("root/sci", "1/high", "1/high", "numbers above 0", False),
            ("root/sci", "1/50%", "1/50%", "numbers above 0", False),
            ("root/sci", "1/0.5", "1/0.5", "numbers from 1: the scheduler counts less as 1", True),
        )
    ),
    *(
        invalid("VOL02", in_tree("sci", *own), in_tree("dev", *other), says="allowed: a path that no other queue is below", edge=edge)
        for own, other, edge in (
            (("root/sci", "1/2"), ("root/sci/dev", "1/2/8"), True),
            (("sci", "2"), ("root/sci/dev", "1/2/8"), True),
            (("root/sci", "1/2"), ("sci/dev", "2/8"), False),
        )
    ),
)
