"""The Go command: is there one, is it recent enough, where does it keep a pinned module, and one build."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from local.errors import LocalStackError
from local.progress import Progress
from local.toolchain.builds import GO_FLAGS, Build, ModuleFile

MINIMUM_GO = (1, 26)


def go_command() -> str:
    """The path of a Go command that can build our modules.

    Raises:
        LocalStackError: none on PATH or in /usr/local/go, or an older one than 1.26.
    """
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    needed = ".".join(map(str, MINIMUM_GO))
    if go is None:
        raise LocalStackError(
            f"Go {needed} or newer is needed to build tools that are not installed here, and no `go` is on PATH (https://go.dev/dl)"
        )
    text = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout.strip()
    match = re.match(r"go(\d+)\.(\d+)", text)
    if match is None or (int(match[1]), int(match[2])) < MINIMUM_GO:
        raise LocalStackError(f"Go {needed} or newer is needed; {go} is {text or 'of unknown version'} (https://go.dev/dl)")
    return go


def go_environment() -> dict[str, str]:
    """Static binaries, and no workspace file of the user's that would change the pins."""
    return os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}


def module_path(go: str, folder: Path, file: ModuleFile) -> Path:
    """Where the module cache holds `file`, downloaded first where it must be; go.sum in `folder` decides what is right.

    Raises:
        LocalStackError: the module can't be had, or holds no such file.
    """
    # With -json the errors are in the answer and the exit status is 1.
    argv = [go, "mod", "download", "-json", file.module]
    answer = subprocess.run(argv, cwd=folder, env=go_environment(), capture_output=True, text=True, check=False)
    try:
        found = json.loads(answer.stdout)
    except ValueError:
        raise LocalStackError(f"{' '.join(argv)} in {folder} failed: {answer.stderr.strip()}") from None
    if "Dir" not in found:
        raise LocalStackError(f"Go module {file.module} can't be downloaded: {found.get('Error', answer.stderr.strip())}")
    path = Path(found["Dir"]) / file.path
    if not path.exists():
        raise LocalStackError(f"Go module {file.module}@{found['Version']} holds no {file.path}")
    return path


def build_binary(go: str, build: Build, output: Path, progress: Progress) -> None:
    """Build one binary, and what goes beside it, into the folder `output`.

    Raises:
        LocalStackError: the build failed; the message holds its last lines and names the log.
    """
    with tempfile.TemporaryDirectory(prefix=f"trainyard-{build.name}-") as scratch:
        # Embedded files must lie beside the sources; a copy keeps the repository clean and two builds apart.
        source = Path(shutil.copytree(build.folder, scratch, dirs_exist_ok=True)) if build.embed else build.folder
        for name, file in build.embed.items():
            _copy(module_path(go, build.folder, file), source / name)
        argv = [go, "build", *GO_FLAGS, "-ldflags", build.ldflags, "-o", str(output / build.name), build.package]
        progress.run(argv, env=go_environment(), cwd=source)
    for name, file in build.beside.items():
        _copy(module_path(go, build.folder, file), output / name)
        (output / name).chmod(0o755)


def _copy(source: Path, target: Path) -> None:
    # The module cache is read-only; copies must be replaceable, so modes are not kept.
    shutil.copyfile(source, target)
