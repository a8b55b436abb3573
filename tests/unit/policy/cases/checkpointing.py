"""Checkpoints of jobs that are not ours."""

from dataclasses import replace
from typing import Any

from guardrails import tokens
from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.pod_security import config_map

POD = "spec/tasks/0/template/spec"
CLAIM = {"persistentVolumeClaim": {"claimName": "checkpoints"}}


def gang(arguments: str, volume: dict[str, Any] | None = None, **changes: Any) -> Thing:
    """Four pods of eight GPUs with one volume at /state."""
    place = {
        f"{b.TASK_CONTAINER}/command": ["python3", "train.py", *arguments.split()],
        f"{b.TASK_CONTAINER}/volumeMounts": [{"name": "state", "mountPath": "/state"}],
        f"{POD}/volumes": [{"name": "state", **(volume or CLAIM)}],
    }
    return b.volcano_job({**place, **changes})


def script(*lines: str, **changes: Any) -> Thing:
    """As `gang`, with a shell script."""
    return gang("", None, **{f"{b.TASK_CONTAINER}/command": ["bash", "-ec", "\n".join(lines)], **changes})


def held(kind: str, command: str, volume: dict[str, Any] | None = None, name: str = "state") -> Thing:
    """Four pods of another kind than a Job, with one volume at /state."""
    container = {"name": "main", "command": command.split(), "volumeMounts": [{"name": name, "mountPath": "/state"}]}
    pod = {"containers": [{**container, "resources": {"limits": {GPU: 8}}}], "volumes": [{"name": "state", **(volume or CLAIM)}]}
    job = {"parallelism": 4, "completions": 4, "template": {"spec": pod}}
    specs: dict[str, dict[str, Any]] = {
        tokens.JOB_SET: {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}]},
        tokens.CRON_JOB: {"schedule": "0 3 * * *", "jobTemplate": {"spec": job}},
        tokens.STATEFUL_SET: {"replicas": 4, "template": {"spec": pod}, "volumeClaimTemplates": [{"metadata": {"name": "own"}}]},
        **{each: {"replicas": 1, "template": {"spec": pod}} for each in (tokens.DEPLOYMENT, tokens.REPLICA_SET)},
        tokens.LEADER_WORKER_SET: {"replicas": 1, "leaderWorkerTemplate": {"size": 4, "workerTemplate": {"spec": pod}}},
    }
    return Thing(type=kind, name="pretrain", properties={"metadata": {"name": "pretrain"}, "spec": specs[kind]})


def named(value: str, volume: dict[str, Any] | None = None) -> Thing:
    return gang("", volume, **variable("CHECKPOINT_DIR", value))


def start(folder: str) -> dict[str, Any]:
    return {f"{b.TASK_CONTAINER}/workingDir": folder}


def variable(name: str, value: str) -> dict[str, Any]:
    return {f"{b.TASK_CONTAINER}/env": [{"name": name, "value": value}]}


def nested(inner: dict[str, Any], outer: dict[str, Any]) -> Thing:
    """A job that saves to /state/run/last, with a volume at /state/run inside that at /state."""
    mounts = [{"name": "outer", "mountPath": "/state"}, {"name": "inner", "mountPath": "/state/run/"}]
    volumes = [{"name": "outer", **outer}, {"name": "inner", **inner}]
    return gang("--save /state/run/last", None, **{f"{b.TASK_CONTAINER}/volumeMounts": mounts, f"{POD}/volumes": volumes})


def ranks(pods: int, gpus: int) -> Thing:
    """A job of so many pods that saves to one file."""
    limits = {"spec/tasks/0/replicas": pods, f"{b.TASK_CONTAINER}/resources": {"limits": {GPU: gpus}, "requests": {GPU: gpus}}}
    return gang("--save /state/ckpt.pt", None, **limits)


def lustre(kind: str) -> tuple[Thing, Thing]:
    """A claim of the name that the job mounts, and its class."""
    claim = {"metadata": {"name": "checkpoints"}, "spec": {"storageClassName": "lustre"}}
    storage = {"metadata": {"name": "lustre"}, "provisioner": "fsx.csi.aws.com", "parameters": {"deploymentType": kind}}
    claims = Thing(type=tokens.VOLUME_CLAIM, name="claim", properties=claim)
    return claims, Thing(type=tokens.STORAGE_CLASS, name="class", properties=storage)


def by_note(name: str | None, noted: str) -> tuple[Thing, Thing]:
    """A claim on scratch or not, that says its class by the annotation of old too, and the class that makes scratch."""
    claim, storage = lustre("SCRATCH_2")
    metadata = {"name": "checkpoints", "annotations": {"volume.beta.kubernetes.io/storage-class": noted}}
    return replace(claim, properties={"metadata": metadata, "spec": {"storageClassName": name}}), storage


CHANGES_FOLDER: dict[str, Any] = {f"{b.TASK_CONTAINER}/command": ["sh", "-c", "cd /state && python3 train.py --save run"]}
READ_ONLY: dict[str, Any] = {f"{b.TASK_CONTAINER}/volumeMounts": [{"name": "state", "mountPath": "/data", "readOnly": True}]}
EMPTY: dict[str, Any] = {"emptyDir": {}}
LAUNCHER = "spec/mpiReplicaSpecs/Launcher/template/spec"
MPIRUN = ["mpirun", "-np", "32", "python3", "train.py", "--save"]


