"""Checkpoints: on storage that outlives the pod, one place for each step, and enough of them."""

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guardrails import command, environment, gang
from guardrails.document import DocumentError, read_yaml
from guardrails.fsx_link import CHECKPOINT
from guardrails.links import decided, named
from guardrails.lustre import SCRATCH, Shape, file_system, storage_class
from guardrails.node import UNKNOWN, Node, Undecided
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import GPU, IN_PART, LAUNCHER, POD_TYPES, SUBMITTER, WORKER, PodTemplate, only_launches, pod_templates
from guardrails.tokens import (
    CONFIG_MAP,
    DEPLOYMENT,
    HYPERPOD_JOB,
    LUSTRE,
    MPI_JOB,
    PERSISTENT_VOLUME,
    POD,
    RAY_CLUSTER,
    RAY_JOB,
    REPLICA_SET,
    STORAGE_CLASS,
    VOLCANO_JOB,
    VOLUME_CLAIM,
)
from guardrails.upload import uploads
from guardrails.volcano_admission import mpi_tasks
from guardrails.volume import claim_of, class_name, lustre_of, volume_of
from guardrails.world import TRAINERS, mounted_config_maps, namespace, programs, reads, trains, trains_alone

_DIRECTORY = ("--save", "--save-dir")
# Beside one of those they may be for logs, or for a checkpoint that is read.
_PERHAPS = (
    *("--output-dir", "--checkpoint-dir", "--ckpt-dir", "--checkpoint.directory"),
    *("--checkpoint-path", "--checkpoint-file", "--checkpoint-filename"),
)
_DIRECTORY_VARIABLES = frozenset({"CHECKPOINT_DIR", "CHECKPOINT_PATH", "CKPT_DIR", "SAVE_DIR"})
_OVERRIDE, _KEEP_OVERRIDE = "checkpoint.directory=", "checkpoint.keep="
_RELATIVE = re.compile(r"(?!([0-9]+|true|false|yes|no|none)$)[\w.][\w./-]*", re.IGNORECASE)
_MOVES = re.compile(r"cd|pushd|--?wdir|-wd|--chdir(=.*)?|.*\.sh|.*entrypoint.*")
_LASTING = "a path on a claim of lasting storage, or an upload beside it"
# Copies of a server, unless a launcher of theirs trains.
_COPIES = frozenset({DEPLOYMENT, REPLICA_SET})
_SERVES = re.compile(r"serv|infer|predict|chat|demo|app", re.IGNORECASE)
# What a model that was trained is used for, as well as trained for.
_USES = re.compile(r"decod|reward|embed|scor", re.IGNORECASE)
# Whole words: others, such as constrained and finetuned, have them within.
_TRAINS = re.compile(r"(?<![a-z])[a-z]*(?<!s)train(?:er|ing)?(?![a-z])", re.IGNORECASE)
_TUNES = re.compile(r"(?<![a-z])(?:(?:fine|hyper|auto)?tun(?:e|er|ing)|[a-z]*sft|[a-z]*dpo|grpo|run_[a-z]*lm)(?![a-z])", re.IGNORECASE)
_RUN_CONFIG, _STORAGE_PATH = "RunConfig", "storage_path"
_SCRIPT = re.compile(r"[^-=][^=]*\.(?:py|sh)")
_SENDS = re.compile(r"storage_filesystem|s3|upload|fsspec", re.IGNORECASE)
_NOT_KEPT = ("configMap", "secret", "downwardAPI", "projected")
_FILE = re.compile(r".*\.(pt|pth|ckpt|bin|safetensors|tar)")
# Whether rank 0 alone saves is the program's affair.
_ONE_FILE = "a kill while one file is written over leaves none whole, and ranks that each save it overwrite one another"
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
_OFF_FLAG = frozenset({"false", "0", "no"})
_TRAINER_SETTINGS = (
    ("--save-strategy", ("no",), "steps: nothing is saved, and a lost pod starts the run over"),
    ("--save-steps", ("0",), "a number of steps, or a share of them: the Trainer saves none at 0"),
    ("--save-steps", ("1",), "as many steps as a lost pod may cost: a save after each takes longer than the step"),
    ("--ignore-data-skip", ("true", "1", "yes"), "false: a resume reads the epoch's first batches again"),
)
_RESUME = re.compile(r"auto[-_]?resume", re.IGNORECASE)
_HASHED = re.compile(r".+-[a-z0-9]{1,10}")
_OF_TRAINER = re.compile(r"train|tun|check-?_?point|ckpt|resum|run|job|model|fault|recover|restart|state", re.IGNORECASE)
_RUNS = TRAINERS | _COPIES | {POD, HYPERPOD_JOB, RAY_JOB, RAY_CLUSTER}
_READERS = POD_TYPES | IN_PART | {CONFIG_MAP}
_STRUCTURED, _LINES = (".yaml", ".yml", ".json"), (".properties", ".env", ".ini", ".conf", ".cfg", ".toml")
_LINE = re.compile(r"^[ \t]*([\w.-]+)[ \t]*[=:][ \t]*['\"]?([^\s'\"#;]+)", re.MULTILINE)
_OFF = frozenset({"false", "0", "no", "off", "none", "null", ""})


