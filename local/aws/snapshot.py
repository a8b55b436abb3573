"""The emulator's state on disk: one file, replaced after every request that changed something, before the request is answered.

Ids, ARNs, times and tags come back as they were, because the objects themselves are kept. (moto's own recorder replays requests instead:
what moto draws from other sources of randomness, and each time stamp, would come out different.)
"""

import functools
import io
import json
import pickle
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from moto.core.base_backend import BackendDict

from local.aws.pickling import BackendPickler, backend_table, table_name

# Raise it when the records of local/aws/extension change their form.
FORMAT = 1


class StateError(Exception):
    """State on disk that can't be trusted; the message says why."""


class Snapshot:
    """The files of one emulator's state in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "state.pickle"
        self._bodies = folder / "bodies"
        self._marker = folder / "unsaved.json"
        self.problem: str | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def save(self) -> None:
        """Write everything. What can't be written is remembered in `problem` and on disk, so that the next start does not lie."""
        try:
            self._write(self._serialize())
        except Exception as error:  # Whatever one of moto's several hundred classes holds: the request itself has succeeded.
            self.problem = f"{type(error).__name__}: {error}"
            self._marker.write_text(json.dumps({"problem": self.problem}))
            return
        if self.problem:
            self.problem = None
            self._marker.unlink(missing_ok=True)

    def _serialize(self) -> bytes:
        tables: dict[str, Any] = {}
        for table in tables_in_use():
            accounts = {account: dict(regions) for account, regions in table.items() if regions}
            if accounts:
                tables[table_name(table)] = {"accounts": accounts, "extra": _extra(table)}
        buffer = io.BytesIO()
        buffer.write(json.dumps(_header()).encode() + b"\n")
        BackendPickler(buffer, self._bodies).dump(tables)
        return buffer.getvalue()

    def _write(self, data: bytes) -> None:
        partial = self._file.with_suffix(".partial")
        partial.write_bytes(data)
        # A rename is enough against the end of this process: the page cache outlives it.
        partial.rename(self._file)

    def load(self) -> bool:
        """Put the saved state into moto's backends; False where there is none.

        Raises:
            StateError: the file does not hold all that was acknowledged, or was written by other code.
        """
        if self._marker.exists():
            raise StateError(f"the last changes could not be saved ({json.loads(self._marker.read_text())['problem']})")
        if not self._file.exists():
            return False
        with self._file.open("rb") as file:
            found, expected = json.loads(file.readline()), _header()
            if found != expected:
                differing = ", ".join(
                    f"{key} {found.get(key)} (now {expected[key]})" for key in expected if found.get(key) != expected[key]
                )
                raise StateError(f"the state was written by other versions: {differing}")
            try:
                tables = pickle.load(file)
            except Exception as error:
                raise StateError(f"the state file can't be read ({type(error).__name__}: {error})") from error
        _restore(tables)
        return True

    def drop_unused_bodies(self) -> None:
        """Delete files of S3 objects that are gone. Only while no request runs."""
        if not self._bodies.exists():
            return
        pickler = BackendPickler(io.BytesIO(), self._bodies)
        pickler.dump([{account: dict(regions) for account, regions in table.items()} for table in tables_in_use()])
        for file in self._bodies.iterdir():
            if file.name not in pickler.bodies_in_use:
                file.unlink()


def tables_in_use() -> list[Any]:
    """moto's tables of backends that hold at least one account."""
    table_class: Any = BackendDict
    return table_class._instances


@functools.cache
def _header() -> dict[str, Any]:
    return {"format": FORMAT, "moto": version("moto"), "python": f"{sys.version_info.major}.{sys.version_info.minor}"}


def _extra(table: BackendDict) -> dict[str, Any]:
    """What a table of backends keeps beside them (S3: which account owns a bucket's name)."""
    plain = ("backend", "service_name", "_use_boto3_regions", "_additional_regions", "_id")
    return {name: value for name, value in vars(table).items() if name not in plain}


def _restore(tables: dict[str, Any]) -> None:
    for name, saved in tables.items():
        table = backend_table(name)
        for account, regions in saved["accounts"].items():
            for region, backend in regions.items():
                dict.__setitem__(table[account], region, backend)
        vars(table).update(saved["extra"])