def mpi(path: str, launcher: dict[str, Any] | None, worker: dict[str, Any] | None, **changes: Any) -> Thing:
    """An MPIJob whose launcher saves to a path, with a volume at /state in its pods, or none."""
    place: dict[str, Any] = {b.LAUNCHER_COMMAND: [*MPIRUN, path]}
    for volume, spec in ((launcher, LAUNCHER), (worker, f"{b.WORKER}/template/spec")):
        if volume is not None:
            place[f"{spec}/volumes"] = [{"name": "state", **volume}]
            place[f"{spec}/containers/0/volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
    return b.mpi_job({**place, **changes})


INNER: dict[str, Any] = {"spec/volumes": [{"mountPath": "/state/run", "volumeClaimName": "checkpoints"}]}
SCRATCH_CLASS = Thing(
    type=tokens.STORAGE_CLASS,
    name="other-class",
    properties={"metadata": {"name": "scratch"}, "provisioner": "fsx.csi.aws.com", "parameters": {"deploymentType": "SCRATCH_2"}},
)
RANK_TOO = {"spec/runLauncherAsWorker": True}
ONE_RANK = {f"{b.WORKER}/replicas": 1, f"{b.WORKER_CONTAINER}/resources": {"limits": {GPU: 1}, "requests": {GPU: 1}}}
NO_DEVICE = {f"{b.TASK_CONTAINER}/resources": {"limits": {"cpu": "4"}}}
NEURON = {f"{b.TASK_CONTAINER}/resources": {"limits": {"aws.amazon.com/neuron": 16}}}


def volcano_mpi(*flags: str, master: str = "master") -> Thing:
    """A Volcano job with the mpi plug-in: the master starts ranks in the workers, which have a claim at /state."""
    launcher = {
        "name": master,
        "replicas": 1,
        "template": {"spec": {"containers": [{"name": "main", "command": [*MPIRUN, "/state/ckpts"]}]}},
    }
    worker = gang("").properties["spec"]["tasks"][0]
    return b.volcano_job({"spec/plugins": {"mpi": list(flags), "ssh": []}, "spec/tasks": [launcher, worker]})


def beside(command: str, path: str = "/state", mount: str = "state", arguments: str = "--save /state/run", **more: Any) -> Thing:
    """A gang that saves to an emptyDir, with another container that runs a command."""
    plain = gang(arguments, EMPTY).properties
    first = plain["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    other = {"name": "other", "command": ["sh", "-c", command], "volumeMounts": [{"name": mount, "mountPath": path}], **more}
    return Thing(type=tokens.VOLCANO_JOB, name="finetune", properties=b.changed(plain, {f"{POD}/containers": [first, other]}))


def before(command: str, **more: Any) -> Thing:
    """As `beside`, with an init container."""
    init = {"name": "other", "command": command.split(), "volumeMounts": [{"name": "state", "mountPath": "/state"}], **more}
    return gang("--save /state/run", EMPTY, **{f"{POD}/initContainers": [init]})


def shared(path: str, **volume: Any) -> Thing:
    """A job whose volumes are those of the job itself, which Volcano mounts everywhere."""
    return b.volcano_job({f"{b.TASK_CONTAINER}/command": ["python3", "train.py", "--save", path], "spec/volumes": [volume]})


def inline(**claim: Any) -> dict[str, Any]:
    """A volume of the job itself at /state, on a claim that Volcano makes."""
    return {"mountPath": "/state", "volumeClaim": {"accessModes": ["ReadWriteMany"], **claim}}


def among(volume: dict[str, Any], command: str, *mounts: dict[str, str], init: bool = False, **changes: Any) -> Thing:
    """A job that saves to a volume of its own, with another container (or sidecar) of these mounts that runs a command."""
    other = {"name": "other", "command": ["sh", "-c", command], "volumeMounts": list(mounts)}
    plain = gang("--save /state/run", EMPTY, **{"spec/volumes": [volume], **UNMOUNTED, **changes}).properties
    first = plain["spec"]["tasks"][0]["template"]["spec"]["containers"]
    place = {f"{POD}/initContainers": [{**other, "restartPolicy": "Always"}]} if init else {f"{POD}/containers": [*first, other]}
    return Thing(type=tokens.VOLCANO_JOB, name="finetune", properties=b.changed(plain, place))


UNMOUNTED: dict[str, Any] = {f"{b.TASK_CONTAINER}/volumeMounts": []}
HERE_UNKNOWN = {"mountPath": "/state", "volumeClaimName": UNKNOWN}
HIDDEN = [{"name": "state", "mountPath": "/state"}, {"name": "other", "mountPath": "/state/run"}]
ON_SCRATCH = {"mountPath": "/state", "volumeClaimName": "checkpoints"}
OVER: dict[str, Any] = {f"{b.TASK_CONTAINER}/volumeMounts": [{"name": "state", "mountPath": "/state/"}]}
FILES_ID = "fs-0123456789abcdef0"


def static(kind: str, known: bool = True, name: str = "volume", **attributes: Any) -> tuple[Thing, Thing, Thing]:
    """A claim of the name that the job mounts, on a volume of a file system of the program, by its id or by where it comes from."""
    files = b.lustre(deploymentType=kind, storageCapacity=1200, **({"id": FILES_ID} if known else {}))
    csi = {"driver": "fsx.csi.aws.com", "volumeHandle": FILES_ID if known else UNKNOWN, **attributes}
    volume = Thing(
        type=tokens.PERSISTENT_VOLUME,
        name=name,
        properties={"metadata": {"name": name}, "spec": {"csi": csi}},
        sources={} if known else {"spec": [files.name]},
    )
    spec = {"volumeName": name, "storageClassName": ""}
    return files, volume, Thing(type=tokens.VOLUME_CLAIM, name="claim", properties={"metadata": {"name": "checkpoints"}, "spec": spec})


def reading(kind: str, spec: dict[str, Any], sources: dict[str, list[str]] | None = None) -> Thing:
    return Thing(type=kind, name="reader", properties={"metadata": {"name": "reader"}, "spec": spec}, sources=sources or {})


def ray(kind: str, entrypoint: str = "", volume: dict[str, Any] | None = None, head: dict[str, Any] | None = None) -> Thing:
    """A Ray cluster, or a job of one, with one volume at /state in its workers and maybe another one in its head, and the code of a map."""
    front: dict[str, Any] = {"name": "ray", "volumeMounts": [{"name": "state", "mountPath": "/state"}]}
    worker = {**front, "resources": {"limits": {GPU: 8}}}
    code = {"name": "code", "configMap": {"name": "settings"}}
    pods = {"containers": [worker], "volumes": [{"name": "state", **(volume or CLAIM)}, *([] if entrypoint else [code])]}
    heads = {"containers": [front], "volumes": [{"name": "state", **(head or volume or CLAIM)}]}
    group = {"groupName": "gpu", "replicas": 4, "template": {"spec": pods}}
    cluster = {"headGroupSpec": {"template": {"spec": heads}}, "workerGroupSpecs": [group]}
    spec = {"entrypoint": entrypoint, "rayClusterSpec": cluster} if kind == tokens.RAY_JOB else cluster
    # Two of a program have two names, in a list too.
    name = "tune" if kind == tokens.RAY_CLUSTER else "tuning"
    return Thing(type=kind, name=name, properties={"metadata": {"name": name}, "spec": spec})


def trainer_code(path: str, more: str = "") -> Thing:
    return config_map(**{"train.py": f'{more}\nTorchTrainer(loop, run_config=RunConfig(name="tune", storage_path="{path}"))\n'})


NO_PLAIN_PATH = (
    'def run(storage_path="/tmp/x"):\n    return RunConfig(storage_path=storage_path)\n',
    '"""RunConfig(storage_path="/tmp/x") is for one node."""\nRunConfig(storage_path=os.environ["STORAGE"])\n',
    'c = RunConfig(storage_path="/tmp/x") if smoke else RunConfig(storage_path="s3://bucket/x")\n',
    'c = RunConfig(storage_path="/tmp/x")\nc.storage_path = STORAGE\n',
    'c = RunConfig(**{"storage_path": STORAGE})\nd = RunConfig(storage_path="/tmp/x")\n',
    'c = RunConfig(storage_path="/tmp/x"\n',
)
TWO_LOST = 'c = train.RunConfig(storage_path="/tmp/x") if smoke else train.RunConfig(storage_path="/tmp/y")\nd = RunConfig()\n'
ROLLOUT = "kubernetes:argoproj.io/v1alpha1:Rollout"
RESUME = config_map(auto_resume="true")
IN_OTHER_NAMESPACE = {**trainer_code("/tmp/x").properties, "metadata": {"name": "settings", "namespace": "other"}}
MOUNTED_BY_POD = {f"{b.TASK_CONTAINER}/volumeMounts": [{"name": "state", "mountPath": "/state", "subPathExpr": "$(HOSTNAME)"}]}
A_RANK = {"spec/tasks/0/replicas": 1, f"{b.TASK_CONTAINER}/resources": {"limits": {GPU: 1}}}
FILE_RESUMES = {"config.yaml": "auto_resume: true\n"}
FROM_MAP = {"name": "x", "envFrom": [{"configMapRef": {"name": "settings"}}]}
KEY_OF_MAP = {"name": "x", "env": [{"name": "RESUME", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "auto_resume"}}}]}
OF_MAP = {"name": "v", "configMap": {"name": "settings"}}
PLAIN = {"name": "x"}
HANDS_ON = ("bash", "-c", 'python3 fetch.py --save /tmp/data; torchrun --nnodes=4 train.py "$@"', "--")
SPREAD = "torchrun --nnodes=4 train.py"
SETS = (tokens.STATEFUL_SET, tokens.LEADER_WORKER_SET)
KINDS = (tokens.JOB_SET, tokens.CRON_JOB, *SETS)
RUN_ON_STATE = [{"name": "CKPT", "value": "/state/run"}]


