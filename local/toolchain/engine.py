"""The environment in which the Pulumi CLI runs: which plug-ins it finds, where it keeps state, and what it must not do."""

import contextlib
import os
import secrets
import shlex
import shutil
import sys
from pathlib import Path

from local.errors import LocalStackError
from local.paths import REPOSITORY, state_dir
from local.toolchain.selection import OWN_FOLDER_MARK, SELECTABLE, STAND_INS, ToolStatus, choose, required_version


def engine_environment(*, local: bool = True, python: Path | None = None) -> dict[str, str]:
    """Environment variables for `pulumi`, which is first on their PATH. What must be built, `ensure([ENGINE], ...)` builds before.

    With `local`, state, plug-ins and the passphrase are this copy's own, nothing is downloaded, and stand-ins fill in for genuine
    plug-ins that are not installed. Without it (a stack on AWS) the user's own Pulumi settings hold and there are no stand-ins.
    `python` runs the stand-ins; default is the interpreter that runs this.

    Raises:
        LocalStackError: a tool that must be built is not built yet.
    """
    statuses = {name: choose(name) for name in SELECTABLE}
    binaries = _write_binaries(state_dir() / "engine" / "bin", statuses)
    environment = os.environ | {
        "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    if not local:
        return environment
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_ACCESS_TOKEN", "PULUMI_IGNORE_AMBIENT_PLUGINS"):
        environment.pop(name, None)
    if statuses["pulumi"].source == statuses["pulumi-language-python"].source:
        # Everything is in its own place then, so that a plug-in on PATH that was refused as too old is not taken after all.
        environment["PULUMI_IGNORE_AMBIENT_PLUGINS"] = "true"
    backend = state_dir() / "pulumi"
    backend.mkdir(parents=True, exist_ok=True)
    home = state_dir() / "engine" / "home"
    _write_plugins(home / "plugins", statuses, python or Path(sys.executable))
    return environment | {
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": f"file://{backend}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(_passphrase_file(state_dir() / "passphrase")),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }


def _write_binaries(folder: Path, statuses: dict[str, ToolStatus]) -> Path:
    """The built CLI and language host, in one folder: the engine warns about a host that does not lie beside its own executable."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OWN_FOLDER_MARK).touch()
    cli, host = (_path(statuses[name]) for name in ("pulumi", "pulumi-language-python"))
    if statuses["pulumi"].source == "built":
        _place_executable(cli, folder / "pulumi")
    else:
        (folder / "pulumi").unlink(missing_ok=True)
    if statuses["pulumi-language-python"].source == "built":
        _write_script(folder / "pulumi-language-python", f'exec {shlex.quote(str(host))} "$@"')
    else:
        (folder / "pulumi-language-python").unlink(missing_ok=True)
    return folder


def _write_plugins(folder: Path, statuses: dict[str, ToolStatus], python: Path) -> None:
    """Resource plug-ins where the engine looks for the versions that the SDKs name; what is no longer wanted goes."""
    wanted: set[str] = set()
    for name in SELECTABLE:
        if not name.startswith("pulumi-resource-"):
            continue
        status = statuses[name]
        if status.path is not None and status.path.is_dir():
            # No executable of its own: the engine runs it through its language's host.
            place = folder / status.path.name
            if not place.exists():
                place.unlink(missing_ok=True)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(status.path)
        else:
            place = folder / f"{name.removeprefix('pulumi-')}-v{required_version(name)}"
            if place.is_symlink():
                place.unlink()
            _write_script(place / name, _plugin_line(status, python))
        wanted.add(place.name)
    for place in folder.iterdir():
        if place.is_symlink() and place.name not in wanted:
            place.unlink()
        elif place.is_dir() and place.name not in wanted:
            shutil.rmtree(place)


def _plugin_line(status: ToolStatus, python: Path) -> str:
    if status.source == "stand-in":
        # -P keeps the project folder that the engine starts plug-ins in from hiding our packages.
        words = ["env", f"PYTHONPATH={REPOSITORY}", str(python), "-P", "-m", "local.toolchain.standin", STAND_INS[status.name]]
        return f'exec {shlex.join(words)} "$@"'
    return f'exec {shlex.quote(str(_path(status)))} "$@"'


def _path(status: ToolStatus) -> Path:
    if status.path is None:
        raise LocalStackError(f"{status.name} is neither installed nor built yet ({status.why}); `make setup` builds it")
    return status.path


def _write_script(path: Path, line: str) -> None:
    """A launcher that becomes its tool (exec), so that signals and the exit status are the tool's own."""
    script = f"#!/bin/sh\n{line}\n"
    if path.exists() and not path.is_symlink() and path.read_text() == script:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(script)
    scratch.chmod(0o755)
    scratch.replace(path)


def _place_executable(source: Path, target: Path) -> None:
    """A hard link (or a copy on another file system): a symbolic link would tell the engine the folder it points to."""
    want = source.stat()
    if target.exists() and (target.stat().st_size, target.stat().st_mtime_ns) == (want.st_size, want.st_mtime_ns):
        return
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)
    try:
        os.link(source, scratch)
    except OSError:
        shutil.copy2(source, scratch)
    scratch.replace(target)


def _passphrase_file(path: Path) -> Path:
    """The passphrase that encrypts this copy's secrets. Made once: another one could not read the stacks' state."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.touch(mode=0o600)
        scratch.write_text(secrets.token_urlsafe(24))
        # Unlike a rename, a link never replaces a passphrase that another process has just made.
        with contextlib.suppress(FileExistsError):
            os.link(scratch, path)
        scratch.unlink()
    return path
