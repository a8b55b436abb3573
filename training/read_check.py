"""Holding files to their digests while they are read for their content, so that a large file is read once."""

from collections.abc import Iterable
from pathlib import Path

from training.storage import FileRecord


class ReadCheck:
    """The files of one checkpoint that were not verified beforehand, and what reading them has shown on this rank."""

    def __init__(self, directory: Path, records: Iterable[FileRecord]) -> None:
        self._records = {directory / record.path: record for record in records}
        self.confirmed: set[str] = set()
        """Files that were read whole and are what their record says."""
        self.damage: list[str] = []
        """What is wrong with others, one line per file."""

    def expects(self, path: Path) -> bool:
        """Whether reading this file whole would verify it."""
        return path in self._records

    def conclude(self, path: Path, digest: str) -> bool:
        """Compare a file's digest with its record, and take note; whether it is the recorded one."""
        record = self._records[path]
        if digest == record.digest:
            self.confirmed.add(record.path)
        else:
            self.damage.append(f"{record.path}: its content does not match its digest")
        return digest == record.digest
