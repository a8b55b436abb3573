"""Where token shards lie: a folder that every rank sees (Lustre, EFS, a local disk), or an S3 prefix."""

from pathlib import Path
from typing import Protocol

from training.config import S3_SCHEME, DataConfig
from training.errors import DataError
from training.shard_cache import ShardCache
from training.shard_index import INDEX, ShardFile, ShardIndex
from training.shard_writer import file_record


class ShardStore(Protocol):
    """Access to the files of one dataset."""

    where: str
    """The folder or URL, for messages."""

    def read_index(self) -> ShardIndex:
        """The index. Raises DataError."""
        ...

    def path(self, file: ShardFile) -> Path:
        """A local path with this content, made near first if it is far. Raises DataError naming the file."""
        ...

    def prepare(self, files: list[ShardFile]) -> None:
        """Start to make these near, in the background."""
        ...

    def find_damage(self, files: list[ShardFile], *, contents: bool) -> list[str]:
        """What differs from the index, one line per file: sizes, and contents too where the caller asks for them."""
        ...


class FolderStore:
    """A dataset in a folder."""

    def __init__(self, folder: str) -> None:
        self.where = folder
        self._folder = Path(folder)

    def read_index(self) -> ShardIndex:
        """See ShardStore."""
        path = self._folder / INDEX
        try:
            return ShardIndex.from_json(path.read_text(encoding="utf-8"), str(path))
        except FileNotFoundError:
            raise DataError(f"data.shards: {self.where} has no {INDEX}; name a folder that training.tokenize has made") from None
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: unreadable ({error})") from None

    def path(self, file: ShardFile) -> Path:
        """See ShardStore."""
        return self._folder / file.path

    def prepare(self, files: list[ShardFile]) -> None:
        """See ShardStore. A folder is as near as it gets."""

    def find_damage(self, files: list[ShardFile], *, contents: bool) -> list[str]:
        """See ShardStore."""
        return [damage for file in files if (damage := self._damage(file, contents))]

    def _damage(self, file: ShardFile, contents: bool) -> str | None:
        path = self.path(file)
        try:
            size = path.stat().st_size
            if size != file.size:
                return f"{path}: {size} bytes in place of {file.size}"
            if contents and file_record(path).digest != file.digest:
                return f"{path}: its content does not match its checksum in the index"
        except FileNotFoundError:
            return f"{path}: missing"
        except (OSError, DataError) as error:
            return f"{path}: unreadable ({error})"
        return None


def open_store(config: DataConfig) -> ShardStore:
    """The store that data.shards names. Raises DataError."""
    assert config.shards is not None
    if not config.shards.startswith(S3_SCHEME):
        return FolderStore(config.shards)
    # Imported here: most runs do without S3, and the library takes its time.
    from training.s3_store import S3Store

    return S3Store(config.shards, ShardCache(Path(config.cache_directory), int(config.cache_gb * 1e9)))
