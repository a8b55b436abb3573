"""What Volcano's admission takes of a job."""

from typing import Any

from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

TASK = "spec/tasks/0"


def job(changes: dict[str, Any] | None = None) -> Thing:
    return b.volcano_job(changes or {})


def tasks(*each: dict[str, Any], name: str = "finetune", **spec: Any) -> Thing:
    """A job of small tasks."""
    made = [
        {"replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "registry.example/a:1"}]}}, **task} for task in each
    ]
    changes = {f"spec/{key}": value for key, value in spec.items()}
    return job({"metadata/name": name, "spec/tasks": made, "spec/minAvailable": len(each), **changes})


def after(name: str, *others: str) -> dict[str, Any]:
    return {"name": name, "dependsOn": {"name": list(others)}}


def pinned(resources: dict[str, Any], policy: str = "single-numa-node", where: str = "containers") -> Thing:
    container = {"name": "main", "image": "registry.example/a:1", "resources": resources}
    ordinary = {"name": "trainer", "image": "registry.example/a:1", "resources": {"limits": {"cpu": 4}}}
    spec = {"containers": [container]} if where == "containers" else {"containers": [ordinary], where: [container]}
    return tasks({"name": "worker", "topologyPolicy": policy, "template": {"spec": spec}})


def parted(total: int, size: int, least: int | None = None, **task: Any) -> Thing:
    policy = {"totalPartitions": total, "partitionSize": size, **({} if least is None else {"minPartitions": least})}
    return tasks({"name": "worker", "replicas": 4, "partitionPolicy": policy, **task})


def volumes(*each: dict[str, Any]) -> Thing:
    return job({"spec/volumes": list(each)})


DATA = {"mountPath": "/data", "volumeClaimName": "data"}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


LED_BY = {"pytorch": ["--master=mpimaster"], "ray": ["--head=mpimaster"]}
"""Plug-in -> how it is told the task that the others look for."""


def reading(script: str, *plugins: str, container: dict[str, Any] | None = None, **spec: Any) -> Thing:
    """A job whose task runs a script, with these plug-ins."""
    main = {"name": "main", "image": "registry.example/a:1", "command": ["sh", "-c", script], **(container or {})}
    task = {"name": "mpimaster", "template": {"spec": {"containers": [main]}}}
    return tasks(task, {"name": "worker"}, plugins={name: LED_BY.get(name, []) for name in plugins}, **spec)


HOSTFILE = "mpirun --host `cat /etc/volcano/worker.host | tr '\\n' ','` -np 2 hello"
HOSTS = "python3 -m rank --peers $VC_WORKER_HOSTS"
MOUNTED = {"volumeMounts": [{"name": "hosts", "mountPath": "/etc/volcano"}]}
MASTER, WORKER = {"name": "master"}, {"name": "worker"}

CASES = (
    valid("VOL04", job()),
    valid("VOL04", job({"spec/plugins": {"svc": [], "env": [], "ssh": []}})),
    valid("VOL04", tasks(MASTER, WORKER, plugins={"mpi": []})),
    valid("VOL04", tasks({"name": "launcher"}, {"name": "rank"}, plugins={"mpi": ["--master=launcher", "-worker=rank", "--port=22"]})),
    valid("VOL04", tasks({"name": "launcher"}, {"name": "rank"}, plugins={"mpi": ["--master", "launcher", "-worker", "rank"]})),
    valid("VOL04", tasks(MASTER, {"name": "rank"}, plugins={"mpi": ["--worker=other", "--worker=rank"]}), edge=True),
    # The plug-in's flags end where Go's parser stops: the rest is as if it were not there.
    valid("VOL04", tasks(MASTER, WORKER, plugins={"mpi": ["--rsh=ssh", "--master=launcher"]}), edge=True),
    invalid("VOL04", tasks({"name": "lead"}, WORKER, plugins={"mpi": ["--rsh=ssh", "--master=lead"]}), says="without a task master"),
    invalid("VOL04", tasks({"name": "lead"}, WORKER, plugins={"mpi": ["master=lead"]}), says="without a task master", edge=True),
    invalid("VOL04", tasks(MASTER, WORKER, plugins={"mpi": ["--master", "lead"]}), says="without a task lead"),
    # A flag without its value changes nothing.
    valid("VOL04", tasks(MASTER, WORKER, plugins={"mpi": ["--worker=worker", "--master"]}), edge=True),
    valid("VOL04", tasks({"name": "lead"}, WORKER, plugins={"mpi": ["--master=lead", "--master"]}), edge=True),
    invalid("VOL04", tasks({"name": "lead"}, WORKER, plugins={"mpi": ["--master"]}), says="without a task master", edge=True),
    # The plug-in svc tells pods each other's names; some bring it along.
    *(valid("VOL04", reading(HOSTFILE, "ssh", plugin)) for plugin in ("svc", "pytorch", "tensorflow", "ray")),
    valid("VOL04", reading(HOSTS, "svc")),
    valid("VOL04", reading("echo $VC_TASK_INDEX", "env"), edge=True),
    valid("VOL04", reading("test -f /etc/volcano/worker.host && cat /etc/volcano/worker.host"), edge=True),
    valid("VOL04", reading("echo ${VC_WORKER_NUM:-1}"), edge=True),
    valid("VOL04", reading("VC_WORKER_HOSTS=a,b; echo $VC_WORKER_HOSTS"), edge=True),
    valid("VOL04", reading(HOSTFILE, container=MOUNTED), edge=True),
    valid("VOL04", reading(HOSTFILE, volumes=[{"mountPath": "/etc/volcano", "volumeClaimName": "hosts"}]), edge=True),
    valid("VOL04", reading("# cat /etc/volcano/worker.host"), edge=True),
    invalid("VOL04", reading(HOSTFILE, "ssh"), says="command[2] is reading /etc/volcano/worker.host; allowed: svc in spec.plugins"),
    invalid("VOL04", reading("mpiexec -f /etc/volcano/worker.host hello"), says="is reading /etc/volcano/worker.host; allowed", edge=True),
    invalid("VOL04", reading(HOSTS, "env", "hcclrank"), says="is reading VC_WORKER_HOSTS", edge=True),
    invalid("VOL04", reading("torchrun --nnodes=${VC_WORKER_NUM} train.py"), says="is reading VC_WORKER_NUM; allowed"),
    invalid("VOL04", reading("python3 -c 'import os; print(os.environ[\"VC_WORKER_HOSTS\"])'"), says="is reading VC_WORKER_HOSTS"),
    valid("VOL04", tasks({}, {})),
    valid("VOL04", tasks(after("b", "a"), {"name": "a"}, after("c", "a", "b"))),
    valid("VOL04", volumes(DATA, {"mountPath": "/out", "volumeClaim": CLAIM})),
    valid("VOL04", pinned({"limits": {"cpu": "4"}})),
    valid("VOL04", pinned({"limits": {"cpu": 3}})),
    valid("VOL04", pinned({"limits": {"cpu": "4"}, "requests": {"cpu": "2000m"}})),
    valid("VOL04", pinned({"limits": {"cpu": "1500m"}}, policy="none")),
    valid("VOL04", parted(2, 2)),
    valid("VOL04", parted(2, 2, 2), edge=True),
    invalid("VOL04", parted(2, 2, 3), says="minPartitions is 3; allowed: at most 2, the partitions", edge=True),
    valid("VOL04", parted(2, 2, 1, minAvailable=2)),
    valid("VOL04", job({"spec/networkTopology": {"mode": "hard", "highestTierAllowed": 2}})),
    valid("VOL04", job({"spec/networkTopology": {"mode": "hard", "highestTierName": "rack"}})),
    valid("VOL04", job({"metadata/name": "a" * 54, f"{TASK}/name": "worker"}), edge=True),
    valid("VOL04", job({"metadata/name": b.DELETE})),
    invalid("VOL04", job({"metadata/name": "a" * 55, f"{TASK}/name": "worker"}), says="at most 54 characters", edge=True),
    # Only a host name has to hold the last pod's number; Volcano itself looks at the task's place.
    *(
        invalid(
            "VOL04",
            job({"metadata/name": "a" * 54, f"{TASK}/name": "worker", f"{TASK}/replicas": 11, "spec/plugins": {plugin: []}}),
            says="at most 53 characters beside task worker: pods' names are host names",
            edge=True,
        )
        for plugin in ("svc", "pytorch", "tensorflow")
    ),
    valid("VOL04", job({"metadata/name": "a" * 54, f"{TASK}/replicas": 11, "spec/plugins": {"env": []}}), edge=True),
    valid("VOL04", job({"metadata/name": "a" * 54, f"{TASK}/replicas": 10, "spec/plugins": {"svc": []}}), edge=True),
    invalid(
        "VOL04",
        tasks(*({"name": f"rank{number:02}"} for number in range(11)), name="a" * 54),
        says="at most 53 characters beside task rank10: Volcano takes no longer name of a pod",
        edge=True,
    ),
    invalid("VOL04", job({f"{TASK}/name": "a" * 61}), says="tasks[0].name is aaa", edge=True),
    invalid("VOL04", job({f"{TASK}/template/spec/containers": []}), says="containers is []; allowed: at least one container", edge=True),
    invalid("VOL04", job({f"{TASK}/template": b.DELETE}), says="template.spec.containers is unset"),
    invalid("VOL04", job({"spec/tasks": b.DELETE}), says="spec.tasks is unset; allowed: at least one task", edge=True),
    invalid("VOL04", tasks(), says="spec.tasks is []; allowed: at least one task", edge=True),
    invalid("VOL04", tasks(WORKER, WORKER), says="a name of its own: another task has it"),
    invalid("VOL04", tasks({}, {"name": "default0"}), says="spec.tasks[1].name is default0"),
    invalid(
        "VOL04", job({"spec/plugins": {"svc": [], "horovod": []}}), says="spec.plugins.horovod is horovod; allowed: one of ssh, env, svc"
    ),
    invalid(
        "VOL04", tasks({"name": "launcher"}, WORKER, plugins={"mpi": []}), says="without a task master; allowed: --master= with one of"
    ),
    invalid("VOL04", tasks(MASTER, {"name": "rank"}, plugins={"mpi": ["--worker=ranks"]}), says="without a task ranks"),
    invalid("VOL04", tasks(after("a", "b"), after("b", "a"), {"name": "c"}), says="spec.tasks[0].dependsOn.name is [b]"),
    invalid("VOL04", tasks({"name": "a"}, after("b", "missing")), says="spec.tasks[1].dependsOn.name is [missing]"),
    invalid("VOL04", tasks(after("a", "a")), says="tasks of this job that do not, in turn, wait"),
    invalid("VOL04", volumes(DATA, {**DATA, "volumeClaimName": "more"}), says="spec.volumes[1].mountPath is /data"),
    invalid("VOL04", volumes({"volumeClaimName": "data"}), says="mountPath is unset; allowed: a path"),
    invalid("VOL04", volumes({"mountPath": "/data"}), says="spec.volumes[0] is with neither"),
    invalid("VOL04", volumes({**DATA, "volumeClaim": CLAIM}), says="spec.volumes[0] is with both"),
    invalid("VOL04", volumes({**DATA, "volumeClaimName": "Data"}), says="volumeClaimName is Data"),
    invalid("VOL04", pinned({"limits": {"cpu": "1500m"}}), says="limits.cpu is 1500m; allowed: a whole number of CPUs"),
    invalid("VOL04", pinned({"limits": {"cpu": 4}, "requests": {"cpu": "500m"}}, "restricted"), says="requests.cpu is 500m"),
    invalid("VOL04", pinned({}, "best-effort"), says="limits.cpu is unset"),
    invalid("VOL04", pinned({"requests": {"cpu": "0"}}), says="requests.cpu is 0"),
    invalid("VOL04", pinned({"limits": {"cpu": "0.5"}}, where="initContainers"), says="initContainers[0].resources.limits.cpu is 0.5"),
    invalid("VOL04", parted(2, 3), says="replicas is 4; allowed: 6, the partitions times their size"),
    invalid("VOL04", parted(0, 2), says="totalPartitions is 0; allowed: at least 1"),
    invalid("VOL04", parted(4, 0), says="partitionSize is 0; allowed: at least 1"),
    invalid("VOL04", parted(2, 2, 1, minAvailable=4), says="minAvailable is 4; allowed: 2"),
    invalid(
        "VOL04",
        job({"spec/networkTopology": {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}}),
        says="highestTierName is rack; allowed: unset beside highestTierAllowed",
    ),
    invalid(
        "VOL04",
        tasks(
            {
                **WORKER,
                "partitionPolicy": {
                    "totalPartitions": 1,
                    "partitionSize": 1,
                    "networkTopology": {"highestTierAllowed": 1, "highestTierName": "a"},
                },
            }
        ),
        says="partitionPolicy.networkTopology.highestTierName is a",
    ),
)

HEAD = {"name": "head"}

CASES += (
    valid("VOL04", tasks(MASTER, WORKER, plugins={"pytorch": ["--master=master", "--worker=worker", "--port=23456"]})),
    valid("VOL04", tasks({"name": "lead"}, WORKER, plugins={"pytorch": ["--master=lead"]}), edge=True),
    valid("VOL04", tasks(MASTER, WORKER, {"name": "extras"}, plugins={"pytorch": []})),
    invalid("VOL04", tasks({"name": "lead"}, WORKER, plugins={"pytorch": []}), says="pytorch is without a task master; allowed: --master="),
    invalid("VOL04", tasks(MASTER, WORKER, plugins={"pytorch": ["--master=main"]}), says="without a task main"),
    valid("VOL04", tasks(HEAD, WORKER, plugins={"ray": []})),
    valid("VOL04", tasks({"name": "lead"}, WORKER, plugins={"ray": ["--headContainer=main", "--head=lead"]}), edge=True),
    invalid("VOL04", tasks(MASTER, WORKER, plugins={"ray": []}), says="ray is without a task head; allowed: --head= with one of the tasks"),
)