CASES = (
    # Ranks of an MPI launcher write where the workers have their volumes.
    valid("CKP01", mpi("/state/run", None, CLAIM)),
    valid("CKP01", mpi("/state/run", EMPTY, CLAIM)),
    valid("CKP01", mpi("/state/run", CLAIM, CLAIM, **RANK_TOO), edge=True),
    valid("CKP01", mpi("/state/run", CLAIM, None, **{b.WORKER: b.DELETE}), edge=True),
    invalid("CKP01", mpi("/state/run", CLAIM, EMPTY), says="is /state/run (on emptyDir state of the workers)"),
    invalid("CKP01", mpi("/state/run", CLAIM, None), says="(in the container's own file system of the workers)"),
    invalid("CKP01", mpi("/state/run", EMPTY, CLAIM, **RANK_TOO), says="is /state/run (on emptyDir state);", edge=True),
    invalid("CKP01", mpi("/state/run", CLAIM, EMPTY, **RANK_TOO), says="(on emptyDir state of the workers)"),
    invalid("CKP01", mpi("/state/ckpt.pt", None, CLAIM), says="/state/ckpt.pt; allowed: a folder"),
    valid("CKP01", mpi("/state/run", None, EMPTY, **{b.LAUNCHER_COMMAND: [*MPIRUN, "/state/run", "--upload", "s3://bucket/run"]})),
    valid("CKP01", mpi("/state/ckpt.pt", None, CLAIM, **ONE_RANK), edge=True),
    invalid("CKP01", mpi("/state/ckpt.pt", CLAIM, CLAIM, **ONE_RANK, **RANK_TOO), says="/state/ckpt.pt; allowed: a folder", edge=True),
    valid("CKP01", volcano_mpi("--master=master", "--worker=worker")),
    valid("CKP01", volcano_mpi()),
    invalid("CKP01", volcano_mpi(master="starter"), says="tasks[0].template.spec.containers[0].command is /state/ckpts (in the", edge=True),
    # A folder for output is one for checkpoints where there is something to train on, or where it says so.
    valid("CKP01", gang("--output-dir /state/tokens", EMPTY, **NO_DEVICE)),
    valid("CKP01", gang("--save /state/tokens.bin", EMPTY, **NO_DEVICE)),
    valid("CKP01", gang("", EMPTY, **variable("SAVE_DIR", "/state/tokens"), **NO_DEVICE)),
    invalid("CKP01", gang("--output-dir /state/run", EMPTY, **NEURON), says="/state/run (on emptyDir state)", edge=True),
    invalid("CKP01", gang("--output-dir /state/ckpts", EMPTY, **NO_DEVICE), says="/state/ckpts (on emptyDir state)", edge=True),
    invalid("CKP01", gang("--ckpt-dir /state/run", EMPTY, **NO_DEVICE), says="/state/run (on emptyDir state)"),
    invalid("CKP01", gang("", EMPTY, **variable("CKPT_DIR", "/state/run"), **NO_DEVICE), says="/state/run (on emptyDir state)"),
    # An upload: beside it or of its own, and of that folder.
    valid("CKP01", beside("while sleep 60; do aws s3 sync /state s3://bucket/run; done")),
    valid("CKP01", beside("s5cmd cp '/data/run/*' s3://bucket/run", "/data")),
    valid("CKP01", beside("python3 /opt/upload.py /state")),
    valid("CKP01", before("python3 uploader.py", restartPolicy="Always")),
    valid("CKP01", gang("--save /state/run", EMPTY, **variable("UPLOAD_URI", "s3://bucket/run"))),
    valid("CKP01", gang("--save /state/run checkpoint.upload=s3://bucket/run", EMPTY)),
    valid("CKP01", gang("--save /state/run --remote-save-folder s3://bucket/run", EMPTY)),
    valid("CKP01", gang("--save /state/run --push_to_hub true --hub_strategy checkpoint", EMPTY)),
    invalid("CKP01", gang("--save /state/run --push_to_hub true --hub_strategy end", EMPTY), says="/state/run (on emptyDir", edge=True),
    invalid("CKP01", before("python3 uploader.py"), says="/state/run (on emptyDir state)", edge=True),
    invalid("CKP01", beside("aws s3 sync /state s3://bucket/run", mount="other"), says="/state/run (on emptyDir state)", edge=True),
    invalid("CKP01", beside("aws s3 sync s3://bucket/run /state"), says="/state/run (on emptyDir state)", edge=True),
    invalid("CKP01", beside("aws s3 sync /state/logs s3://bucket/run"), says="/state/run (on emptyDir state)", edge=True),
    invalid("CKP01", beside("tail -f /state/log"), says="/state/run (on emptyDir state)"),
    invalid("CKP01", gang("--data s3://bucket/data --save /state/run", EMPTY), says="/state/run (on emptyDir state)"),
    invalid("CKP01", gang("--load-checkpoint s3://bucket/init --save /state/run", EMPTY), says="/state/run (on emptyDir"),
    invalid("CKP01", gang("--save /state/run --no-upload", EMPTY), says="/state/run (on emptyDir state)", edge=True),
    invalid("CKP01", gang("--save /state/run --upload false", EMPTY), says="/state/run (on emptyDir state)", edge=True),
    invalid("CKP01", gang("--save /state/run --data /data/upload/a", EMPTY), says="/state/run (on emptyDir state)"),
    invalid("CKP01", gang("--save /state/run", EMPTY, **variable("DATA_URI", "s3://bucket/data")), says="/state/run (on emptyDir"),
    # The volumes of a Volcano job itself.
    valid("CKP01", shared("/state/run", mountPath="/state", volumeClaimName="checkpoints")),
    valid("CKP01", shared("/state/run", mountPath="/state", volumeClaim={"accessModes": ["ReadWriteMany"]})),
    invalid("CKP01", shared("/stateful", mountPath="/state", volumeClaimName="checkpoints"), says="/stateful (in the", edge=True),
    invalid(
        "CKP01", shared("/state/run", mountPath="/state", volumeClaimName="checkpoints"), *static("SCRATCH_2"), says="SCRATCH_2 Lustre"
    ),
    # What is unknown of a volume is not asked for where the place is in none.
    invalid("CKP01", gang("--save /tmp/run", None, **{f"{POD}/volumes": UNKNOWN, "spec/volumes": [HERE_UNKNOWN]}), says="/tmp/run (in the"),
    invalid("CKP01", gang("--save /tmp/run", None, **{f"{POD}/volumes": [{"name": UNKNOWN}]}), says="/tmp/run (in the container's own"),
    # Volcano makes the claim of such a volume as the job says.
    valid("CKP01", shared("/state/run", **inline(storageClassName="lustre")), lustre("PERSISTENT_2")[1]),
    valid("CKP01", shared("/state/run", **inline(storageClassName="efs")), SCRATCH_CLASS),
    valid("CKP01", shared("/state/run", **inline()), SCRATCH_CLASS, edge=True),
    valid("CKP01", shared("/state/run", **inline(volumeName="volume")), *static("PERSISTENT_2")[:2]),
    invalid("CKP01", shared("/state/run", **inline(storageClassName="scratch")), SCRATCH_CLASS, says="/state/run (on SCRATCH_2 Lustre)"),
    invalid(
        "CKP01", shared("/state/run", **inline(volumeName="volume")), *static("SCRATCH_2")[:2], says="/state/run (on SCRATCH_2 Lustre)"
    ),
    invalid("CKP01", gang("--save run", EMPTY, **{"spec/volumes": [inline(storageClassName="scratch")]}), SCRATCH_CLASS, says="is run (in"),
    valid("CKP01", gang("--save run", EMPTY, **{"spec/volumes": [inline(storageClassName="efs")]}), SCRATCH_CLASS),
    # It is in each container, so any may upload it; but in none that runs as a sidecar, and not where another volume lies over it.
    valid("CKP01", among(ON_SCRATCH, "aws s3 sync /state s3://bucket/run"), *static("SCRATCH_2")),
    valid("CKP01", among(inline(storageClassName="scratch"), "aws s3 sync /state/run s3://bucket/run"), SCRATCH_CLASS),
    invalid("CKP01", among(ON_SCRATCH, "aws s3 sync /data s3://bucket/run"), *static("SCRATCH_2"), says="(on SCRATCH_2 Lustre)"),
    invalid(
        "CKP01", among(ON_SCRATCH, "aws s3 sync /state s3://bucket/run", init=True), *static("SCRATCH_2"), says="(on SCRATCH_2", edge=True
    ),
    invalid(
        "CKP01",
        among(ON_SCRATCH, "aws s3 sync /state s3://bucket/run", {"name": "state", "mountPath": "/state/run"}),
        *static("SCRATCH_2"),
        says="(on SCRATCH_2 Lustre)",
        edge=True,
    ),
    # What uploads the volume around it does not have it, but where the job's lies over that too.
    invalid(
        "CKP01",
        among({**ON_SCRATCH, "mountPath": "/state/run"}, "aws s3 sync /data s3://b/run", {"name": "state", "mountPath": "/data"}, **OVER),
        *static("SCRATCH_2"),
        says="(on SCRATCH_2 Lustre)",
        edge=True,
    ),
    valid(
        "CKP01",
        among({**ON_SCRATCH, "mountPath": "/state/run"}, "aws s3 sync /state s3://b/run", {"name": "state", "mountPath": "/state"}, **OVER),
        *static("SCRATCH_2"),
        edge=True,
    ),
    valid(
        "CKP01",
        among({**ON_SCRATCH, "mountPath": "/other"}, "aws s3 sync /data s3://b/run", {"name": "state", "mountPath": "/data"}, **OVER),
        *static("SCRATCH_2"),
    ),
    invalid("CKP01", beside("aws s3 sync /state s3://bucket/run", volumeMounts=HIDDEN), says="/state/run (on emptyDir state)", edge=True),
    valid("CKP01", gang("--save /state/run", EMPTY, **INNER)),
    invalid("CKP01", gang("--save /state/run/last", None, **INNER), *lustre("SCRATCH_2"), says="(on SCRATCH_2 Lustre)"),
    invalid("CKP01", gang("--save /state/other", EMPTY, **INNER), says="/state/other (on emptyDir state)", edge=True),
    invalid("CKP01", gang("--save run", EMPTY, **INNER), *static("SCRATCH_2"), says="run (in the container's own file system or on"),
    # A claim may still name its class by the annotation of old, which goes before the field.
    invalid("CKP01", gang("--save /state/run"), *by_note(None, "lustre"), says="(on SCRATCH_2 Lustre)"),
    valid("CKP01", gang("--save /state/run"), *by_note("lustre", "efs"), edge=True),
    # Another class makes scratch too.
    valid("CKP01", gang("--save /state/run"), *lustre("PERSISTENT_2"), SCRATCH_CLASS),
    # Scratch behind a volume that exists already.
    valid("CKP01", gang("--save /state/run"), *static("PERSISTENT_2")),
    valid("CKP01", gang("--save /state/run"), *static("PERSISTENT_1", known=False)),
    valid("CKP01", gang("--save /state/run", None, **{"metadata/namespace": "other"}), *static("SCRATCH_2"), edge=True),
    invalid("CKP01", gang("--save /state/run"), *static("SCRATCH_2"), says="/state/run (on SCRATCH_2 Lustre)"),
    # The driver takes any handle, and mounts by the DNS name.
    *(
        invalid("CKP01", gang("--save /state/run"), *static("SCRATCH_2", known, "volume", **csi), says="/state/run (on SCRATCH_2 Lustre)")
        for known, csi in (
            (True, {"volumeHandle": f"{FILES_ID}/a"}),
            (False, {"volumeHandle": f"{FILES_ID}/a"}),
            (False, {"volumeHandle": "my-volume"}),
            (False, {"volumeHandle": "my-volume", "volumeAttributes": {"dnsname": UNKNOWN}}),
            (True, {"volumeHandle": "my-volume", "volumeAttributes": {"dnsname": f"{FILES_ID}.fsx.us-east-1.amazonaws.com"}}),
        )
    ),
    valid("CKP01", gang("--save /state/run"), *static("SCRATCH_2", volumeHandle="fs-0123456789abcdef1/a"), edge=True),
    valid("CKP01", gang("--save /state/run"), *static("PERSISTENT_2", volumeHandle=f"{FILES_ID}/a")),
    valid("CKP01", gang("--save /state/run"), *static("SCRATCH_2", volumeHandle="my-volume")),
    invalid("CKP01", gang("--save /state/run"), *static("SCRATCH_1", known=False), says="/state/run (on SCRATCH_1 Lustre)"),
    invalid("CKP01", gang("--save /state/run"), lustre("")[0], lustre("")[1], says="(on SCRATCH_1 Lustre)", edge=True),
    # Whatever reads a setting, and however.
    *(
        valid("CKP02", RESUME, reading(kind, spec))
        for kind, spec in (
            (tokens.RAY_JOB, {"rayClusterSpec": {"headGroupSpec": {"template": {"spec": {"containers": [FROM_MAP]}}}}}),
            (tokens.RAY_CLUSTER, {"workerGroupSpecs": [{"template": {"spec": {"containers": [KEY_OF_MAP]}}}]}),
            (tokens.STATEFUL_SET, {"template": {"spec": {"containers": [PLAIN], "volumes": [OF_MAP]}}}),
            (tokens.JOB, {"template": {"spec": {"initContainers": [FROM_MAP], "containers": [PLAIN]}}}),
            (tokens.CRON_JOB, {"jobTemplate": {"spec": {"template": {"spec": {"initContainers": [KEY_OF_MAP]}}}}}),
            (tokens.POD, {"containers": [FROM_MAP]}),
        )
    ),
    valid("CKP02", RESUME, reading(tokens.POD, {"volumes": [{"name": "v", "configMap": {"name": UNKNOWN}}]}, {"spec": [RESUME.name]})),
    invalid("CKP02", RESUME, reading(tokens.STATEFUL_SET, {"template": {"spec": {"containers": [PLAIN]}}}), says="which no job reads"),
    invalid(
        "CKP02",
        RESUME,
        reading(tokens.POD, {"containers": [{"name": "x", "envFrom": [{"secretRef": {"name": "settings"}}]}]}),
        says="which no job reads",
        edge=True,
    ),
    valid("CKP01", gang("--save /state/run")),
    valid("CKP01", gang("--save /state/run"), *lustre("PERSISTENT_2")),
    valid("CKP01", gang("--output_dir=/scratch --upload s3://bucket/run", {"emptyDir": {}})),
    valid("CKP01", named("/state/run")),
    valid("CKP01", gang("--epochs 3", {"emptyDir": {}})),
    valid("CKP01", gang("checkpoint.directory=/state/run")),
    valid("CKP01", gang("--save /state"), edge=True),
    invalid("CKP01", gang("--save /stateful"), says="/stateful (in the container's own file system)", edge=True),
    invalid("CKP01", gang("--save /state/run", {"emptyDir": {}}), says="/state/run (on emptyDir state)"),
    invalid("CKP01", gang("--checkpoint-dir /state/run", {"hostPath": {"path": "/mnt"}}), says="(on hostPath state)"),
    invalid("CKP01", gang("--save /state/run"), *lustre("SCRATCH_2"), says="(on SCRATCH_2 Lustre)"),
    invalid("CKP01", gang("--save /state/ckpt.pt"), says="/state/ckpt.pt; allowed: a folder"),
    invalid("CKP01", named("/tmp/run"), says="env[0].value is /tmp/run (in the container's own"),
    invalid("CKP01", gang("checkpoint.directory=/local/run"), says="/local/run"),
    valid("CKP02", gang("--keep 3")),
    valid("CKP02", gang("checkpoint.keep=5 --save-only-model false")),
    valid("CKP02", gang("--epochs 1")),
    valid("CKP02", config_map(readme="how we train")),
    valid("CKP02", gang("", {"configMap": {"name": "settings"}}), config_map(auto_resume="true")),
    valid("CKP02", gang("--save_total_limit 2"), edge=True),
    invalid("CKP02", gang("--save_total_limit 1"), says="1 checkpoint kept; allowed: at least 2", edge=True),
    invalid("CKP02", gang("checkpoint.keep=1"), says="1 checkpoint kept"),
    # None counted is all kept, where the program says so.
    valid("CKP02", gang("--checkpoint.keep-latest-k 0"), edge=True),
    valid("CKP02", gang("--save_total_limit=0 --keep 2")),
    invalid("CKP02", gang("--checkpoint.keep_latest_k 1"), says="1 checkpoint kept", edge=True),
    invalid("CKP02", gang("--keep 0"), says="0 checkpoint kept"),
    invalid("CKP02", gang("--save-total-limit 0 --keep 1"), says="1 checkpoint kept"),
    invalid("CKP02", gang("checkpoint.keep=5 checkpoint.keep=1 --keep-last 3"), says="1 checkpoint kept"),
    invalid("CKP02", gang("--no-save-optim"), says="a resume needs the optimizer"),
    invalid("CKP02", gang("--save_only_model true"), says="is --save-only-model"),
    invalid("CKP02", gang("--no-save-rng"), says="the random generators"),
    invalid("CKP02", replace(config_map(readme="how we train"), name="readme"), RESUME, says="data.auto_resume is auto_resume", edge=True),
    invalid("CKP02", config_map(auto_resume="true"), gang(""), says="data.auto_resume is auto_resume, which no job reads"),
    # The same in a file's text, where it is a setting that is on.
    *(
        invalid("CKP02", config_map(**{name: text}), says=f"{key}, which no job reads")
        for name, text, key in (
            ("config.yaml", "checkpoint:\n  sync_interval: 300 # seconds\n  auto_resume: true\n", "auto_resume"),
            ("config.json", '{"runs": [{"autoResume": "latest"}]}', "autoResume"),
            ("train.properties", "save=300\ncheckpoint.auto_resume=true\n", "checkpoint.auto_resume"),
            ("TRAIN.TOML", 'auto-resume = "yes"', "auto-resume"),
        )
    ),
    invalid("CKP02", config_map(**FILE_RESUMES), gang(""), says='data["config.yaml"] is auto_resume, which no job reads', edge=True),
    *(
        valid("CKP02", config_map(**{name: text}), edge=name == "off.yaml")
        for name, text in (
            ("off.yaml", "auto_resume: false\n"),
            ("remark.yaml", "# auto_resume: true\nsteps: 3\n"),
            ("words.yaml", "why: no auto_resume here\n"),
            ("nested.yaml", "auto_resume: {every: 3}\n"),
            ("broken.yaml", "auto_resume: [true\n"),
            ("off.properties", "#auto_resume=true\nauto_resume=off\n"),
            ("train.py", "auto_resume = True\n"),
            ("README", "auto_resume: true\n"),
        )
    ),
    valid("CKP02", config_map(**FILE_RESUMES), gang("", {"configMap": {"name": "settings"}})),
    # A TrainJob reads what its trainer or the pods that it changes read.
    *(
        valid("CKP02", settings, reading(tokens.TRAIN_JOB, spec))
        for settings in (RESUME, config_map(**FILE_RESUMES))
        for spec in (
            {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"volumes": [OF_MAP]}}]},
            {"trainer": {"env": KEY_OF_MAP["env"]}},
        )
    ),
    invalid("CKP02", RESUME, reading(tokens.TRAIN_JOB, {"trainer": {"numNodes": 2}}), says="is auto_resume, which no job reads", edge=True),
    # So may an object of a kind that nobody knows, and a pod by the name with a hash.
    valid("CKP02", config_map(**FILE_RESUMES), gang(""), reading(ROLLOUT, {"template": {"spec": {"volumes": [OF_MAP]}}})),
    valid("CKP02", config_map(**FILE_RESUMES), gang("", {"configMap": {"name": "settings-5g7h2k9m4t"}}), edge=True),
    invalid(
        "CKP02", config_map(**FILE_RESUMES), gang("", {"configMap": {"name": "other-5g7h2k9m4t"}}), says="auto_resume, which no job reads"
    ),
    invalid(
        "CKP02",
        config_map(**FILE_RESUMES),
        gang(""),
        reading(ROLLOUT, {"template": {"spec": {"volumes": [{"name": "v", "configMap": {"name": "other"}}]}}}),
        says="auto_resume, which no job reads",
    ),
    # Keys of other programs.
    *(
        valid("CKP02", config_map(**{name: text}), gang(""), edge=True)
        for name, text in (
            ("application.properties", "replication.auto-resume=true\n"),
            ("application.properties", "spring.batch.auto-resume=true\n"),
            ("config.yaml", "auto_resume_after: 5s\n"),
            ("broker.conf", "subscriptionAutoResume=true\n"),
        )
    ),
    # Copies of a pod train where a launcher of theirs says so.
    *(
        case
        for kind in (tokens.DEPLOYMENT, tokens.REPLICA_SET)
        for case in (
            invalid("CKP01", held(kind, "torchrun --nproc-per-node=8 train.py --save /state/run", EMPTY), says="(on emptyDir state)"),
            invalid("CKP01", held(kind, "torchrun train.py --save /tmp/run"), says="is /tmp/run (in the container's own"),
            valid("CKP01", held(kind, "torchrun train.py --save /state/run")),
            valid("CKP01", held(kind, "torchrun serve_finetuned.py --save-dir /tmp/cache"), edge=True),
            valid("CKP01", held(kind, "torchrun run.py --save-dir /tmp/cache")),
            *(
                valid("CKP01", held(kind, f"torchrun {name}.py --save-dir /tmp/cache"), edge=True)
                for name in ("constrained_decode", "finetuned_reward", "run_pretrained", "restrain", "tune_embeddings", "dpo_score")
            ),
            *(
                invalid("CKP01", held(kind, f"torchrun {name}.py --save-dir /tmp/x"), says="is /tmp/x (in the", edge=True)
                for name in ("pretrain_gpt", "train-reward", "finetune", "run_clm")
            ),
            valid("CKP01", held(kind, "python3 train.py --save-dir /tmp/cache")),
        )
    ),
    # What a driver of Ray is told, and where Ray Train keeps what its workers report.
    invalid("CKP01", ray(tokens.RAY_JOB, "python train.py --save /state/x", EMPTY), says="spec.entrypoint is /state/x (on emptyDir"),
    invalid("CKP01", ray(tokens.RAY_JOB, "cd /app && python train.py --save /tmp/x"), says="/tmp/x (in the container's own file system)"),
    valid("CKP01", ray(tokens.RAY_JOB, "python train.py --save /state/x")),
    valid("CKP01", ray(tokens.RAY_JOB, "python train.py --save /state/x", EMPTY, CLAIM), edge=True),
    valid("CKP01", ray(tokens.RAY_JOB, "python train.py --save /state/x && aws s3 sync /state/x s3://bucket/x", EMPTY)),
    valid("CKP01", ray(tokens.RAY_JOB, "python train.py --save x", EMPTY)),
    valid("CKP01", ray(tokens.RAY_JOB, "python batch_infer.py --output-dir /tmp/results")),
    valid("CKP01", ray(tokens.RAY_JOB, "python predict.py --checkpoint-dir /tmp/ckpt"), edge=True),
    invalid("CKP01", ray(tokens.RAY_JOB, "python -m trainer.main --output-dir /tmp/x"), says="spec.entrypoint is /tmp/x (in the"),
    *(
        case
        for kind in (tokens.RAY_JOB, tokens.RAY_CLUSTER)
        for case in (
            invalid("CKP01", ray(kind), trainer_code("/tmp/x"), says='data["train.py"] is storage_path=/tmp/x (in the container'),
            invalid("CKP01", ray(kind, "", EMPTY, CLAIM), trainer_code("/state/x"), says="/state/x (on emptyDir state)", edge=True),
            invalid("CKP01", ray(kind, "python train.py"), trainer_code("/tmp/x"), says="storage_path=/tmp/x (in the container"),
            valid("CKP01", ray(kind), trainer_code("/state/x")),
            valid("CKP01", ray(kind), trainer_code("s3://bucket/x")),
            valid("CKP01", ray(kind), trainer_code("$HOME/x")),
            valid("CKP01", ray(kind), trainer_code("/tmp/x", "import boto3, s3fs")),
            valid("CKP01", ray(kind), config_map(**{"train.py": '# RunConfig(storage_path="/tmp/x")'})),
            valid("CKP01", ray(kind), config_map(**{"metrics.toml": 'storage_path = "/tmp/x" # RunConfig'})),
            *(valid("CKP01", ray(kind), config_map(**{"train.py": text}), edge=True) for text in NO_PLAIN_PATH),
            invalid("CKP01", ray(kind), config_map(**{"train.py": TWO_LOST}), says="storage_path=/tmp/y (in the"),
        )
    ),
    valid("CKP01", trainer_code("/tmp/x")),
    valid("CKP01", ray(tokens.RAY_CLUSTER), Thing(type=tokens.CONFIG_MAP, name="empty", properties={"metadata": {"name": "empty"}})),
    # Code that no pod mounts may be for the cluster that keeps it; what one mounts is lost in that one.
    invalid("CKP01", ray(tokens.RAY_CLUSTER, "-", EMPTY), ray(tokens.RAY_JOB, "-", EMPTY), trainer_code("/state/x"), says="on emptyDir"),
    valid("CKP01", ray(tokens.RAY_CLUSTER, "-", EMPTY), ray(tokens.RAY_JOB, "-"), trainer_code("/state/x"), edge=True),
    invalid("CKP01", ray(tokens.RAY_CLUSTER, "", EMPTY), ray(tokens.RAY_JOB, "-"), trainer_code("/state/x"), says="(on emptyDir state)"),
    valid("CKP01", ray(tokens.RAY_CLUSTER), replace(trainer_code("/tmp/x"), properties=IN_OTHER_NAMESPACE)),
    # Settings of Hugging Face's Trainer.
    *(
        invalid("CKP02", gang(f"--output_dir /state/run {setting}"), says=says)
        for setting, says in (
            ("--save_strategy=no", "is --save-strategy=no; allowed: steps: nothing is saved"),
            ("--save_strategy NO --save_steps 500", "is --save-strategy=NO; allowed: steps"),
            ("--save_steps=0", "is --save-steps=0; allowed: a number of steps"),
            ("--save-steps 1", "is --save-steps=1; allowed: as many steps as a lost pod may cost"),
            ("--ignore_data_skip=True", "is --ignore-data-skip=True; allowed: false: a resume reads"),
            ("--save_on_each_node=True", "is --save-on-each-node beside /state/run; allowed: false: each node"),
            ("--save_on_each_node", "is --save-on-each-node beside /state/run"),
        )
    ),
    *(
        valid("CKP02", gang(arguments), edge=arguments.endswith("2"))
        for arguments in (
            "--output_dir /state/run --save_strategy=steps --save_steps 500",
            "--output_dir /state/run --save_strategy=epoch",
            "--output_dir /state/run --save_steps 2",
            "--output_dir /state/run --save_steps 0.1",
            "--output_dir /state/run --ignore_data_skip False --save_on_each_node=False",
            "--output_dir /state/$(HOSTNAME) --save_on_each_node=True",
            "--save_strategy=no",
        )
    ),
    valid("CKP02", gang("--output_dir /state/run --save_on_each_node=True", EMPTY)),
    valid("CKP02", gang("--output_dir /state/run --save_on_each_node=True", None, **MOUNTED_BY_POD)),
    valid("CKP02", gang("--output_dir /state/run --save_strategy=no", None, **A_RANK)),
    valid("CKP02", script("torchrun train.py --output_dir /state/a --save_strategy no", "torchrun train.py --output_dir /state/b")),
    valid("CKP01", ranks(1, 1), edge=True),
    invalid("CKP01", ranks(1, 2), says="/state/ckpt.pt; allowed: a folder", edge=True),
    invalid("CKP01", ranks(2, 1), says="/state/ckpt.pt; allowed: a folder", edge=True),
    valid("CKP01", nested(CLAIM, {"emptyDir": {}})),
    invalid("CKP01", nested({"emptyDir": {}}, CLAIM), says="/state/run/last (on emptyDir inner)"),
    invalid("CKP01", gang("--save /state/run", {"ephemeral": {"volumeClaimTemplate": {}}}), says="(on ephemeral state)"),
    # The job's own claim and its class are made elsewhere, as the volume of a mount is that Volcano adds.
    valid("CKP01", gang("--save /state/run", {"persistentVolumeClaim": {"claimName": "kept"}}), *lustre("SCRATCH_2")),
    valid("CKP01", gang("--save /state/run", {"nfs": {"server": "10.0.0.7", "path": "/"}}), *lustre("SCRATCH_2")),
    valid("CKP01", gang("--save /state/run"), lustre("SCRATCH_2")[0]),
    valid("CKP01", gang("--save /state/run", None, **{f"{POD}/volumes": []})),
    valid("CKP01", gang("--save /state/run", None, **variable("LOG_DIR", "/tmp/logs"))),
    # What is beside a place inside the working folder, or beside a file, is looked at too.
    invalid("CKP01", gang("--save runs", None, **variable("SAVE_DIR", "/tmp/run")), says="env[0].value is /tmp/run"),
    invalid("CKP01", gang("--save /state/ckpt.pt", None, **variable("SAVE_DIR", "/tmp/run")), says="env[0].value is /tmp/run"),
    # Where it is told a file.
    invalid("CKP01", gang("--checkpoint-file=/tmp/ckpt"), says="is /tmp/ckpt (in the container's own file system)"),
    invalid("CKP01", gang("--checkpoint_file /state/ckpt", EMPTY), says="is /state/ckpt (on emptyDir state)"),
    invalid("CKP01", gang("--checkpoint-filename /state/run.pth.tar"), says="is /state/run.pth.tar; allowed: a folder with one"),
    invalid(
        "CKP01", gang("--checkpoint-path=/state/snapshot.pt"), says="a kill while one file is written over leaves none whole, and ranks"
    ),
    valid("CKP01", gang("--checkpoint-file /tmp/base.pt --output-dir /state/run"), edge=True),
    # What is only read may be one file, and anywhere.
    *(
        valid("CKP01", gang(f"{option} /tmp/base.pt --save /state/run"))
        for option in ("--resume-from-checkpoint", "--load", "--restore-file", "--pretrained-model-path", "--init-checkpoint")
    ),
    valid("CKP01", gang("--checkpoint-path /data/base.pt", **READ_ONLY)),
    valid("CKP01", gang("--checkpoint-dir /data/base", {"hostPath": {"path": "/opt/models"}}, **READ_ONLY), edge=True),
    invalid("CKP01", gang("--checkpoint-dir /data/base --output-dir /tmp/run", **READ_ONLY), says="is /tmp/run (in the container's own"),
    invalid(
        "CKP01", gang("--save /data/run", {"hostPath": {"path": "/opt/models"}}, **READ_ONLY), says="/data/run (on hostPath", edge=True
    ),
    valid("CKP02", gang("--save-only-model 0")),
    valid("CKP02", gang("--save-only-model No")),
    valid("CKP02", gang("", {"configMap": {"name": "settings"}}), b.mpi_job(), config_map(auto_resume="true")),
    # A path leads where it ends.
    valid("CKP01", gang("--save /tmp/../state/run"), edge=True),
    invalid("CKP01", gang("--save /state/../tmp/run"), says="/state/../tmp/run (in the container's own file system)", edge=True),
    # Of an option for checkpoints and another for what a program writes, the first counts.
    valid("CKP01", gang("--save /state/run --output-dir /tmp/logs")),
    valid("CKP01", gang("--checkpoint-dir /models/base --output-dir /state/run")),
    invalid("CKP01", gang("--save /tmp/run --output-dir /state/logs"), says="/tmp/run (in the container's own file system)"),
    invalid("CKP01", gang("--output-dir /state/logs --save-dir /tmp/run --save /state/run"), says="/tmp/run (in"),
    invalid("CKP01", gang("--checkpoint-dir /tmp/run --output-dir /tmp/logs"), says="(in the container's own file system)"),
    # A relative path starts at the working folder, which an image may have put anywhere.
    valid("CKP01", gang("--save run", **start("/state"))),
    valid("CKP01", gang("--save ../run", **start("/state/code")), edge=True),
    valid("CKP01", gang("--save run")),
    valid("CKP01", gang("--save run", **start("/opt"), **CHANGES_FOLDER)),
    valid("CKP01", gang("--save run", EMPTY, **{"spec/volumes": [{"mountPath": "/data", "volumeClaimName": "checkpoints"}]})),
    valid("CKP01", gang("--save run --upload-to s3://bucket/run", EMPTY)),
    valid("CKP01", gang("--save $RUN", EMPTY)),
    valid("CKP01", gang("--save true", EMPTY)),
    valid("CKP01", gang("--save 1000 --tp 8", EMPTY)),
    invalid("CKP01", gang("--save run", **start("/opt/code")), says="run (in the container's own file system)"),
    invalid("CKP01", gang("--save ../run", **start("/state")), says="../run (in the container's own file system)", edge=True),
    invalid("CKP01", gang("--save run", EMPTY), says="run (in the container's own file system or on what goes with the pod)"),
    invalid("CKP01", gang("--save ./run", {"configMap": {"name": "code"}}), says="./run (in the container's own file system or on"),
    invalid("CKP01", gang("--save run", EMPTY, **start("/state")), says="run (on emptyDir state)"),
    invalid("CKP01", named("run", EMPTY), says="value is run (in the container's own file system or on"),
    invalid("CKP01", gang("--save run", **READ_ONLY), says="run (in"),
    # Each command names its own folders; those that start ranks count, or those that train by their name, or else all.
    valid("CKP01", script("torchrun --nnodes=4 train.py --output_dir /state/ckpt && python3 eval.py --output_dir /tmp/eval")),
    valid("CKP01", script("torchrun --nnodes=4 train.py --save-dir /state/ckpt", "python3 eval.py --save-dir /tmp/eval")),
    valid("CKP01", script("python3 prepare.py --output_dir /tmp/data", "python3 train.py --output_dir /state/ckpt"), edge=True),
    valid("CKP01", script("accelerate launch eval.py --output_dir /tmp/eval", "accelerate launch finetune.py --output_dir /state/ckpt")),
    valid("CKP01", script("mpirun -np 32 bash -c 'python3 run.py --save /state/run'", "python3 eval.py --save /tmp/eval")),
    invalid("CKP01", script("mpirun -np 32 bash -c 'python3 run.py --save /tmp/run'"), says="is /tmp/run (in"),
    invalid(
        "CKP01",
        script("torchrun --nnodes=4 train.py --output_dir /tmp/ckpt && python3 export.py --output_dir /state/export"),
        says="is /tmp/ckpt (in",
        edge=True,
    ),
    invalid("CKP01", script("python3 train.py --output_dir /tmp/ckpt", "python3 export.py --output_dir /state/x"), says="is /tmp/ckpt (in"),
    # Which of several programs trains nobody can tell, unless its name says so.
    valid("CKP01", script("python3 a.py --output_dir /tmp/ckpt", "python3 b.py --output_dir /state/x")),
    invalid("CKP01", script("python3 a.py --output_dir /tmp/ckpt", "python3 b.py --output_dir /tmp/x"), says="is /tmp/x (in"),
    valid("CKP01", script("python3 make_dataset.py --output_dir /tmp/data", "python3 run_glue.py --output_dir /state/x")),
    valid("CKP01", script("python3 prepare_train_data.py --output_dir /tmp/data", "python3 run_glue.py --output_dir /state/x")),
    valid("CKP01", script("python3 prepare_train_data.py --output_dir /tmp/data", "python3 run_clm.py --output_dir /state/x"), edge=True),
    invalid(
        "CKP01",
        script("python3 export.py --output_dir /state/x", "python3 run_clm.py --output_dir /tmp/x"),
        says="is /tmp/x (in",
        edge=True,
    ),
    valid(
        "CKP02", script("if [ $SMOKE = 1 ]; then torchrun train.py --save_total_limit 1", "else torchrun train.py --save_total_limit 3; fi")
    ),
    invalid(
        "CKP02",
        script("if [ $SMOKE = 1 ]; then torchrun train.py --keep 1", "else torchrun train.py --keep 1; fi"),
        says="1 checkpoint kept",
    ),
    valid("CKP02", script("torchrun train.py --save_only_model false", "torchrun train.py --save_only_model true"), edge=True),
    invalid("CKP02", script("torchrun train.py --save_only_model", "torchrun eval.py"), says="is --save-only-model"),
    invalid(
        "CKP01", gang("", None, **{f"{b.TASK_CONTAINER}/command": ["/run.sh", "python3 train.py --save /tmp/run"]}), says="is /tmp/run (in"
    ),
    invalid("CKP01", gang("", None, **{f"{b.TASK_CONTAINER}/command": [*HANDS_ON, "--save", "/tmp/run"]}), says="is /tmp/run (in"),
    valid("CKP01", gang("", None, **{f"{b.TASK_CONTAINER}/command": [*HANDS_ON, "--save", "/state/run"]})),
    # By a variable of the container.
    valid("CKP01", gang("--save $(CKPT)", **variable("CKPT", "/state/run")), edge=True),
    valid(
        "CKP01", script('torchrun --nnodes=4 train.py --save "$CKPT"', 'aws s3 sync "$CKPT" s3://bucket/run', **variable("CKPT", "/tmp/x"))
    ),
    valid("CKP01", script('if [ -d /state ]; then D=/state/run; else D=/tmp/run; fi; python3 train.py --save "$D"')),
    valid(
        "CKP01",
        gang("--save $(CKPT) --run-name $(NAME)", None, **{f"{b.TASK_CONTAINER}/env": [*RUN_ON_STATE, {"name": "NAME", "value": UNKNOWN}]}),
    ),
    invalid("CKP01", gang("--save $(CKPT)", **variable("CKPT", "/tmp/run")), says="is /tmp/run (in the container's own", edge=True),
    invalid("CKP01", script("export CKPT=/tmp/run", "torchrun --nnodes=4 train.py --save ${CKPT}/a"), says="is /tmp/run/a (in"),
    invalid("CKP01", gang("checkpoint.directory=$(CKPT)", **variable("CKPT", "/tmp/run")), says="is /tmp/run (in"),
    valid("CKP02", script("torchrun --nnodes=4 train.py --save /state/run --keep 3", "python3 prune.py --keep 1")),
    invalid(
        "CKP02", script("torchrun --nnodes=4 train.py --save /state/run --keep 1", "python3 prune.py --keep 3"), says="1 checkpoint kept"
    ),
    valid("CKP02", gang("--save /state/run --keep $(KEEP)", **variable("KEEP", "2")), edge=True),
    invalid("CKP02", gang("--save /state/run --keep $(KEEP)", **variable("KEEP", "1")), says="1 checkpoint kept", edge=True),
    invalid("CKP02", gang("checkpoint.keep=$(KEEP)", **variable("KEEP", "1")), says="1 checkpoint kept"),
    # Whatever kind makes the pods; those of a set are servers, unless their launcher spreads over them.
    *(valid("CKP01", held(kind, f"{SPREAD} --save /state/run")) for kind in KINDS),
    *(invalid("CKP01", held(kind, f"{SPREAD} --save /tmp/run"), says="is /tmp/run (in the container's own") for kind in KINDS),
    *(invalid("CKP01", held(kind, f"{SPREAD} --save /state/run", EMPTY), says="is /state/run (on emptyDir state)") for kind in KINDS),
    *(invalid("CKP02", held(kind, f"{SPREAD} --save /state/run --keep 1"), says="1 checkpoint kept") for kind in KINDS),
    *(valid("CKP02", held(kind, f"{SPREAD} --save /state/run --keep 2"), edge=True) for kind in KINDS),
    *(valid("CKP01", held(kind, "python3 serve.py --save-dir /tmp/cache"), edge=True) for kind in SETS),
    *(valid("CKP01", held(kind, "torchrun --nnodes=1 serve.py --save-dir /tmp/cache"), edge=True) for kind in SETS),
    *(valid("CKP02", held(kind, "python3 serve.py --keep 1")) for kind in SETS),
    valid("CKP01", held(tokens.STATEFUL_SET, f"{SPREAD} --save /state/run", EMPTY, "own")),
)
