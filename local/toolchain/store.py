"""The store of built tools and charts: shared by all copies of the repository, keyed by version and content, filled atomically."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path

from local.paths import cache_dir
from local.progress import Progress
from local.toolchain.builds import Build, Chart, catalogue
from local.toolchain.go import build_binary, go_command, module_path

ENGINE = "ENGINE"
"""The Pulumi CLI, the Python language host and the kubernetes plug-in."""
CLUSTER = "CLUSTER"
"""Kubernetes' own binaries, etcd, containerd, CoreDNS, kwok and our CSI node plug-in."""
CONTROLLERS = "CONTROLLERS"
"""What the images of the platform's controllers are made of."""
CHARTS = "CHARTS"
"""Charts and manifests of the controllers, from the same modules as their binaries."""


class Tools(Mapping[str, Path]):
    """Paths by name: a binary's file, a chart's folder, a manifest's file."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = dict(paths)

    def __getitem__(self, name: str) -> Path:
        return self._paths[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def location(name: str) -> Path:
    """Where the store keeps a build or a chart, whether it is there yet or not."""
    known = catalogue()
    if name in known.builds:
        return _folder(known.builds[name]) / name
    chart = known.charts[name]
    return _folder(chart) / chart.file if chart.file else _folder(chart)


def pending(names: Iterable[str]) -> list[str]:
    """Which of `names` (groups allowed) are not in the store yet."""
    return [name for name in catalogue().expand(names) if not location(name).exists()]


def build(names: Iterable[str], progress: Progress) -> Tools:
    """Paths of all `names` (groups allowed), building or copying what the store lacks; one build at a time on a machine.

    Raises:
        LocalStackError: an unknown name, no usable Go, a module that can't be had, or a failed build (its log is named).
    """
    wanted = catalogue().expand(names)
    missing = pending(wanted)
    if missing:
        progress.total = max(progress.total, progress.done + len(missing))
        go = go_command()
        with _only_builder(progress):
            for name in missing:
                _fill(go, name, progress)
    return Tools({name: location(name) for name in wanted})


def _fill(go: str, name: str, progress: Progress) -> None:
    target = location(name)
    known = catalogue()
    item = known.builds.get(name) or known.charts[name]
    with progress.step(f"{'build' if isinstance(item, Build) else 'fetch'} {name} {item.version}"):
        # Another copy of the repository may have made it while this one waited for the lock.
        if target.exists():
            return
        with _scratch(_folder(item)) as scratch:
            if isinstance(item, Build):
                build_binary(go, item, scratch, progress)
            else:
                _copy_chart(module_path(go, item.folder, item.source), scratch)


def _folder(item: Build | Chart) -> Path:
    if isinstance(item, Build):
        return cache_dir() / "tools" / f"{item.name}-{item.version}-{item.key}"
    return cache_dir() / "charts" / f"{item.name}-{item.version}"


def _copy_chart(source: Path, scratch: Path) -> None:
    if source.is_file():
        shutil.copyfile(source, scratch / source.name)
    else:
        shutil.copytree(source, scratch, dirs_exist_ok=True, copy_function=shutil.copyfile)


@contextlib.contextmanager
def _scratch(folder: Path) -> Generator[Path]:
    """A folder that becomes `folder` in one step when the body succeeds, so that a killed build leaves nothing that looks whole."""
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        yield scratch
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def _only_builder(progress: Progress) -> Generator[None]:
    """Hold the store's lock. Go's linker takes up to 3 GB a binary, so two builds at once are no gain and may not fit."""
    path = cache_dir() / "tools" / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.console.print("waiting for another build of the tools on this machine ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in (*cache_dir().glob("tools/.*.*"), *cache_dir().glob("charts/.*.*")):
            # Of a build that was killed: nobody else builds while this lock is held.
            shutil.rmtree(left, ignore_errors=True)
        yield
