"""A run's checkpoints in S3: s3://bucket/prefix/<run>/step-000000020/<file>, whole once its manifest is there, which goes up last.

Every object carries a checksum that S3 computes over what it received; it is read back and compared. An interrupted upload goes on with the
parts that are there already. Credentials, region and endpoint come from where the AWS SDK looks for them.
"""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import boto3
import xxhash
from awscrt import checksums
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from training import storage
from training.durable import DurableFile
from training.errors import CheckpointError
from training.storage import FileRecord

PART_BYTES = 64 << 20
_IN_FLIGHT = 4
_ATTEMPTS = 4
_URL = re.compile(r"s3://(?P<bucket>[^/]+)(?:/(?P<prefix>.*?))?/?")
# Width in bytes, and the function that goes on from a former value.
_CHECKSUMS: dict[str, tuple[int, Callable[[bytes, int], int]]] = {
    "CRC64NVME": (8, cast("Callable[[bytes, int], int]", checksums.crc64nvme)),
    "CRC32": (4, zlib.crc32),
}


class ObjectStore:
    """One run's checkpoints in a bucket. Methods raise CheckpointError naming the object and the reason, after retries."""

    def __init__(self, url: str, run: str, checksum: str, *, part_bytes: int = PART_BYTES, client: Any = None) -> None:
        match = _URL.fullmatch(url)
        if not match:
            raise CheckpointError(f"{url} is not s3://bucket/prefix")
        self._bucket = match["bucket"]
        self._prefix = "/".join(part for part in (match["prefix"], run) if part)
        self._algorithm, (self._width, self._crc) = checksum, _CHECKSUMS[checksum]
        self._field = f"Checksum{checksum}"
        self._part_bytes = part_bytes
        self._s3 = client or boto3.client("s3", config=Config(retries={"mode": "standard", "total_max_attempts": 8}))

    def steps(self) -> list[int]:
        """Steps that are there whole, newest first."""
        with self._named(self._prefix):
            pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{self._prefix}/")
            names = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        pattern = re.compile(rf"{re.escape(self._prefix)}/step-(\d{{9,}})/{storage.MANIFEST}")
        return sorted((int(match[1]) for name in names if (match := pattern.fullmatch(name))), reverse=True)

    def read_manifest(self, step: int) -> bytes:
        """The manifest of a step, as it was written."""
        key = self._key(step, storage.MANIFEST)
        with self._named(key):
            return self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()

    def upload(self, directory: Path, step: int, records: Iterable[FileRecord]) -> None:
        """Send files of a local checkpoint, unless they are there already. Never sends one that differs from its record."""
        for record in records:
            self._upload_file(directory / record.path, self._key(step, record.path), record.digest)

    def publish(self, directory: Path, step: int) -> None:
        """Send the manifest, and with it make the step whole; all its files must be there."""
        self._upload_file(directory / storage.MANIFEST, self._key(step, storage.MANIFEST), None)

    def download(self, directory: Path, step: int, records: Iterable[FileRecord]) -> None:
        """Fetch files into a local folder, durably, and hold each to its record."""
        for record in records:
            self._download_file(self._key(step, record.path), directory / record.path, record)

    def _upload_file(self, path: Path, key: str, digest: str | None) -> None:
        size = path.stat().st_size
        with self._named(key):
            checksum = self._checksum_of(path, digest)
            for _ in range(_ATTEMPTS):
                if self._stored(key) == (size, checksum):
                    return
                if size <= self._part_bytes:
                    self._s3.put_object(Bucket=self._bucket, Key=key, Body=path.read_bytes(), **self._declared(checksum))
                else:
                    self._upload_parts(path, key, size, checksum)
        if self._stored(key) != (size, checksum):
            raise CheckpointError(f"{self._where(key)}: what S3 holds is not what was sent, {_ATTEMPTS} times")

    def _upload_parts(self, path: Path, key: str, size: int, checksum: str) -> None:
        upload, present = self._begin_or_go_on(key)
        parts: list[dict[str, Any]] = []
        with ThreadPoolExecutor(_IN_FLIGHT, thread_name_prefix="upload") as pool:
            pending: list[Future[dict[str, Any]]] = []
            for number, data in enumerate(_pieces(path, self._part_bytes), start=1):
                pending.append(pool.submit(self._send_part, key, upload, number, data, present.get(number)))
                if len(pending) >= _IN_FLIGHT:
                    parts.append(pending.pop(0).result())
            parts += [future.result() for future in pending]
        self._s3.complete_multipart_upload(
            Bucket=self._bucket,
            Key=key,
            UploadId=upload,
            MultipartUpload={"Parts": parts},
            MpuObjectSize=size,
            ChecksumType="FULL_OBJECT",
            **{self._field: checksum},
        )

    def _begin_or_go_on(self, key: str) -> tuple[str, dict[int, dict[str, Any]]]:
        """Identifier of an upload, and the parts that an interrupted one has sent, by number."""
        pages = self._s3.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=key)
        uploads = [entry for page in pages for entry in page.get("Uploads", ()) if entry["Key"] == key]
        if not uploads:
            made = self._s3.create_multipart_upload(
                Bucket=self._bucket, Key=key, ChecksumAlgorithm=self._algorithm, ChecksumType="FULL_OBJECT"
            )
            return made["UploadId"], {}
        newest = max(uploads, key=lambda entry: entry["Initiated"])["UploadId"]
        listing = self._s3.get_paginator("list_parts").paginate(Bucket=self._bucket, Key=key, UploadId=newest)
        return newest, {part["PartNumber"]: part for page in listing for part in page.get("Parts", ())}

    def _send_part(self, key: str, upload: str, number: int, data: bytes, present: dict[str, Any] | None) -> dict[str, Any]:
        checksum = self._encoded(self._crc(data, 0))
        if present and self._is_same(present, data, checksum):
            return {"PartNumber": number, "ETag": present["ETag"], self._field: checksum}
        sent = self._s3.upload_part(Bucket=self._bucket, Key=key, UploadId=upload, PartNumber=number, Body=data, **self._declared(checksum))
        return {"PartNumber": number, "ETag": sent["ETag"], self._field: checksum}

    def _is_same(self, present: dict[str, Any], data: bytes, checksum: str) -> bool:
        """Whether a part that is there holds this data: by the checksum that S3 lists, or else by its entity tag, where that is an MD5."""
        tag = hashlib.md5(data, usedforsecurity=False).hexdigest()
        listed = present.get(self._field)
        return present["Size"] == len(data) and (listed == checksum if listed else present["ETag"].strip('"') == tag)

    def _stored(self, key: str) -> tuple[int, str | None] | None:
        """Size and checksum of an object as S3 computed it; None if there is no object."""
        try:
            found = self._s3.get_object_attributes(Bucket=self._bucket, Key=key, ObjectAttributes=["Checksum", "ObjectSize"])
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "404", "NotFound"):
                return None
            raise
        return found["ObjectSize"], (found.get("Checksum") or {}).get(self._field)

    def _checksum_of(self, path: Path, digest: str | None) -> str:
        """The object's checksum; the same read holds the file to its digest, so that damage is not carried into the bucket."""
        value, own = 0, xxhash.xxh3_128()
        for piece in _pieces(path, 4 << 20):
            value = self._crc(piece, value)
            own.update(piece)
        if digest is not None and own.hexdigest() != digest:
            raise CheckpointError(f"{path}: its content does not match its digest; it is not uploaded")
        return self._encoded(value)

    def _download_file(self, key: str, path: Path, record: FileRecord) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._named(key):
            for _ in range(_ATTEMPTS):
                file = DurableFile(path)
                try:
                    for start in range(0, record.size, self._part_bytes):
                        file.write(self._fetch(key, start, min(record.size, start + self._part_bytes) - 1))
                    if file.close().digest == record.digest:
                        return
                finally:
                    file.abandon()
        raise CheckpointError(f"{self._where(key)}: its content does not match its digest, {_ATTEMPTS} times")

    def _fetch(self, key: str, first: int, last: int) -> bytes:
        """A range of an object; the SDK retries requests, but not bodies that break off."""
        attempt = 1
        while True:
            try:
                return self._s3.get_object(Bucket=self._bucket, Key=key, Range=f"bytes={first}-{last}")["Body"].read()
            except BotoCoreError:
                if attempt == _ATTEMPTS:
                    raise
                attempt += 1

    def _declared(self, checksum: str) -> dict[str, str]:
        return {"ChecksumAlgorithm": self._algorithm, self._field: checksum}

    def _encoded(self, value: int) -> str:
        return base64.b64encode(value.to_bytes(self._width, "big")).decode()

    def _key(self, step: int, name: str) -> str:
        return f"{self._prefix}/{storage.step_directory(Path(), step).name}/{name}"

    def _where(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"

    @contextmanager
    def _named(self, key: str) -> Generator[None]:
        try:
            yield
        except (BotoCoreError, ClientError, OSError) as error:
            raise CheckpointError(f"{self._where(key)}: {error}") from error


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(size):
            yield piece