@dataclass(frozen=True)
class _Writer:
    """A container that writes checkpoints, in the pods of one template."""

    template: PodTemplate
    container: Node
    where: str = ""
    """Said of a place that is not in the container that names it."""


@dataclass(frozen=True)
class _Mount:
    """A volume at a folder of a container."""

    place: Node
    """What says so: a mount of the container, or a volume of the job."""
    template: PodTemplate
    of_job: bool = False

    @property
    def folder(self) -> str:
        return self.place.at("mountPath").text().rstrip("/")

    @property
    def name(self) -> str:
        """Of the volume; two mounts of one pod with the same name have the same data."""
        return self.place.path if self.of_job else self.place.at("name").text()

    @property
    def volume(self) -> Node | None:
        """None where the pod has no volume of the mount's name."""
        if self.of_job:
            return self.place
        return next((one for one in self.template.spec.at("volumes").elements() if one.at("name").text() == self.name), None)


def _place(program: Program, report: Report) -> None:
    for job in program.of(*sorted(TRAINERS | _COPIES)):
        with report.part():
            for template in pod_templates(job) if job.type in _COPIES or trains(job) else ():
                for index, container in enumerate(template.containers()):
                    with report.part():
                        if job.type not in _COPIES or _is_run_of_training(container):
                            writers = _ranks(job, template) if index == 0 else []
                            _container_place(job, container, writers or [_Writer(template, container)], program, report)
    for job in program.of(RAY_JOB):
        with report.part():
            _entrypoint(job, program, report)
    for code in program.of(CONFIG_MAP) if program.has((RAY_CLUSTER, RAY_JOB)) else ():
        with report.part():
            for name, text in code.at("data").entries():
                with report.part():
                    if name.lower().endswith(".py"):
                        _storage_path(code, text, program, report)


def _is_run_of_training(container: Node) -> bool:
    """Whether a launcher starts what says by its name that it trains; what else copies of a pod run is a server."""
    return any(_trains_by_name(call.expand(call.program)) for call in gang.calls(container))


def _trains_by_name(program: str) -> bool:
    name = command.base(program)
    if not command.is_of_training(name) or _SERVES.search(name):
        return False
    return bool(_TRAINS.search(name)) or (bool(_TUNES.search(name)) and not _USES.search(name))


def _entrypoint(job: Resource, program: Program, report: Report) -> None:
    """What the driver of a RayJob is told to save: it runs in the head, and its workers in the groups with devices."""
    entrypoint, pods = job.at("spec", "entrypoint"), [each for each in pod_templates(job) if each.role != SUBMITTER]
    writers = [_Writer(each, container) for each in pods for container in list(each.containers())[:1]]
    if not entrypoint.text() or not any(each.devices() for each in pods):
        return
    driver = Node({**(writers[0].container.value or {}), "command": ["sh", "-c", entrypoint.text()], "args": []})
    scripts = [word for word in command.words(driver) if _SCRIPT.fullmatch(word)]
    if not any(map(_trains_by_name, (*scripts, *(call.expand(call.program) for call in programs(driver))))):
        return
    for _, folders in _directories(driver, writers):
        faults = [_fault_in_all(job, driver, writers, folder, program) for folder in folders]
        if all(faults):
            report.refuse(job, entrypoint, allowed=_LASTING, found=faults[-1])


