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
    return b.pytorch_job({MASTER: b.DELETE, **elastic, **command, **(changes or {})})


def scheduled_by_volcano(template: object) -> Thing:
    spec = {"schedule": "0 3 * * 0", "jobTemplate": template}
    return Thing(type=tokens.VOLCANO_CRON_JOB, name="weekly", properties={"metadata": {"name": "weekly"}, "spec": spec})


VOLCANO_SPEC = b.volcano_job().properties["spec"]
TRAIN = ("torchrun", "train.py")

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
    valid("PTJ02", workers(*TRAIN, changes={f"{b.TORCH_CONTAINER}/env": [{"name": "MASTER_ADDR", "value": "align-worker-0"}]})),
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
)
