"""Token shards under an S3 prefix: each is fetched when it is first needed, held against its checksum, and kept in a local cache."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from training.errors import DataError
from training.shard_cache import ShardCache
from training.shard_index import INDEX, ShardFile, ShardIndex
from training.shard_writer import file_record

_ATTEMPTS = 4
_PAUSE_SECONDS = 0.5
# Requests are tried again by the library itself, parts of a download too; our attempts are for what then still went wrong.
_CLIENT = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=10, read_timeout=30, max_pool_connections=16)
_TRANSFER = TransferConfig(max_concurrency=8, preferred_transfer_client="classic")
_FAULTS = (BotoCoreError, Boto3Error, OSError)
# Trying again does not help against these.
_FINAL = {"403", "404", "AccessDenied", "NoSuchBucket", "NoSuchKey", "InvalidAccessKeyId", "SignatureDoesNotMatch", "PermanentRedirect"}


class S3Store:
    """A dataset under s3://bucket/prefix; credentials, region and endpoint are found as boto3 finds them."""

    def __init__(self, url: str, cache: ShardCache) -> None:
        self.where = url.rstrip("/")
        self._bucket, _, prefix = self.where.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._cache = cache
        self._clients: dict[int, Any] = {}
        self._wanted: list[ShardFile] = []
        self._ahead: threading.Thread | None = None

    def read_index(self) -> ShardIndex:
        """See ShardStore."""
        try:
            body = self._client.get_object(Bucket=self._bucket, Key=f"{self._prefix}{INDEX}")["Body"].read()
        except ClientError as error:
            hint = "; name a prefix that a folder of training.tokenize was copied to" if _code(error) in _FINAL else ""
            raise DataError(f"data.shards: {self.where}/{INDEX} cannot be read ({error}){hint}") from None
        except _FAULTS as error:
            raise DataError(f"data.shards: {self.where}/{INDEX} cannot be read ({error})") from None
        return ShardIndex.from_json(body.decode("utf-8", errors="replace"), f"{self.where}/{INDEX}")

    def path(self, file: ShardFile) -> Path:
        """See ShardStore."""
        return self._cache.get(file, lambda path: self._fetch(file, path))

    def prepare(self, files: list[ShardFile]) -> None:
        """See ShardStore. One thread per process; what it cannot fetch is fetched, or named, when it is needed."""
        self._wanted = files
        if self._ahead is None or not self._ahead.is_alive():
            self._ahead = threading.Thread(target=self._prepare, daemon=True)
            self._ahead.start()

    def find_damage(self, files: list[ShardFile], *, contents: bool) -> list[str]:
        """See ShardStore. Sizes alone: contents are checked whenever a shard is fetched."""
        del contents
        if not files:
            return []
        try:
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
            sizes = {item["Key"].removeprefix(self._prefix): item["Size"] for page in pages for item in page.get("Contents", [])}
        except (*_FAULTS, ClientError) as error:
            return [f"{self.where}: cannot be listed ({error})"]
        missing = [f"{self.where}/{file.path}: missing" for file in files if file.path not in sizes]
        known = [(file, sizes[file.path]) for file in files if file.path in sizes]
        return missing + [f"{self.where}/{file.path}: {size} bytes in place of {file.size}" for file, size in known if size != file.size]

    @property
    def _client(self) -> Any:
        """A client of this process: connections do not survive a fork."""
        if os.getpid() not in self._clients:
            self._clients[os.getpid()] = Session().client("s3", config=_CLIENT)
        return self._clients[os.getpid()]

    def _prepare(self) -> None:
        files: list[ShardFile] = []
        while files is not self._wanted:
            files = self._wanted
            for file in files:
                with suppress(DataError, OSError):
                    self._cache.prepare(file, lambda path, file=file: self._fetch(file, path))
                if files is not self._wanted:
                    break

    def _fetch(self, file: ShardFile, path: Path) -> None:
        """Download until the content is right. Raises DataError naming the object and why it never was."""
        for attempt in range(_ATTEMPTS):
            time.sleep(_PAUSE_SECONDS * attempt)
            problem = self._download(file, path)
            if problem is None:
                return
        raise DataError(f"{self.where}/{file.path}: not fetched in {_ATTEMPTS} attempts ({problem})")

    def _download(self, file: ShardFile, path: Path) -> str | None:
        """Download once; gives what went wrong. Raises DataError for what will go wrong again."""
        try:
            with path.open("r+b") as target:
                self._client.download_fileobj(self._bucket, f"{self._prefix}{file.path}", target, Config=_TRANSFER)
        except ClientError as error:
            if _code(error) in _FINAL:
                raise DataError(f"{self.where}/{file.path}: cannot be fetched ({error})") from None
            return str(error)
        except _FAULTS as error:
            return str(error)
        found = file_record(path)
        if (found.size, found.digest) != (file.size, file.digest):
            return f"its content does not match its checksum in the index, {found.size} bytes where it says {file.size}"
        return None


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")
