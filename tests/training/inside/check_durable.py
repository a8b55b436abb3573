"""Files written in one pass: the content, the digest and the promise, at every size around the borders of buffers and blocks."""

import errno
import os
import time
from pathlib import Path

import pytest
import xxhash

from training import durable
from training.durable import DurableFile, WholeFile, digest_file, write_file

pytestmark = pytest.mark.training

CHUNK = durable._CHUNK_BYTES
SIZES = [0, 1, 4095, 4096, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 4096, 3 * CHUNK + 12345, 9 * CHUNK]


def content_of(size: int) -> bytes:
    return (os.urandom(min(size, 1 << 20)) * (size // (1 << 20) + 1))[:size]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("piece", [1 << 30, 100_003])
def test_what_is_written_is_what_is_read_and_what_the_digest_says(tmp_path: Path, size: int, piece: int) -> None:
    content = content_of(size)
    file = DurableFile(tmp_path / "file")
    for start in range(0, size, piece):
        assert file.write(content[start : start + piece]) == len(content[start : start + piece])
    written = file.close()
    assert (tmp_path / "file").read_bytes() == content
    assert written.size == size
    assert written.digest == xxhash.xxh3_128(content).hexdigest()
    assert digest_file(tmp_path / "file") == written


@pytest.mark.parametrize("refused", ["open", "write"])
def test_storage_without_direct_writes_gets_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    whole_open, whole_pwrite = os.open, os.pwrite
    direct: set[int] = set()

    def open_file(path: Path, flags: int, *mode: int) -> int:
        if flags & os.O_DIRECT and refused == "open":
            raise OSError(errno.EINVAL, "no direct writes here")
        descriptor = whole_open(path, flags, *mode)
        direct.update({descriptor} if flags & os.O_DIRECT else ())
        return descriptor

    def pwrite(descriptor: int, view: memoryview, offset: int) -> int:
        import fcntl

        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            raise OSError(errno.EINVAL, "no direct writes here either")
        return whole_pwrite(descriptor, view, offset)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "pwrite", pwrite)
    content = content_of(3 * CHUNK + 7)
    written = write_file(tmp_path / "file", content)
    assert direct if refused == "write" else not direct
    assert (tmp_path / "file").read_bytes() == content
    assert digest_file(tmp_path / "file") == written


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr(
        os, "pwrite", lambda descriptor, view, offset: whole(descriptor, view[: max(4096, len(view) // 3 // 4096 * 4096)], offset)
    )
    content = content_of(2 * CHUNK + 100)
    write_file(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == content


@pytest.mark.parametrize("size", [10, CHUNK + 1, 20 * CHUNK])
def test_a_failed_write_surfaces_and_leaves_the_buffers_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            file = DurableFile(tmp_path / "file")
            with pytest.raises(OSError, match="no space left"):  # noqa: PT012
                try:
                    file.write(content_of(size))
                    file.close()
                except OSError:
                    file.abandon()
                    raise
    assert durable._buffers().qsize() == durable._BUFFERS, "every buffer must come back"
    write_file(tmp_path / "file", b"well")
    assert (tmp_path / "file").read_bytes() == b"well"


def test_memory_and_gaps_of_any_size_are_filled_in_order_and_all_of_it_is_in_the_digest(tmp_path: Path) -> None:
    content = content_of(30 * CHUNK + 777)
    (tmp_path / "file").write_bytes(content)
    targets = [(10, 100), (110, 0), (110, 3 * CHUNK + 1), (5 * CHUNK, CHUNK), (17 * CHUNK + 3, 12 * CHUNK)]
    memory = [bytearray(size) for _, size in targets]
    with (tmp_path / "file").open("rb") as file, WholeFile(file.fileno()) as whole:
        for (offset, _), target in zip(targets, memory, strict=True):
            whole.skip_to(offset)
            whole.read_into(memoryview(target))
        assert whole.finish() == xxhash.xxh3_128(content).hexdigest()
        assert whole.position == len(content)
    assert memory == [content[offset : offset + size] for offset, size in targets]


@pytest.mark.parametrize("fault", ["short", "error"])
def test_a_read_that_fails_surfaces_and_no_other_touches_the_memory_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    (tmp_path / "file").write_bytes(content_of(20 * CHUNK))
    whole_preadv, running = os.preadv, []

    def preadv(descriptor: int, views: list, offset: int) -> int:
        if offset == 2 * CHUNK:
            if fault == "short":
                return 0
            raise OSError(errno.EIO, "input/output error")
        running.append(offset)
        time.sleep(0.01)
        count = whole_preadv(descriptor, [views[0][: CHUNK // 3 + 1]], offset)
        running.remove(offset)
        return count

    monkeypatch.setattr(os, "preadv", preadv)
    expected = "the file ends 4194304 bytes early" if fault == "short" else "input/output error"
    with (tmp_path / "file").open("rb") as file:
        whole = WholeFile(file.fileno())
        with pytest.raises(OSError, match=expected), whole:
            whole.read_into(memoryview(bytearray(20 * CHUNK)))
        assert not running