def _fault_in_all(job: Resource, driver: Node, writers: Sequence[_Writer], folder: str, program: Program) -> str:
    """Why an absolute path is lost wherever the program may write it; empty where one of the places lasts."""
    reasons = [_lost(job, driver, each, posixpath.normpath(folder), program) for each in writers] if folder.startswith("/") else []
    return f"{folder} ({reasons[-1]})" if reasons and all(reasons) else ""


def _storage_path(code: Resource, text: Node, program: Program, report: Report) -> None:
    """Where Ray Train's workers leave checkpoints, by code in a ConfigMap: a place that all nodes share, or Ray itself stops."""
    paths = [] if _SENDS.search(text.text()) else _storage_paths(text.text())
    if not paths:
        return
    clusters = [each for each in program.of(RAY_CLUSTER, RAY_JOB) if namespace(each) == namespace(code)]
    read_by = [each for each in clusters if reads(each, code, program)]
    faults = [[_fault_in_groups(each, path, program) for path in paths] for each in read_by or clusters]
    lost = [found[-1] for found in faults if all(found)]
    # Code that no pod mounts may be run in any of the clusters, or in another one.
    if lost and (read_by or len(lost) == len(clusters)):
        tell = report.refuse if read_by else report.advise
        tell(code, text, allowed=_LASTING, found=f"storage_path={lost[-1]}")


def _storage_paths(code: str) -> list[str]:
    """The paths that the code gives to each RunConfig; none where it gives one of them another place, or can't be read."""
    if _RUN_CONFIG not in code or _STORAGE_PATH not in code:
        return []
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    calls = [node for node in nodes if isinstance(node, ast.Call) and _is_named(node.func, _RUN_CONFIG)]
    if any(call.args[1:] or any(each.arg is None for each in call.keywords) for call in calls) or any(map(_is_set_later, nodes)):
        return []
    given = [each.value for call in calls for each in call.keywords if each.arg == _STORAGE_PATH]
    paths = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    is_plain = len(paths) == len(given) and all(path.startswith("/") and "$" not in path for path in paths)
    return [posixpath.normpath(path) for path in paths] if is_plain else []


