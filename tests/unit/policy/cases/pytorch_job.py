"""PyTorchJobs."""

from collections.abc import Mapping
from typing import Any

from guardrails import tokens
from guardrails.template import EFA, GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

MASTER, WORKER = f"{b.TORCH_ROLES}/Master", f"{b.TORCH_ROLES}/Worker"
COMMANDS = (f"{b.TORCH_MASTER_CONTAINER}/command", f"{b.TORCH_CONTAINER}/command")
LEAST = "spec/runPolicy/schedulingPolicy/minAvailable"


def running(*words: str, changes: Mapping[str, Any] | None = None) -> Thing:
    """Every pod runs these words."""
    return b.pytorch_job({**{place: list(words) for place in COMMANDS}, **(changes or {})})


def workers(*words: str, changes: Mapping[str, Any] | None = None, **policy: Any) -> Thing:
    """A job of workers alone, with an elasticPolicy if one is given."""
    elastic = {"spec/elasticPolicy": policy} if policy else {}
    command = {f"{b.TORCH_CONTAINER}/command": list(words)} if words else {}
    own = {path: value for path, value in (changes or {}).items() if not path.startswith(MASTER)}
    return b.pytorch_job({MASTER: b.DELETE, **elastic, **command, **own})


def scheduled_by_volcano(template: object) -> Thing:
    spec = {"schedule": "0 3 * * 0", "jobTemplate": template}
    return Thing(type=tokens.VOLCANO_CRON_JOB, name="weekly", properties={"metadata": {"name": "weekly"}, "spec": spec})


def setting(**variables: str) -> dict[str, Any]:
    """Both roles have these variables of their own."""
    env = [{"name": name, "value": value} for name, value in variables.items()]
    return {f"{role}/env": env for role in (b.TORCH_MASTER_CONTAINER, b.TORCH_CONTAINER)}


def cron(name: str = "weekly", **spec: Any) -> Thing:
    """A Volcano CronJob in a namespace."""
    job = scheduled_by_volcano({"spec": VOLCANO_SPEC})
    changes = {"metadata": {"name": name, "namespace": "training"}, **{f"spec/{key}": value for key, value in spec.items()}}
    return Thing(type=job.type, name="weekly", properties=b.changed(job.properties, changes))


PLAIN = {"name": "pytorch", "image": "registry.example/trainer:1.0.0"}
PORTS = f"{b.TORCH_CONTAINER}/ports"
ONE_GPU = {f"{role}/resources/limits": {GPU: 1} for role in (b.TORCH_MASTER_CONTAINER, b.TORCH_CONTAINER)}
BY_WORLD = ("torchrun", "--nnodes=$(WORLD_SIZE)", "--node-rank=$(RANK)", "--master-addr=$(MASTER_ADDR)", "t.py")
VOLCANO_SPEC = b.volcano_job().properties["spec"]
TRAIN = ("torchrun", "train.py")
OWN_MASTER = ("torchrun", "--nnodes=3", "--node_rank=0", "--master_addr=localhost")

