"""The toolchain's front door: `ensure` gives paths of tools, `describe` says what each is and why."""

from collections.abc import Iterable

from local.progress import Progress
from local.toolchain.builds import catalogue
from local.toolchain.selection import SELECTABLE, ToolStatus, choose
from local.toolchain.store import CHARTS, CLUSTER, CONTROLLERS, ENGINE, Tools, build, location

__all__ = ["CHARTS", "CLUSTER", "CONTROLLERS", "ENGINE", "ToolStatus", "Tools", "describe", "ensure"]


def ensure(names: Iterable[str], progress: Progress) -> Tools:
    """Paths of all `names`; the groups ENGINE, CLUSTER, CONTROLLERS and CHARTS may stand among them.

    An engine tool that is installed and recent enough is used as it is; everything else that the store lacks is built.

    Raises:
        LocalStackError: an unknown name, no usable Go, a module that can't be had, or a failed build (its log is named).
    """
    wanted = catalogue().expand(names)
    installed = {status.name: status.path for status in map(choose, set(wanted) & set(SELECTABLE)) if status.source == "installed"}
    built = build([name for name in wanted if name not in installed], progress)
    return Tools({name: installed.get(name) or built[name] for name in wanted})


def describe() -> list[ToolStatus]:
    """What is in use for the engine and its plug-ins, then every other tool that is built or would be."""
    rest = [name for name in catalogue().builds if name not in SELECTABLE]
    return [*map(choose, SELECTABLE), *map(_built, rest)]


def _built(name: str) -> ToolStatus:
    path, version = location(name), catalogue().builds[name].version
    if path.exists():
        return ToolStatus(name=name, version=version, source="built", path=path, why="always built from its Go module")
    return ToolStatus(name=name, version=version, source="missing", path=None, why="built from its Go module when first needed")