def _is_set_later(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == _STORAGE_PATH and isinstance(node.ctx, ast.Store)


def _is_named(function: ast.expr, ending: str) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    return name.endswith(ending)


def _fault_in_groups(cluster: Resource, path: str, program: Program) -> str:
    """Why a path is lost in the pods with devices of a Ray cluster."""
    pods = [each for each in pod_templates(cluster) if each.devices()]
    writers = [_Writer(each, container) for each in pods for container in list(each.containers())[:1]]
    return _fault_in_all(cluster, Node(None), writers, path, program)


def _ranks(job: Resource, template: PodTemplate) -> list[_Writer]:
    """Where the ranks of an MPI launcher write: mpirun starts them in the first container of each worker. None of another pod."""
    workers = _workers(job, template)
    found = [(each, next(each.containers(), None)) for each in pod_templates(job) if each.role == workers]
    ranks = [_Writer(each, container, " of the workers") for each, container in found if workers and container is not None]
    if ranks and job.type == MPI_JOB and not only_launches(job, template):
        ranks += [_Writer(template, container) for container in list(template.containers())[:1]]
    return ranks


def _workers(job: Resource, template: PodTemplate) -> str:
    """The role of the pods that a launcher starts ranks in; empty where the template launches none."""
    if job.type == MPI_JOB:
        return WORKER if template.role == LAUNCHER else ""
    plugin = job.at("spec", "plugins", "mpi") if job.type == VOLCANO_JOB else None
    tasks = mpi_tasks(plugin) if plugin is not None and plugin.present else {}
    return tasks["worker"] if template.role and template.role == tasks.get("master") else ""


def _container_place(job: Resource, container: Node, writers: Sequence[_Writer], program: Program, report: Report) -> None:
    for node, folders in _directories(container, writers):
        faults = [_fault(job, container, writers, folder, program) for folder in folders]
        if all(faults):
            found, allowed = faults[-1]
            report.refuse(job, node, allowed=allowed, found=found)


def _fault(job: Resource, container: Node, writers: Sequence[_Writer], folder: str, program: Program) -> tuple[str, ...]:
    """What is wrong with a place for checkpoints and what is allowed; nothing where it may be right."""
    path = _path(container, folder)
    if path is None:
        return ()
    lost = [f"{why}{each.where}" for each in writers if (why := _lost(job, container, each, path, program))]
    if lost:
        return f"{folder} ({lost[0]})", _LASTING
    is_one_file = path.startswith("/") and _FILE.fullmatch(path) and _are_several(writers)
    return (folder, f"a folder with one folder for each step: {_ONE_FILE}") if is_one_file else ()


def _path(container: Node, folder: str) -> str | None:
    """Where a folder is, as it was named where nobody can tell which one it is named from; None where it is no folder at all."""
    if not folder.startswith("/"):
        if not _RELATIVE.fullmatch(folder):
            return None
        start = "" if _moves(container) else container.at("workingDir").text()
        if not start:
            return folder
        folder = f"{start}/{folder}"
    return posixpath.normpath(f"/{folder.lstrip('/')}")


def _moves(container: Node) -> bool:
    """Whether the program may start in another folder than the container does: an entry point or a script can do anything."""
    return not container.at("command").present or any(_MOVES.fullmatch(word) for word in command.words(container))


def _are_several(writers: Sequence[_Writer]) -> bool:
    return len(writers) > 1 or any(each.template.replicas > 1 or each.template.requested(GPU) > 1 for each in writers)


def _directories(container: Node, writers: Sequence[_Writer]) -> Iterator[tuple[Node, list[str]]]:
    """Where the container says that checkpoints go: the place that says so, and folders that it may mean."""
    place, calls = command.place(container), programs(container)
    sure = {call: folders for call in calls if (folders := _told(call, _DIRECTORY, writers) + _overridden(call))}
    perhaps = {} if sure else {call: folders for call in calls if (folders := _written(_told(call, _PERHAPS, writers), writers))}
    said = [[each] for call in command.likely([*sure]) for each in sure[call]]
    trainers = command.likely([*perhaps])
    # Where no program says that it trains, what another one of them writes may be no checkpoint.
    said += (
        [perhaps[call] for call in trainers] if len(trainers) < len(perhaps) else [[each for call in trainers for each in perhaps[call]]]
    )
    for index, folders in enumerate(said):
        if folders and folders not in said[:index]:
            yield place, folders
    for variable in container.at("env").elements():
        name, value = variable.at("name").text(), variable.at("value")
        if name in _DIRECTORY_VARIABLES and _is_of_checkpoints(name, folder := environment.expanded(container, value.text()), writers):
            yield value, [folder]


def _told(call: command.Invocation, options: Sequence[str], writers: Sequence[_Writer]) -> list[str]:
    """The folders that a command's options name."""
    return [value for name in options if _is_of_checkpoints(name, value := call.option(name) or "", writers)]


def _written(folders: Sequence[str], writers: Sequence[_Writer]) -> list[str]:
    """Those of the folders that are not only read from, as what is mounted read-only."""
    return [folder for folder in folders if not all(_is_only_read(each, folder) for each in writers)]


def _is_only_read(writer: _Writer, folder: str) -> bool:
    mount = _innermost(list(_own_mounts(writer.template, writer.container)), posixpath.normpath(folder))
    return mount is not None and mount.place.at("readOnly").value is True


def _overridden(call: command.Invocation) -> list[str]:
    return [call.expand(word.removeprefix(_OVERRIDE)) for word in call.arguments if word.startswith(_OVERRIDE)]


def _is_of_checkpoints(name: str, path: str, writers: Sequence[_Writer]) -> bool:
    """Many a program has an option for its output; it is one for checkpoints where it says so, or where there are devices to train on."""
    return bool(path) and (bool(CHECKPOINT.search(f"{name} {path}")) or any(each.template.devices() for each in writers))


def _lost(job: Resource, container: Node, writer: _Writer, path: str, program: Program) -> str:
    """Why what the writer leaves at `path` is lost with the pod or the node; empty where it is not, or is uploaded."""
    if not path.startswith("/"):
        sent = uploads(container, path) or uploads(writer.container, path)
        return "" if sent or _may_last(job, writer, program) else "in the container's own file system or on what goes with the pod"
    mounts = list(_mounts(job, writer.template, writer.container))
    mount = _innermost(mounts, path)
    why = _perishes(job, mount, program) if mount is not None else "in the container's own file system"
    if not why or uploads(container, path) or uploads(writer.container, path):
        return ""
    if mount is not None and any(uploads(each, there) for each, there in _beside(job, writer, mount, path)):
        return ""
    return why


def _may_last(job: Resource, writer: _Writer, program: Program) -> bool:
    """Whether the container has any lasting volume that its working folder may be on."""
    for mount in _mounts(job, writer.template, writer.container):
        volume = mount.volume
        kept = volume is None or not any(volume.at(kind).present for kind in _NOT_KEPT)
        if kept and mount.place.at("readOnly").value is not True and not _perishes(job, mount, program):
            return True
    return False


def _beside(job: Resource, writer: _Writer, mount: _Mount, path: str) -> Iterator[tuple[Node, str]]:
    """The other containers that run meanwhile with the volume mounted, and where `path` is in them."""
    template, below = writer.template, path[len(mount.folder) :]
    sidecars = [each for each in template.init_containers() if template.is_sidecar(each)]
    held = [(each, list(_mounts(job, template, each))) for each in template.containers()]
    for each, mounts in (*held, *((each, list(_own_mounts(template, each))) for each in sidecars)):
        for other in (one for one in mounts if one.name == mount.name):
            there = f"{other.folder}{below}"
            # Another volume may be mounted over the folder.
            inner = _innermost(mounts, there)
            if inner is not None and inner.name == mount.name:
                yield each, there


def _mounts(job: Resource, template: PodTemplate, container: Node) -> Iterator[_Mount]:
    """The mounts of one of the pod's ordinary containers, in all of which Volcano mounts the job's volumes."""
    yield from _own_mounts(template, container)
    if job.type == VOLCANO_JOB:
        yield from (_Mount(volume, template, of_job=True) for volume in job.at("spec", "volumes").elements())


def _own_mounts(template: PodTemplate, container: Node) -> Iterator[_Mount]:
    yield from (_Mount(mount, template) for mount in container.at("volumeMounts").elements())


def _innermost(mounts: Sequence[_Mount], path: str) -> _Mount | None:
    """The innermost of the mounts that `path` is in."""
    inside = [mount for mount in mounts if mount.place.at("mountPath").text() and f"{path}/".startswith(f"{mount.folder}/")]
    return max(inside, key=lambda mount: len(mount.folder), default=None)


def _perishes(job: Resource, mount: _Mount, program: Program) -> str:
    """Why what is on a mount goes with the pod or the node."""
    volume = mount.volume
    if volume is None:
        return ""
    if mount.of_job:
        # Volcano makes a claim of what the job says of it, where it does not name one.
        name, spec = volume.at("volumeClaimName").text(), volume.at("volumeClaim")
        return _scratch(job, name, program) if name else _on_scratch(_shapes(program, spec.at("storageClassName"), _volume(program, spec)))
    for kind in ("emptyDir", "hostPath", "ephemeral"):
        if volume.at(kind).present:
            return f"on {kind} {mount.name}"
    return _scratch(job, volume.at("persistentVolumeClaim", "claimName").text(), program)


def _volume(program: Program, claim: Node) -> Resource | None:
    """The volume that a claim asks for by name."""
    name = claim.at("volumeName").text()
    return named(program, name, PERSISTENT_VOLUME) if name else None


def _scratch(job: Resource, name: str, program: Program) -> str:
    claim = claim_of(program, job, name)
    return "" if claim is None else _on_scratch(_shapes(program, class_name(claim), volume_of(program, claim)))


def _on_scratch(shapes: Iterator[Shape]) -> str:
    """Lustre of a SCRATCH type keeps one copy of the data: a failed disk takes it along."""
    kind = next((shape.deployment for shape in shapes if shape.deployment in SCRATCH), "")
    return f"on {kind} Lustre" if kind else ""


def _shapes(program: Program, class_named: Node, volume: Resource | None) -> Iterator[Shape]:
    """The Lustre file systems that may be behind a claim: what its class makes, or that of the volume it names."""
    if volume is not None:
        yield from (file_system(origin) for origin in lustre_of(program, volume))
        return
    name = class_named.text()
    for each in program.of(STORAGE_CLASS):
        shape = storage_class(each)
        if name and shape is not None and each.at("metadata", "name").text() == name:
            yield shape


def _kept(program: Program, report: Report) -> None:
    for job in program.of(*sorted(TRAINERS)):
        with report.part():
            for template in pod_templates(job) if trains(job) else ():
                for container in template.containers():
                    with report.part():
                        _retention(job, container, report)
                    with report.part():
                        _of_trainer(job, template, container, report)
    _read_settings(program, report)


def _retention(job: Resource, container: Node, report: Report) -> None:
    place, calls = command.place(container), programs(container)
    # One call of several may be a trial.
    kept = [min(numbers) for call in calls if (numbers := _numbers_kept(call))]
    if kept and max(kept) < _LEAST_KEPT:
        allowed = f"at least {_LEAST_KEPT}: the older one goes only when the newer one was read back"
        report.refuse(job, place, allowed=allowed, found=f"{max(kept)} checkpoint kept")
    for option, missing in _WITHOUT_STATE.items():
        values = [value for call in calls if (value := call.option(option)) is not None]
        if values and all(value.lower() not in _OFF_FLAG for value in values):
            report.refuse(job, place, allowed=f"the whole state: a resume needs {missing}", found=option)


def _of_trainer(job: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    """Settings of Hugging Face's Trainer that leave nothing to resume from, or no whole thing."""
    place, calls = command.place(container), [call for call in programs(container) if call.option("--output-dir")]
    several = template.devices() > 1 or gang.size(job, template) > 1
    for option, value, allowed in _TRAINER_SETTINGS if several and calls else ():
        # One call of several may be a trial.
        if all((call.option(option) or "").lower() in value for call in calls):
            report.advise(job, place, allowed=allowed, found=f"{option}={calls[-1].option(option)}")
    for call in calls:
        each = call.option("--save-on-each-node")
        shared = (
            each is not None and each.lower() not in _OFF_FLAG and gang.size(job, template) > 1 and _is_shared(template, container, call)
        )
        if shared:
            allowed = "false: each node writes the same files of one claim over those of the others"
            report.refuse(job, place, allowed=allowed, found=f"--save-on-each-node beside {call.option('--output-dir')}")


def _is_shared(template: PodTemplate, container: Node, call: command.Invocation) -> bool:
    """Whether the pods of a template write to one folder of one claim."""
    folder = call.option("--output-dir") or ""
    mount = _innermost(list(_own_mounts(template, container)), posixpath.normpath(folder)) if "$" not in folder else None
    volume = mount.volume if mount is not None else None
    of_pod = mount is not None and mount.place.at("subPathExpr").present
    return volume is not None and not of_pod and volume.at("persistentVolumeClaim").present


def _numbers_kept(call: command.Invocation) -> list[int]:
    """How many checkpoints a command is told to keep, by each option and by the last of the settings."""
    kept = [number for name in _KEEP if (number := call.number(name)) is not None and not (number == 0 and name in _NOUGHT_IS_ALL)]
    values = [call.expand(word.removeprefix(_KEEP_OVERRIDE)) for word in call.arguments if word.startswith(_KEEP_OVERRIDE)]
    return kept + [int(value) for value in values if re.fullmatch(r"[0-9]{1,6}", value)][-1:]


def _read_settings(program: Program, report: Report) -> None:
    """Resume settings in a ConfigMap that no pod of the program reads."""
    for settings in program.of(CONFIG_MAP):
        with report.part():
            found = [(key, node) for name, node in settings.at("data").entries() for key in _resume_settings(name, node, report)]
            if not found or decided([_is_read_by(pod, settings) for pod in program.of(*sorted(POD_TYPES | IN_PART))]):
                continue
            if decided([_may_read(each, settings) for each in program if each.type not in _READERS]):
                continue
            # The pods of another program may read it, or those of a runtime.
            tell = report.refuse if not program.has(IN_PART) and _has_trainers(program) else report.advise
            for key, node in found:
                tell(settings, node, allowed="a setting of the program that trains", found=f"{key}, which no job reads")


def _has_trainers(program: Program) -> bool:
    return any(map(_is_trainer, program.of(*sorted(_RUNS))))


def _is_trainer(owner: Resource) -> bool:
    if owner.type in TRAINERS and not trains(owner):
        return False
    return any(each.devices() or trains_alone(each) for each in pod_templates(owner))


def _may_read(other: Resource, settings: Resource) -> bool | Undecided:
    """Whether an object of a kind whose pods are not known names the ConfigMap, or may do so by a value from elsewhere."""
    if settings.urn and any(settings.urn in urns for urns in other.sources.values()):
        return True
    # A list that it comes in has its own name.
    names, values = _names(settings), _inner_values(None if other.type.endswith("List") else other.properties.raw)
    if any(isinstance(value, str) and _is_one_of(value, names) for value in values):
        return True
    return Undecided(f"{other.name}.spec") if any(value is UNKNOWN for value in values) and _is_custom(other) else False


def _is_custom(other: Resource) -> bool:
    """Whether an operator of its own makes pods of an object, or may."""
    group = other.type.removeprefix("kubernetes:").partition("/")[0]
    return other.type.startswith("kubernetes:") and "." in group and not group.endswith(".k8s.io")


def _inner_values(properties: Any) -> list[Any]:
    """All texts, numbers and unknowns of an object; another one in a chart's values is one of the program by itself."""
    found, left = [], [properties]
    while left:
        value = left.pop()
        if isinstance(value, dict) and (value is properties or not {"apiVersion", "kind"} <= value.keys()):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif not isinstance(value, dict):
            found.append(value)
    return found


def _names(settings: Resource) -> set[str]:
    return {settings.name, settings.at("metadata", "name").text()} - {""}


def _is_one_of(name: str, names: set[str]) -> bool:
    """Whether it is one of the names, or one with the hash that kustomize puts behind it."""
    return name in names or (bool(_HASHED.fullmatch(name)) and name.rpartition("-")[0] in names)


def _resume_settings(name: str, node: Node, report: Report) -> list[str]:
    """The resume settings that a key of a ConfigMap is, or that are on in the file under it."""
    if _RESUME.search(name):
        return [name]
    with report.part():
        if name.lower().endswith((*_STRUCTURED, *_LINES)) and _RESUME.search(node.text()):
            keys = _LINE.findall(node.text()) if name.lower().endswith(_LINES) else list(_pairs(node.text()))
            return [key for key, value in dict(keys).items() if _resumes(key) and value.lower() not in _OFF]
    return []


def _resumes(key: str) -> bool:
    """Whether a key of a file is a trainer's; other programs have longer ones, or have them in sections of their own."""
    *sections, last = re.split(r"[.:]", key)
    return bool(_RESUME.fullmatch(last)) and all(_OF_TRAINER.search(each) for each in sections)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Each key of a YAML or JSON text at whatever depth, and its plain value; none of a text that can't be read."""
    try:
        left = [Node(document) for document in read_yaml(text)]
    except DocumentError:
        return
    while left:
        node = left.pop()
        for key, member in node.entries():
            yield key, "" if isinstance(member.raw, dict | list) else member.text()
            left.append(member)
        left.extend(node.elements())


def _is_read_by(pod: Resource, settings: Resource) -> bool | Undecided:
    if settings.urn and settings.urn in pod.sources.get("spec", ()):
        return True
    if pod.type in IN_PART:
        # They change pods of their runtime as well.
        return _may_read(pod, settings)
    try:
        return any(_is_one_of(name, _names(settings)) for name in mounted_config_maps(pod))
    except Undecided as error:
        return error


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
        types=TRAINERS | _COPIES | {RAY_CLUSTER, RAY_JOB, CONFIG_MAP, STORAGE_CLASS, VOLUME_CLAIM, PERSISTENT_VOLUME, LUSTRE},
        check=_place,
        why="a lost pod takes its checkpoints along, and a kill while one file is overwritten leaves none: measured in half of all kills.",
        fix="save to a claim on persistent Lustre or EFS, one folder for each step, or upload every checkpoint.",
        source="measured with torch 2.15 and DeepSpeed 0.19.8; field guide section on checkpoints; "
        "mpi-operator 0.8.0 and volcano 1.14.1, where ranks run and which claims a job's volumes are",
        valid=(_job("--save /state/pretrain", _CLAIM),),
        invalid=(_job("--save /state/pretrain", {"emptyDir": {}}),),
    ),
    StackRule(
        id="CKP02",
        name="job-require-whole-checkpoints",
        title="Two whole checkpoints are kept, with all that a resume needs",
        types=POD_TYPES | IN_PART | {CONFIG_MAP},
        check=_kept,
        why="the one checkpoint that is kept may be the torn one, or lack what an exact resume needs: there is nothing to go on from.",
        fix="keep at least two, save optimizer, schedule, scaler, generators and data position, and resume in the program itself.",
        source="field guide section on checkpoints; transformers: TrainingArguments",
        valid=(_job("--save /state/pretrain --keep 3", _CLAIM),),
        invalid=(_job("--save /state/pretrain --keep 1", _CLAIM),),
    ),
)