CASES = (
    valid("PTJ01", b.pytorch_job()),
    valid("PTJ01", b.pytorch_job({"metadata/name": b.DELETE, "metadata/generateName": "align-"})),
    valid("PTJ01", b.pytorch_job({f"{WORKER}/replicas": b.DELETE})),
    valid("PTJ01", b.pytorch_job({WORKER: b.DELETE})),
    valid("PTJ01", b.pytorch_job({"spec/runPolicy/managedBy": "kueue.x-k8s.io/multikueue"})),
    valid("PTJ01", b.pytorch_job({"spec/nprocPerNode": "8"})),
    valid("PTJ01", workers(rdzvBackend="c10d", minReplicas=1, maxReplicas=64)),
    valid("PTJ01", workers(minReplicas=3, maxReplicas=3), edge=True),
    valid("PTJ01", workers(minReplicas=3), edge=True),
    valid("PTJ01", workers(standalone=False, nProcPerNode=8)),
    valid("PTJ01", b.pytorch_job({"spec/elasticPolicy": {"minReplicas": 4}}), edge=True),
    valid("PTJ01", b.pytorch_job({"metadata/name": "a" * 54}), edge=True),
    invalid("PTJ01", b.pytorch_job({"metadata/name": "a" * 55}), says="at most 54 characters", edge=True),
    invalid("PTJ01", b.pytorch_job({"metadata/name": "a" * 54, f"{WORKER}/replicas": 11}), says="at most 53 characters", edge=True),
    valid("PTJ01", b.pytorch_job({"metadata/name": "a" * 54, WORKER: b.DELETE}), edge=True),
    invalid("PTJ01", b.pytorch_job({"metadata/name": "a" * 55, WORKER: b.DELETE}), says="at most 54", edge=True),
    invalid("PTJ01", b.pytorch_job({"metadata/name": "2align"}), says="metadata.name is 2align; allowed: a lower-case letter"),
    invalid("PTJ01", b.pytorch_job({"metadata/name": "Align"}), says="it becomes a host name"),
    invalid("PTJ01", b.pytorch_job({b.TORCH_ROLES: {}}), says="pytorchReplicaSpecs is {}; allowed: Worker"),
    invalid(
        "PTJ01",
        b.pytorch_job({f"{b.TORCH_ROLES}/Launcher": b.pytorch_job().properties["spec"]["pytorchReplicaSpecs"]["Master"]}),
        says="Launcher is the role Launcher",
    ),
    invalid("PTJ01", b.pytorch_job({f"{MASTER}/replicas": b.DELETE}), says="Master.replicas is unset; allowed: 1"),
    invalid("PTJ01", b.pytorch_job({f"{MASTER}/replicas": 2}), says="Master.replicas is 2; allowed: 1", edge=True),
    invalid("PTJ01", b.pytorch_job({f"{MASTER}/replicas": 0}), says="Master.replicas is 0; allowed: 1", edge=True),
    invalid("PTJ01", b.pytorch_job({f"{WORKER}/replicas": 0}), says="Worker.replicas is 0; allowed: at least 1", edge=True),
    valid("PTJ01", b.pytorch_job({f"{WORKER}/replicas": 1}), edge=True),
    invalid(
        "PTJ01",
        b.pytorch_job({f"{b.TORCH_CONTAINER}/name": "main"}),
        says="Worker.template.spec.containers is main",
    ),
    invalid(
        "PTJ01",
        b.pytorch_job({f"{WORKER}/template/spec/containers": []}),
        says="Worker.template.spec.containers is []",
    ),
    invalid("PTJ01", b.pytorch_job({f"{WORKER}/template": b.DELETE}), says="containers is unset; allowed: a container pytorch"),
    invalid("PTJ01", b.pytorch_job({f"{b.TORCH_CONTAINER}/image": b.DELETE}), says="containers[0].image is unset; allowed: an image"),
    invalid(
        "PTJ01",
        b.pytorch_job({WORKER: b.DELETE, "spec/elasticPolicy": {"minReplicas": 1}}),
        says="Worker is unset; allowed: Worker, which an elasticPolicy scales",
    ),
    invalid(
        "PTJ01",
        workers(nProcPerNode=8, changes={"spec/nprocPerNode": "8"}),
        says="elasticPolicy.nProcPerNode is 8; allowed: only spec.nprocPerNode",
    ),
    invalid("PTJ01", workers(standalone=True), says="standalone is true; allowed: false"),
    invalid("PTJ01", workers(minReplicas=0, maxReplicas=3), says="minReplicas is 0; allowed: at least 1", edge=True),
    invalid("PTJ01", workers(minReplicas=3, maxReplicas=2), says="maxReplicas is 2; allowed: at least 3", edge=True),
    invalid("PTJ01", workers(minReplicas=4, maxReplicas=8), says="minReplicas is 4; allowed: at most 3", edge=True),
    invalid("PTJ01", workers(maxReplicas=4), says="maxReplicas is 4; allowed: at most 3", edge=True),
    invalid("PTJ01", workers(minReplicas=1, maxReplicas=2), says="maxReplicas is 2; allowed: at least 3, the pods that there are"),
    invalid("PTJ01", b.pytorch_job({"spec/elasticPolicy": {"minReplicas": 5}}), says="at most 4, the pods", edge=True),
    invalid("PTJ01", b.pytorch_job({"spec/runPolicy/managedBy": "acme.example/controller"}), says="managedBy is acme.example/controller"),
    valid("PTJ02", b.pytorch_job()),
    valid("PTJ02", running(*TRAIN)),
    valid("PTJ02", running("torchrun", "--nnodes=4", "--nproc-per-node=8", "train.py")),
    valid("PTJ02", workers("torchrun", "--nnodes=3", "train.py", minReplicas=1, maxReplicas=3)),
    valid("PTJ02", workers(*TRAIN, changes={f"{WORKER}/replicas": 1}), edge=True),
    valid("PTJ02", workers("torchrun", "--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=align-worker-0:23456", "train.py")),
    valid("PTJ02", b.pytorch_job({LEAST: 4}), edge=True),
    valid("PTJ02", workers(minReplicas=2, maxReplicas=3, changes={LEAST: 2}), edge=True),
    valid(
        "PTJ02",
        running(
            "python3", "train.py", changes={f"{role}/resources/limits": {GPU: 1} for role in (b.TORCH_MASTER_CONTAINER, b.TORCH_CONTAINER)}
        ),
        edge=True,
    ),
    valid("PTJ02", running("mpirun", "-np", "8", "python3", "train.py")),
    valid("PTJ02", running("/opt/entrypoint.sh")),
    valid("PTJ02", running("accelerate", "launch", "train.py", changes={"spec/nprocPerNode": "4"})),
    valid("PTJ02", running(*TRAIN, changes={"spec/nprocPerNode": "8"}), edge=True),
    valid("PTJ02", running(*TRAIN, changes={"spec/nprocPerNode": "auto"})),
    valid("PTJ02", running("torchrun", "--nproc-per-node=8", "train.py", changes={"spec/nprocPerNode": "4"})),
    valid(
        "PTJ02",
        running(
            *TRAIN,
            changes={"spec/nprocPerNode": "4", **{f"{role}/resources": {} for role in (b.TORCH_MASTER_CONTAINER, b.TORCH_CONTAINER)}},
        ),
    ),
    invalid("PTJ02", workers(*TRAIN), says="Master is unset, with 3 pods and no elasticPolicy; allowed: one Master"),
    invalid("PTJ02", workers(*TRAIN, changes={f"{WORKER}/replicas": 2}), says="unset, with 2 pods", edge=True),
    invalid("PTJ02", workers("python3", "train.py"), says="unless the program finds its peers itself"),
    invalid("PTJ02", workers("/opt/entrypoint.sh"), says="unless the program finds its peers itself"),
    invalid("PTJ02", b.pytorch_job({LEAST: 3}), says="minAvailable is 3; allowed: at least 4", edge=True),
    invalid("PTJ02", b.pytorch_job({LEAST: 5}), says="minAvailable is 5; allowed: at most 4", edge=True),
    invalid("PTJ02", workers(minReplicas=2, maxReplicas=3, changes={LEAST: 1}), says="minAvailable is 1; allowed: at least 2", edge=True),
    invalid("PTJ02", running(*TRAIN, changes={"spec/nprocPerNode": "9"}), says="nprocPerNode is 9; allowed: at most 8", edge=True),
    invalid("PTJ02", running(*TRAIN, changes={"spec/nprocPerNode": "7"}), says="nprocPerNode is 7; allowed: 8, one for each", edge=True),
    invalid("PTJ02", workers(*TRAIN, nProcPerNode=16), says="elasticPolicy.nProcPerNode is 16; allowed: at most 8"),
    invalid("PTJ02", running("python3", "-u", "train.py"), says="is one process for 8 GPUs"),
    # What other rules say of its pods.
    invalid("JOB03", running("torchrun", "--nnodes=3", "train.py"), says="is --nnodes 3; allowed: --nnodes 4"),
    invalid("JOB03", running("torchrun", "--nproc-per-node=16", "train.py"), says="16 processes per node"),
    valid("JOB03", workers("torchrun", "--nnodes=1:3", "train.py", minReplicas=1, maxReplicas=3)),
    valid("JOB03", b.pytorch_job()),
    invalid("JOB02", running("torchrun", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29400", "train.py"), says="localhost:29400"),
    invalid("EFA06", b.pytorch_job({f"{b.TORCH_CONTAINER}/resources/limits": {GPU: 8, EFA: 33}}), says="asking 33"),
    valid("EFA06", b.pytorch_job()),
    invalid("CKP01", running("torchrun", "train.py", "--save", "/tmp/checkpoints"), says="in the container's own file system"),
    invalid("POD09", b.pytorch_job(), says="do-not-disrupt"),
    invalid("VOL02", b.pytorch_job({"spec/runPolicy/schedulingPolicy/queue": "root"}), says="queue is root"),
    valid("VOL02", b.pytorch_job({"spec/runPolicy/schedulingPolicy/queue": "training"})),
    invalid("KUB01", b.pytorch_job({f"{WORKER}/replica": 3}), says="Worker.replica"),
    # A Volcano CronJob's job is judged as any.
    valid("VOL03", scheduled_by_volcano({"spec": VOLCANO_SPEC})),
    invalid("VOL01", scheduled_by_volcano({"spec": {**VOLCANO_SPEC, "minAvailable": 1}}), says="jobTemplate.spec.minAvailable is 1"),
    invalid(
        "JOB03",
        scheduled_by_volcano(
            {
                "spec": b.changed(
                    VOLCANO_SPEC,
                    {
                        "tasks/0/template/spec/containers/0/command": [
                            "torchrun",
                            "--nnodes=2",
                            "--rdzv-backend=c10d",
                            "--rdzv-endpoint=x-0.x:1",
                            "t.py",
                        ]
                    },
                )
            }
        ),
        says="--nnodes 2",
    ),
    # Ports: the operator makes a Service of each of the container's, with its own beside them.
    valid("PTJ01", b.pytorch_job({PORTS: [{"containerPort": 23456, "name": "pytorchjob-port"}]}), edge=True),
    valid("PTJ01", b.pytorch_job({PORTS: [{"containerPort": 29500, "name": "nccl"}, {"containerPort": 9, "name": "metrics"}]})),
    valid(
        "PTJ01",
        b.pytorch_job({f"{WORKER}/template/spec/containers": [PLAIN, {"name": "x", "image": "i:1.0.0", "ports": [{"containerPort": 1}]}]}),
    ),
    invalid("PTJ01", b.pytorch_job({PORTS: [{"containerPort": 29500}]}), says="ports[0].name is unset; allowed: a name"),
    invalid("PTJ01", b.pytorch_job({PORTS: [{"containerPort": 23456, "name": "nccl"}]}), says="containerPort is 23456", edge=True),
    invalid(
        "PTJ01",
        b.pytorch_job({PORTS: [{"containerPort": 1, "name": "pytorchjob-port"}, {"containerPort": 1, "name": "b"}]}),
        says="ports[1].containerPort is 1; allowed: a number of its own",
    ),
    invalid(
        "PTJ01",
        b.pytorch_job({PORTS: [{"containerPort": 1, "name": "pytorchjob-port"}, {"containerPort": 2}]}),
        says="ports[1].name is unset",
    ),
    # Restarts, ranges and rendezvous of an elasticPolicy.
    *(valid("PTJ01", b.pytorch_job({f"{WORKER}/restartPolicy": policy})) for policy in ("OnFailure", "ExitCode", "Never")),
    invalid("PTJ01", b.pytorch_job({f"{MASTER}/restartPolicy": "Always"}), says="Master.restartPolicy is Always; allowed: OnFailure"),
    valid("PTJ01", workers(minReplicas=4, maxReplicas=8, metrics=[{"type": "Resource"}])),
    valid("PTJ01", workers(minReplicas=1, maxReplicas=2, metrics=[{"type": "Resource"}])),
    invalid("PTJ01", workers(minReplicas=4, maxReplicas=3, metrics=[{"type": "Resource"}]), says="maxReplicas is 3; allowed: at least 4"),
    invalid(
        "PTJ01", b.pytorch_job({"spec/elasticPolicy": {"rdzvBackend": "c10d"}}), says="maxReplicas is unset, so 3; allowed: at least 4"
    ),
    *(valid("PTJ01", workers(rdzvBackend=backend, rdzvHost="etcd.infra")) for backend in ("etcd", "etcd-v2", "c10d")),
    invalid("PTJ01", workers(rdzvBackend="c10"), says="rdzvBackend is c10; allowed: c10d"),
    invalid("PTJ01", workers(rdzvBackend="etcd"), says="rdzvHost is unset; allowed: the host of the etcd server", edge=True),
    *(
        invalid("PTJ01", workers(rdzvHost=host), says=f"rdzvHost is {host}; allowed: a host that all pods reach")
        for host in ("localhost", "127.0.0.1", "[::1]", "::1")
    ),
    invalid("PTJ01", workers(rdzvConf=[]), says="rdzvConf is []; allowed: at least one setting"),
    valid("PTJ01", workers(rdzvConf=[{"key": "timeout", "value": "900"}]), edge=True),
    # Where ranks meet, and how many there are.
    invalid("JOB03", running("torchrun", "--rdzv-backend=c10d", "t.py"), says="--rdzv-backend=c10d and --rdzv-endpoint"),
    invalid("JOB03", running("torchrun", "--nnodes=4", "--rdzv-backend=c10d", "t.py"), says="--rdzv-backend=c10d and --rdzv-endpoint"),
    invalid("JOB03", workers(*TRAIN, rdzvBackend="static"), says="--rdzv-backend=c10d and --rdzv-endpoint"),
    valid("JOB03", workers(*TRAIN, rdzvBackend="c10d")),
    valid("JOB03", workers(*TRAIN)),
    invalid(
        "JOB03",
        b.pytorch_job({WORKER: b.DELETE, COMMANDS[0]: ["torchrun", "--nnodes=2", "t.py"]}),
        says="is --nnodes 2; allowed: --nnodes 1",
    ),
    valid("JOB03", b.pytorch_job({WORKER: b.DELETE})),
    valid("JOB03", running(*TRAIN, changes=setting(PET_NNODES="2", PET_NPROC_PER_NODE="16"))),
    invalid("JOB03", running(*TRAIN, changes={"spec/nprocPerNode": "16", **setting(PET_NPROC_PER_NODE="4")}), says="16 processes per node"),
    invalid("PTJ02", running(*TRAIN, changes={"spec/nprocPerNode": "16", **setting(PET_NPROC_PER_NODE="4")}), says="nprocPerNode is 16"),
    invalid("PTJ02", workers(*TRAIN, changes=setting(MASTER_ADDR="align-worker-0")), says="Master is unset, with 3 pods"),
    invalid("PTJ02", workers(*TRAIN, changes=setting(PET_MASTER_ADDR="align-worker-0")), says="Master is unset, with 3 pods"),
    invalid("PTJ02", workers("torchrun", "--nnodes=3", "--rdzv-endpoint=align-worker-0:29500", "t.py"), says="Master is unset"),
    valid("PTJ02", workers("torchrun", "--master-addr=align-worker-0", "--node-rank=$RANK", "t.py")),
    valid("PTJ02", workers("python3", "t.py", changes={**setting(MASTER_ADDR="align-worker-0"), **ONE_GPU})),
    invalid("PTJ02", workers("python3", "t.py", rdzvBackend="c10d", changes=ONE_GPU), says="no torchrun is called"),
    valid("PTJ02", workers("/opt/run.sh", rdzvBackend="c10d")),
    valid("PTJ02", workers("python3", "t.py", rdzvBackend="c10d", changes={**ONE_GPU, f"{WORKER}/replicas": 1}), edge=True),
    invalid("PTJ02", running("torchrun", "--nnodes=1", "t.py"), says="is --nnodes 1; allowed: --nnodes 4, the pods of the job."),
    invalid("PTJ02", workers("torchrun", "--nnodes=1", "t.py", rdzvBackend="c10d"), says="the pods of the job, unless each trains alone"),
    invalid("PTJ02", workers("torchrun", "--standalone", "--nnodes=1", "t.py"), says="unless each trains alone"),
    valid("PTJ02", b.pytorch_job({WORKER: b.DELETE, COMMANDS[0]: ["torchrun", "--nnodes=1", "t.py"]}), edge=True),
    valid("PTJ02", b.pytorch_job({"spec/elasticPolicy": {"rdzvBackend": "c10d"}, LEAST: 3}), edge=True),
    invalid("PTJ02", b.pytorch_job({"spec/elasticPolicy": {"rdzvBackend": "c10d"}, LEAST: 2}), says="at least 3", edge=True),
    valid("PTJ02", workers(minReplicas=4, maxReplicas=8, metrics=[{"type": "Resource"}], changes={LEAST: 4}), edge=True),
    *(
        invalid("PTJ02", running(*TRAIN, changes={"spec/nprocPerNode": text}), says=f"nprocPerNode is {text}")
        for text in ("\u00b2", "eight", "-1", "0", "08")
    ),
    *(valid("PTJ02", running(*TRAIN, changes={"spec/nprocPerNode": text})) for text in ("gpu", "cpu", "xpu", "privateuseone")),
    invalid("PTJ02", running("python3", "t.py", changes={"spec/nprocPerNode": "8", **ONE_GPU}), says="WORLD_SIZE is a multiple of it"),
    valid("PTJ02", running("python3", "t.py", changes={"spec/nprocPerNode": "1", **ONE_GPU}), edge=True),
    # A pod's own address: what the operator sets again does not count, and a Master may call itself as it likes.
    *(
        invalid("JOB02", running("torchrun", *words, "t.py", changes={f"{WORKER}/replicas": 1}), says="<job>-master-0")
        for words in (["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29400"], ["--master-addr=127.0.0.1"], ["--standalone"])
    ),
    valid("JOB02", running(*TRAIN, changes=setting(MASTER_ADDR="localhost"))),
    invalid("JOB02", workers(*TRAIN, changes=setting(MASTER_ADDR="localhost")), says="env[0].value is localhost"),
    valid(
        "JOB02",
        b.pytorch_job(
            {
                COMMANDS[0]: ["torchrun", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29400", "t.py"],
                COMMANDS[1]: ["torchrun", "--rdzv-backend=c10d", "--rdzv-endpoint=align-master-0:29400", "t.py"],
            }
        ),
    ),
    # With an elasticPolicy the operator names a rendezvous, beside which torchrun reads no master's address.
    valid("JOB02", workers(*OWN_MASTER, "t.py", minReplicas=3), edge=True),
    valid("JOB02", workers(*OWN_MASTER, "t.py", minReplicas=3, rdzvBackend="etcd", rdzvHost="etcd"), edge=True),
    valid("JOB02", workers(*TRAIN, changes=setting(MASTER_ADDR="localhost"), minReplicas=3)),
    invalid("JOB02", workers(*OWN_MASTER, "t.py", minReplicas=3, rdzvBackend="static"), says="is --master-addr localhost", edge=True),
    invalid("JOB02", workers(*OWN_MASTER, "--rdzv-backend=static", "t.py", minReplicas=3), says="is --master-addr localhost", edge=True),
    invalid("JOB02", workers(*OWN_MASTER, "t.py"), says="is --master-addr localhost", edge=True),
    # A Volcano CronJob is in a namespace, and so are its jobs.
    invalid("VOL04", cron(schedule=b.DELETE), says="spec.schedule is unset; allowed: five fields"),
    invalid("VOL04", cron(schedule="61 * * * *"), says="spec.schedule is 61 * * * *"),
    invalid("VOL04", cron(schedule="TZ=UTC 0 3 * * *"), says="a schedule without TZ"),
    invalid("VOL04", cron(timeZone="Local"), says="spec.timeZone is Local"),
    invalid("VOL04", cron(timeZone=""), says="spec.timeZone is"),
    invalid("VOL04", cron(timeZone="Europe/-x"), says="spec.timeZone is Europe/-x"),
    invalid("VOL04", cron(name="a" * 53), says="at most 52 characters", edge=True),
    valid("VOL04", cron(name="a" * 52), edge=True),
    valid("VOL04", cron(schedule="@every 1h30m", timeZone="America/Argentina/Buenos_Aires")),
    valid("VOL04", cron(schedule="@weekly")),
    invalid("KUB01", cron(concurrencyPolicy="Never"), says="spec.concurrencyPolicy is Never"),
    # Roles that are told ranks of their own, and calls that only prepare.
    valid(
        "JOB03",
        b.pytorch_job(
            {
                f"{WORKER}/replicas": 1,
                COMMANDS[0]: ["torchrun", "--node-rank=0", "t.py"],
                COMMANDS[1]: ["torchrun", "--node-rank=1", "t.py"],
            }
        ),
        edge=True,
    ),
    invalid("JOB03", b.pytorch_job({COMMANDS[1]: ["torchrun", "--node-rank=1", "t.py"]}), says="--node-rank 1 in 3 pods"),
    valid("PTJ02", running("bash", "-c", "torchrun --nnodes=1 --node-rank=0 --master-addr=localhost tok.py && torchrun train.py")),
    valid("PTJ02", running("bash", "-c", "torchrun train.py && torchrun --nnodes=1 eval.py")),
    invalid("PTJ02", running("torchrun", "--nnodes=1", "--node-rank=0", "t.py"), says="unless each trains alone", edge=True),
    # An elasticPolicy tells the number of pods; its own rule judges that.
    valid("JOB03", workers(*TRAIN, minReplicas=2, maxReplicas=2)),
    valid("JOB03", b.pytorch_job({"spec/elasticPolicy": {}, **{place: list(TRAIN) for place in COMMANDS}})),
    valid("JOB03", workers(*TRAIN, minReplicas=2, maxReplicas=4, metrics=[{"type": "Resource"}], changes={f"{WORKER}/replicas": 1})),
    # What scales the pods changes no number that torchrun itself is told.
    valid("JOB03", workers("torchrun", "--nnodes=3", "t.py", maxReplicas=4, metrics=[{"type": "Resource"}]), edge=True),
    valid("JOB03", workers("torchrun", "--nnodes=1:4", "t.py", maxReplicas=4, metrics=[{"type": "Resource"}])),
    valid("JOB03", workers("torchrun", "--nnodes=3:4", "t.py", maxReplicas=4, metrics=[{"type": "Resource"}]), edge=True),
    invalid(
        "JOB03", workers("torchrun", "--nnodes=4:5", "t.py", maxReplicas=4, metrics=[{"type": "Resource"}]), says="at most 3", edge=True
    ),
    invalid(
        "JOB03", workers("torchrun", "--nnodes=2", "t.py", maxReplicas=4, metrics=[{"type": "Resource"}]), says="is --nnodes 2; allowed"
    ),
    invalid(
        "JOB03",
        workers("torchrun", "--nnodes=2", "t.py", maxReplicas=64, metrics=[{"type": "Resource"}], changes={f"{WORKER}/replicas": 1}),
        says="is --nnodes 2; allowed: --nnodes 1",
    ),
    invalid("JOB03", workers("torchrun", "--nnodes=2", "t.py", maxReplicas=3), says="is --nnodes 2; allowed: --nnodes 3", edge=True),
    valid("PTJ01", workers(rdzvHost="localhost", maxReplicas=1, changes={f"{WORKER}/replicas": 1}), edge=True),
    invalid(
        "PTJ01",
        workers(rdzvHost="localhost", minReplicas=1, maxReplicas=2, changes={f"{WORKER}/replicas": 1}),
        says="rdzvHost is",
        edge=True,
    ),
    *(
        valid("PTJ01", b.pytorch_job({f"{WORKER}/restartPolicy": "Always", "spec/runPolicy/cleanPodPolicy": policy}), edge=True)
        for policy in ("Running", "All")
    ),
    invalid(
        "PTJ01", b.pytorch_job({f"{WORKER}/restartPolicy": "Always", "spec/runPolicy/cleanPodPolicy": "None"}), says="is Always", edge=True
    ),
    invalid("PTJ01", b.pytorch_job({f"{WORKER}/restartPolicy": "Always"}), says="Worker.restartPolicy is Always"),
    invalid(
        "PTJ01", workers(changes={f"{WORKER}/restartPolicy": "Always", "spec/runPolicy/cleanPodPolicy": "All"}), says="is Always", edge=True
    ),
    invalid("PTJ01", b.pytorch_job({f"{WORKER}/restartPolicy": "never", "spec/runPolicy/cleanPodPolicy": "All"}), says="is never"),
    # The operator's WORLD_SIZE counts processes.
    invalid("JOB03", running(*BY_WORLD, changes={"spec/nprocPerNode": "8"}), says="is --nnodes 32; allowed: --nnodes 4"),
    valid("JOB03", running(*BY_WORLD)),
    valid("JOB03", running(*BY_WORLD, changes={"spec/nprocPerNode": "auto"}), edge=True),
    valid("VOL04", cron(schedule="@every .5h")),
    valid("VOL04", cron(schedule="1,2,,3 * * * *")),
)

_RANK = {
    "name": "ranks",
    "image": "registry.example/trainer@sha256:" + "0" * 64,
    "command": ["hyperpodrun", "--nnodes=2:2", "--nproc_per_node=8", "train.py"],
    "resources": {"limits": {GPU: 8, EFA: 32}, "requests": {GPU: 8, EFA: 32}},
}
_HYPERPOD_JOB = {
    "metadata": {"name": "tune"},
    "spec": {
        "nprocPerNode": "8",
        "replicaSpecs": [{"name": "pods", "replicas": 2, "spares": 1, "template": {"spec": {"containers": [_RANK]}}}],
    },
}
HYPERPOD_POD = "spec/replicaSpecs/0/template/spec"
HYPERPOD_CONTAINER = f"{HYPERPOD_POD}/containers/0"
LIMITS, REQUESTS = (f"{HYPERPOD_CONTAINER}/resources/{kind}" for kind in ("limits", "requests"))
ON_P5 = {f"{HYPERPOD_POD}/nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}}


def hyperpod(changes: Mapping[str, Any] | None = None) -> Thing:
    """A job of SageMaker HyperPod's operator, which tells the ranks where they meet."""
    return Thing(type=tokens.HYPERPOD_JOB, name="tune", properties=b.changed(_HYPERPOD_JOB, changes or {}))


def variable(name: str, value: str) -> dict[str, Any]:
    return {f"{HYPERPOD_CONTAINER}/env": [{"name": name, "value": value}]}


MOUNTS = f"{HYPERPOD_CONTAINER}/volumeMounts"
NO_EFA = {LIMITS: {GPU: 8}, REQUESTS: {GPU: 8}}
CASES += (
    # The pods of a HyperPodPyTorchJob are judged as any, but for where ranks meet and what their nodes have.
    valid("KUB03", hyperpod()),
    valid("EFA06", hyperpod()),
    valid("EFA06", hyperpod({**ON_P5, **NO_EFA, "spec/replicaSpecs/0/replicas": 1}), edge=True),
    invalid("EFA06", hyperpod({**ON_P5, **NO_EFA}), says="asking no vpc.amazonaws.com/efa; allowed: 32", edge=True),
    invalid(
        "EFA06", hyperpod({**NO_EFA, **variable("FI_PROVIDER", "efa")}), says="replicaSpecs[0].template.spec.containers[0].env[0].value is"
    ),
    valid("POD04", hyperpod()),
    invalid("POD04", hyperpod({REQUESTS: {GPU: 4, EFA: 32}}), says="is 4; allowed: 8"),
    invalid(
        "POD01",
        hyperpod({f"{HYPERPOD_CONTAINER}/securityContext": {"privileged": True}}),
        says="replicaSpecs[0].template.spec.containers[0]",
    ),
    # What the operator adds is not known.
    valid("POD10", hyperpod({MOUNTS: [{"name": "data", "mountPath": "/data"}]})),
    invalid(
        "POD10", hyperpod({MOUNTS: [{"name": name, "mountPath": "/data"} for name in ("a", "b")]}), says="volumeMounts[1].mountPath is"
    ),
    invalid("ENV01", hyperpod(variable("NCCL_PROTO", "Simple")), says="NCCL_PROTO=Simple"),
    valid("JOB02", hyperpod(variable("MASTER_ADDR", "localhost"))),
    valid("JOB03", hyperpod({f"{HYPERPOD_CONTAINER}/command": ["torchrun", "train.py"]})),
    valid("KRP11", b.node_pool(), hyperpod()),
    valid("POD09", hyperpod()),
    valid("EFA07", Thing(type=tokens.CLUSTER, name="cluster", properties={}), hyperpod()),
)


def train_job(trainer: Mapping[str, Any] | None = None, **initializer: Any) -> Thing:
    """A job of Kubeflow Trainer, whose pods its runtime has."""
    own = {"numNodes": 4, "image": "registry.example/trainer:1.4.2", "command": ["torchrun", "train.py"], **(trainer or {})}
    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": own, **({"initializer": initializer} if initializer else {})}
    return Thing(type=tokens.TRAIN_JOB, name="sft", properties={"metadata": {"name": "sft"}, "spec": spec})


def with_token(**token: Any) -> dict[str, Any]:
    return {"storageUri": "hf://org/model", "env": [{"name": "HF_TOKEN", **token}]}


CASES += (
    # Of a TrainJob what is written is judged, and nothing is missing: the runtime may have it.
    valid("POD03", train_job()),
    valid("POD03", train_job({"image": None})),
    invalid(
        "POD03", train_job({"image": "registry.example/trainer:latest"}), says="sft: spec.trainer.image is registry.example/trainer:latest"
    ),
    valid("POD02", train_job({"env": [{"name": "EPOCHS", "value": "3"}]})),
    invalid(
        "POD02", train_job({"env": [{"name": "WANDB_API_KEY", "value": "0123456789abcdef"}]}), says="spec.trainer.env[0].value is a literal"
    ),
    valid("POD02", train_job(model=with_token(valueFrom={"secretKeyRef": {"name": "hub", "key": "token"}})), edge=True),
    invalid(
        "POD02", train_job(model=with_token(value="not-a-real-token")), says="spec.initializer.model.env[0].value is a literal", edge=True
    ),
    invalid("POD02", train_job(dataset=with_token(value="not-a-real-token")), says="spec.initializer.dataset.env[0].value is a literal"),
    invalid(
        "ENV01", train_job({"env": [{"name": "RDMAV_FORK_SAFE", "value": "1"}]}), says="spec.trainer.env[0].value is RDMAV_FORK_SAFE=1"
    ),
    valid("ENV01", train_job({"env": [{"name": "NCCL_DEBUG", "value": "WARN"}]})),
    *(
        valid(rule, train_job({"resourcesPerNode": {"requests": {GPU: 8}}}))
        for rule in ("POD04", "POD07", "POD09", "EFA06", "JOB02", "JOB03")
    ),
)
