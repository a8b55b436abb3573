"""What is built from Go modules: the typed form of builds.toml, with the versions that go.mod pins."""

import functools
import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local.errors import LocalStackError
from local.paths import REPOSITORY

TOOLCHAIN = REPOSITORY / "local" / "toolchain"
GO_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")


@dataclass(frozen=True, kw_only=True)
class ModuleFile:
    """A file or folder inside a Go module that go.sum pins."""

    module: str
    path: str

    @classmethod
    def parse(cls, text: str) -> "ModuleFile":
        module, _, path = text.partition(":")
        return cls(module=module, path=path)


@dataclass(frozen=True, kw_only=True)
class Build:
    """One binary: the go.mod folder it is built in, its package and its flags."""

    name: str
    folder: Path
    package: str
    version: str
    ldflags: str
    embed: Mapping[str, ModuleFile] = field(default_factory=dict)
    """Copied beside the sources before the build: file name -> where from."""
    beside: Mapping[str, ModuleFile] = field(default_factory=dict)
    """Copied beside the binary after the build: file name -> where from."""

    @property
    def key(self) -> str:
        """Eight hex digits over the pins, the sources and the flags: a change of any of them is another build."""
        digest = hashlib.sha256()
        for path in self.sources():
            digest.update(f"{path.relative_to(self.folder)}\0".encode() + path.read_bytes())
        digest.update(repr((self.package, self.ldflags, GO_FLAGS, sorted(self.embed.items()), sorted(self.beside.items()))).encode())
        return digest.hexdigest()[:8]

    def sources(self) -> list[Path]:
        """go.mod, go.sum and every Go file of the folder but tests; other files there (README, .gitignore) don't enter a build.

        Raises:
            LocalStackError: the folder is no Go module.
        """
        if not (self.folder / "go.mod").exists():
            raise LocalStackError(f"{self.folder} holds no go.mod, though builds.toml says {self.name} is built there")
        files = [path for path in self.folder.rglob("*.go") if not path.name.endswith("_test.go")]
        # A module of the standard library alone has no go.sum.
        return sorted([*files, *(self.folder / name for name in ("go.mod", "go.sum") if (self.folder / name).exists())])


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart, manifest or script taken from a pinned module as it is."""

    name: str
    folder: Path
    source: ModuleFile
    version: str

    @property
    def file(self) -> str | None:
        """The file's own name where the source is one file (its extension tells others what it is), None for a folder."""
        name = Path(self.source.path).name
        return name if Path(name).suffix else None


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """All of builds.toml. Groups are named lists of builds or charts."""

    builds: Mapping[str, Build]
    charts: Mapping[str, Chart]
    groups: Mapping[str, tuple[str, ...]]

    def expand(self, names: Iterable[str]) -> list[str]:
        """Names with groups replaced by their members, each once, in order.

        Raises:
            LocalStackError: a name is neither a build, a chart nor a group.
        """
        found: dict[str, None] = {}
        for name in names:
            members = self.groups.get(name, (name,))
            for member in members:
                if member not in self.builds and member not in self.charts:
                    known = ", ".join(sorted([*self.groups, *self.builds, *self.charts]))
                    raise LocalStackError(f"there is no tool named {member!r}; known: {known}")
                found[member] = None
        return list(found)


@functools.cache
def catalogue() -> Catalogue:
    """Builds, charts and groups of this copy of the repository.

    Raises:
        LocalStackError: builds.toml names a module that its go.mod does not pin.
    """
    table = tomllib.loads((TOOLCHAIN / "builds.toml").read_text())
    builds = {build.name: build for name, entry in table["modules"].items() for build in _builds(name, entry)}
    charts = {name: _chart(name, entry) for name, entry in table["charts"].items()}
    return Catalogue(builds=builds, charts=charts, groups={name: tuple(members) for name, members in table["groups"].items()})


def pinned_version(folder: Path, module: str) -> str:
    """The version (without the leading v) of `module` in `folder`'s go.mod.

    Raises:
        LocalStackError: go.mod does not require that module.
    """
    text = (folder / "go.mod").read_text() if (folder / "go.mod").exists() else ""
    match = re.search(rf"^(?:require)?\s+{re.escape(module)} v(\S+)", text, re.MULTILINE)
    if match is None:
        raise LocalStackError(f"{folder / 'go.mod'} requires no module {module}, which builds.toml takes the version from")
    return match[1]


def _builds(name: str, entry: Mapping[str, object]) -> list[Build]:
    folder = REPOSITORY / str(entry.get("folder", f"local/toolchain/{name}"))
    version = str(entry["version"]) if "version" in entry else pinned_version(folder, str(entry["version_of"]))
    major, minor = version.split(".")[:2]
    return [
        Build(
            name=tool,
            folder=folder,
            package=package,
            version=version,
            ldflags=str(entry["ldflags"]).format(version=version, major=major, minor=minor),
            embed={file: ModuleFile.parse(source) for file, source in _strings(entry, "embed").items()},
            beside={file: ModuleFile.parse(source) for file, source in _strings(entry, "beside").items()},
        )
        for tool, package in _strings(entry, "tools").items()
    ]


def _chart(name: str, entry: Mapping[str, str]) -> Chart:
    folder = TOOLCHAIN / entry["module"]
    source = ModuleFile.parse(entry["source"])
    return Chart(name=name, folder=folder, source=source, version=pinned_version(folder, source.module))


def _strings(entry: Mapping[str, object], field_name: str) -> dict[str, str]:
    value = entry.get(field_name, {})
    assert isinstance(value, dict), f"builds.toml: {field_name} must be a table"
    return {str(key): str(item) for key, item in value.items()}
