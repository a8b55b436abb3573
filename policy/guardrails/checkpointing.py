"""Checkpoints: on storage that outlives the pod, one place for each step, and enough of them."""

import re
from collections.abc import Iterator, Mapping

from guardrails import command
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import GPU, PodTemplate, pod_templates
from guardrails.tokens import CONFIG_MAP, STORAGE_CLASS, VOLCANO_JOB, VOLUME_CLAIM
from guardrails.world import JOBS, mounted_config_maps

_DIRECTORY = ("--save", "--save-dir", "--output-dir", "--checkpoint-dir", "--ckpt-dir", "--checkpoint-path", "--checkpoint.directory")
_DIRECTORY_VARIABLES = frozenset({"CHECKPOINT_DIR", "CHECKPOINT_PATH", "CKPT_DIR", "SAVE_DIR"})
_OVERRIDE = "checkpoint.directory="
_FILE = re.compile(r".*\.(pt|pth|ckpt|bin|safetensors|tar)")
_UPLOAD = re.compile(r"s3://|--upload|upload\.|UPLOAD")
_KEEP = (
    "--save-total-limit",
    "--keep",
    "--keep-last",
    "--keep-last-n",
    "--keep-latest-k",
    "--checkpoint.keep-latest-k",
    "--checkpoint.keep",
)
# torchtitan and Hugging Face's Trainer keep all where none are counted.
_NOUGHT_IS_ALL = frozenset({"--save-total-limit", "--keep-latest-k", "--checkpoint.keep-latest-k"})
_LEAST_KEPT = 2
_WITHOUT_STATE = {
    "--save-only-model": "optimizer, schedule and generators",
    "--no-save-optim": "the optimizer",
    "--no-save-rng": "the random generators",
}
_RESUME = re.compile(r"auto[-_]?resume", re.IGNORECASE)


def _place(program: Program, report: Report) -> None:
    for job in program.of(*sorted(JOBS)):
        with report.part():
            for template in pod_templates(job):
                for container in template.containers():
                    with report.part():
                        _container_place(job, template, container, program, report)


def _container_place(job: Resource, template: PodTemplate, container: Node, program: Program, report: Report) -> None:
    for node, path in _directories(container):
        if not path.startswith("/"):
            continue
        if _FILE.fullmatch(path) and (template.replicas > 1 or template.requested(GPU) > 1):
            allowed = "a folder with one folder for each step: ranks that write one file overwrite each other"
            report.refuse(job, node, allowed=allowed, found=path)
            continue
        why = _perishable(template, container, path, program)
        if why and not any(_UPLOAD.search(word) for word in command.words(container)):
            report.refuse(job, node, allowed="a path on a claim of lasting storage, or an upload beside it", found=f"{path} ({why})")


def _directories(container: Node) -> Iterator[tuple[Node, str]]:
    """Where the container says that checkpoints go, and the place that says so."""
    words = command.words(container)
    value = command.Invocation("", words).option(*_DIRECTORY)
    value = value or next((word.removeprefix(_OVERRIDE) for word in words if word.startswith(_OVERRIDE)), None)
    if value:
        yield command.place(container), value
    for variable in container.at("env").elements():
        if variable.at("name").text() in _DIRECTORY_VARIABLES and variable.at("value").text():
            yield variable.at("value"), variable.at("value").text()


def _perishable(template: PodTemplate, container: Node, path: str, program: Program) -> str:
    """Why what is written at `path` is lost with the pod or the node; empty where it is not."""
    mounts = sorted(container.at("volumeMounts").elements(), key=lambda mount: len(mount.at("mountPath").text()), reverse=True)
    mount = next((one for one in mounts if _inside(path, one.at("mountPath").text())), None)
    if mount is None:
        return "in the container's own file system"
    name = mount.at("name").text()
    volume = next((one for one in template.spec.at("volumes").elements() if one.at("name").text() == name), None)
    if volume is None:
        return ""
    for kind in ("emptyDir", "hostPath", "ephemeral"):
        if volume.at(kind).present:
            return f"on {kind} {name}"
    return _scratch(volume.at("persistentVolumeClaim", "claimName").text(), program)


def _inside(path: str, folder: str) -> bool:
    return bool(folder) and f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _scratch(claim: str, program: Program) -> str:
    """Lustre of a SCRATCH type keeps one copy of the data: a failed disk takes it along."""
    classes = {one.at("metadata", "name").text(): one for one in program.of(STORAGE_CLASS)}
    for one in program.of(VOLUME_CLAIM):
        if claim and one.at("metadata", "name").text() == claim:
            storage = classes.get(one.at("spec", "storageClassName").text())
            kind = storage.at("parameters", "deploymentType").text() if storage else ""
            return f"on {kind} Lustre" if kind.startswith("SCRATCH") else ""
    return ""


def _kept(program: Program, report: Report) -> None:
    for job in program.of(*sorted(JOBS)):
        with report.part():
            for template in pod_templates(job):
                for container in template.containers():
                    with report.part():
                        _retention(job, container, report)
    _read_settings(program, report)


def _retention(job: Resource, container: Node, report: Report) -> None:
    words = command.words(container)
    call, place = command.Invocation("", words), command.place(container)
    kept = [number for name in _KEEP if (number := call.number(name)) is not None and not (number == 0 and name in _NOUGHT_IS_ALL)]
    kept += [int(word[16:]) for word in words if re.fullmatch(r"checkpoint\.keep=[0-9]{1,6}", word)][-1:]
    if kept and min(kept) < _LEAST_KEPT:
        allowed = f"at least {_LEAST_KEPT}: the older one goes only when the newer one was read back"
        report.refuse(job, place, allowed=allowed, found=f"{min(kept)} checkpoint kept")
    for option, missing in _WITHOUT_STATE.items():
        value = call.option(option)
        if value is not None and value.lower() not in ("false", "0", "no"):
            report.refuse(job, place, allowed=f"the whole state: a resume needs {missing}", found=option)


def _read_settings(program: Program, report: Report) -> None:
    """Resume settings in a ConfigMap that no pod of the program reads."""
    read: set[str] = set()
    for job in program.of(*sorted(JOBS)):
        with report.part():
            read |= mounted_config_maps(job)
    for settings in program.of(CONFIG_MAP):
        with report.part():
            name = settings.at("metadata", "name")
            for key, value in settings.at("data").entries():
                if _RESUME.search(key) and name.text() not in read and settings.name not in read:
                    report.refuse(settings, value, allowed="a setting of the program that trains", found=f"{key}, which no job reads")


def _job(arguments: str, volume: Mapping[str, object]) -> Example:
    container = {
        "name": "main",
        "command": ["python3", "train.py", *arguments.split()],
        "volumeMounts": [{"name": "state", "mountPath": "/state"}],
        "resources": {"limits": {GPU: 8}},
    }
    spec = {"containers": [container], "volumes": [{"name": "state", **volume}]}
    return Example(
        VOLCANO_JOB, {"metadata": {"name": "pretrain"}, "spec": {"tasks": [{"name": "worker", "replicas": 4, "template": {"spec": spec}}]}}
    )


_CLAIM: Mapping[str, object] = {"persistentVolumeClaim": {"claimName": "checkpoints"}}

RULES = (
    StackRule(
        id="CKP01",
        name="job-require-lasting-checkpoints",
        title="Checkpoints go to storage that outlives the node, in a folder",
        types=JOBS | {STORAGE_CLASS, VOLUME_CLAIM},
        check=_place,
        why="a lost pod takes its checkpoints along, and a kill while one file is overwritten leaves none: measured in half of all kills.",
        fix="save to a claim on persistent Lustre or EFS, one folder for each step, or upload every checkpoint.",
        source="measured with torch 2.15 and DeepSpeed 0.19.8; field guide section on checkpoints",
        valid=(_job("--save /state/pretrain", _CLAIM),),
        invalid=(_job("--save /state/pretrain", {"emptyDir": {}}),),
    ),
    StackRule(
        id="CKP02",
        name="job-require-whole-checkpoints",
        title="Two whole checkpoints are kept, with all that a resume needs",
        types=JOBS | {CONFIG_MAP},
        check=_kept,
        why="the one checkpoint that is kept may be the torn one, or lack what an exact resume needs: there is nothing to go on from.",
        fix="keep at least two, save optimizer, schedule, scaler, generators and data position, and resume in the program itself.",
        source="field guide section on checkpoints",
        valid=(_job("--save /state/pretrain --keep 3", _CLAIM),),
        invalid=(_job("--save /state/pretrain --keep 1", _CLAIM),),
    ),
)
