"""torch.distributed.checkpoint over safetensors: DCP plans and reshards, each rank writes one file that any safetensors library can open.

DCP's own file writer serialises every tensor through a buffer of its own and takes no digest. This one hands the tensors' memory to the
checkpoint's writer, which digests and writes it in one pass; and reads whole tensors straight into the memory that they belong in.
"""

import io
import json
import math
import os
import pickle
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, TensorStorageMetadata
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from training.durable import WholeFile, read_at
from training.errors import CheckpointError
from training.read_check import ReadCheck
from training.writer import CheckpointWriter

METADATA = ".metadata"
SUFFIX = ".safetensors"
_HEADER_MULTIPLE = 64
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def save(state: dict[str, Any], directory: Path, writer: CheckpointWriter, group: dist.ProcessGroup | None, *, alone: bool = False) -> None:
    """Write a state dict of tensors, DTensors and plain values. Collective, unless `alone`. Raises CheckpointError naming who failed."""
    with _named_failure("writing"):
        dcp.save(state, storage_writer=_Writer(directory, writer), process_group=group, no_dist=alone)


def load(
    state: dict[str, Any], directory: Path, group: dist.ProcessGroup | None, *, alone: bool = False, check: ReadCheck | None = None
) -> None:
    """Fill a state dict in place from what any number of ranks wrote. Collective, unless `alone`.

    Files that `check` expects are held to their digests on the way; the state is of no use if one does not match. Raises CheckpointError.
    """
    with _named_failure("reading"):
        dcp.load(state, storage_reader=_Reader(directory, check), process_group=group, no_dist=alone)


class FullState:
    """Whole tensors out of a folder that `save` wrote, whatever the ranks and shards that wrote it; read as they are asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        metadata: Metadata = pickle.loads((directory / METADATA).read_bytes())
        self.entries = {name: entry for name, entry in metadata.state_dict_metadata.items() if isinstance(entry, TensorStorageMetadata)}
        """Shapes and dtypes by name."""

    def read(self, names: Iterable[str]) -> dict[str, Tensor]:
        """These tensors, on the CPU; names that the folder does not hold are left out. Raises CheckpointError if it cannot be read."""
        present = {name: self.entries[name] for name in names if name in self.entries}
        tensors = {name: torch.empty(entry.size, dtype=entry.properties.dtype) for name, entry in present.items()}
        load(tensors, self._directory, None, alone=True)
        return tensors


class _Writer(dcp.FileSystemWriter):
    def __init__(self, directory: Path, writer: CheckpointWriter) -> None:
        super().__init__(directory)
        self._directory, self._writer = directory, writer

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        name = f"{plan.storage_data.prefix}0{SUFFIX}"
        items = [(item, _tensor_of(item, planner)) for item in plan.items]
        # Wide types first: each tensor then lies at a multiple of its own element size.
        items.sort(key=lambda pair: -pair[1].element_size())
        future: Future[list[WriteResult]] = Future()
        future.set_result(self._write_items(name, items) if items else [])
        return future

    def _write_items(self, name: str, items: list[tuple[WriteItem, Tensor]]) -> list[WriteResult]:
        header, data_start = _header(items)
        self._writer.write_tensors(self._directory / name, header, [tensor for _, tensor in items])
        results, offset = [], data_start
        for item, tensor in items:
            size = tensor.numel() * tensor.element_size()
            results.append(WriteResult(item.index, size, _StorageInfo(name, offset, size)))
            offset += size
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        metadata.storage_data = {result.index: result.storage_data for rank in results for result in rank}
        metadata.storage_meta = self.storage_meta()
        self._writer.write_bytes(self._directory / METADATA, pickle.dumps(metadata))


class _Reader(dcp.FileSystemReader):
    def __init__(self, directory: Path, check: ReadCheck | None) -> None:
        super().__init__(directory)
        self._directory, self._check = directory, check
        self._tensors: dict[str, TensorStorageMetadata] = {}

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        super().set_up_storage_reader(metadata, is_coordinator, *args, **kwargs)
        self._tensors = {name: entry for name, entry in metadata.state_dict_metadata.items() if isinstance(entry, TensorStorageMetadata)}

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        wanted: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            wanted.setdefault(self._place(item).relative_path, []).append(item)
        for name, items in wanted.items():
            descriptor = os.open(self._directory / name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._read_file(descriptor, self._directory / name, sorted(items, key=lambda item: self._place(item).offset), planner)
            finally:
                os.close(descriptor)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _read_file(self, descriptor: int, path: Path, items: list[ReadItem], planner: LoadPlanner) -> None:
        if self._check and self._check.expects(path):
            items = self._read_checked(descriptor, path, items, planner)
        for item in items:
            self._read_item(descriptor, item, planner)

    def _read_checked(self, descriptor: int, path: Path, items: list[ReadItem], planner: LoadPlanner) -> list[ReadItem]:
        """Read the whole file once, whole tensors into their places; gives what is left to read, now that the file is known to be whole.

        Nothing is parsed on the way: what has to be is among the rest.
        """
        rest: list[ReadItem] = []
        with WholeFile(descriptor) as whole:
            for item in items:
                place = self._place(item)
                target = self._direct_target(item, planner) if place.offset >= whole.position else None
                if target is None:
                    rest.append(item)
                    continue
                whole.skip_to(place.offset)
                whole.read_into(_bytes_of(target))
                planner.commit_tensor(item, target)
            digest = whole.finish()
        assert self._check
        if not self._check.conclude(path, digest):
            raise OSError(f"{path.name}: its content does not match its digest")
        return rest

    def _direct_target(self, item: ReadItem, planner: LoadPlanner) -> Tensor | None:
        """Where a whole stored tensor can be read to as it is; None if it has to be converted, cut or parsed."""
        if item.type == LoadItemType.BYTE_IO:
            return None
        stored = self._tensors[item.storage_index.fqn]
        if tuple(item.lengths) != tuple(_chunk_shape(stored, item.storage_index)):
            return None
        target = planner.resolve_tensor(item).detach()
        return target if _takes_bytes(target, stored.properties.dtype) else None

    def _place(self, item: ReadItem) -> _StorageInfo:
        return self.storage_data[item.storage_index]

    def _read_item(self, descriptor: int, item: ReadItem, planner: LoadPlanner) -> None:
        place = self._place(item)
        if item.type == LoadItemType.BYTE_IO:
            content = bytearray(place.length)
            read_at(descriptor, memoryview(content), place.offset)
            planner.load_bytes(item, io.BytesIO(content))
            return
        target = planner.resolve_tensor(item).detach()
        stored = self._tensors[item.storage_index.fqn]
        _fill(target, descriptor, place.offset, item, _chunk_shape(stored, item.storage_index), stored.properties.dtype)
        planner.commit_tensor(item, target)


def _fill(target: Tensor, descriptor: int, offset: int, item: ReadItem, shape: Sequence[int], dtype: torch.dtype) -> None:
    """Read the wanted part of one stored chunk into its place."""
    start, length = list(item.storage_offsets), list(item.lengths)
    if not shape:
        first, rows = 0, ()
    else:
        # Rows follow each other in the file: only the wanted ones are read, whatever part of them is wanted.
        first, rows = start[0], (length[0], *shape[1:])
    row_bytes = math.prod(shape[1:]) * dtype.itemsize
    is_whole_rows = tuple(length[1:]) == tuple(shape[1:])
    direct = is_whole_rows and _takes_bytes(target, dtype)
    buffer = target if direct else torch.empty(rows, dtype=dtype)
    read_at(descriptor, _bytes_of(buffer), offset + first * row_bytes)
    if direct:
        return
    for dimension in range(1, len(shape)):
        buffer = buffer.narrow(dimension, start[dimension], length[dimension])
    target.copy_(buffer)


def _takes_bytes(target: Tensor, dtype: torch.dtype) -> bool:
    return target.device.type == "cpu" and target.is_contiguous() and target.dtype == dtype


def _bytes_of(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor on the CPU."""
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())


def _chunk_shape(stored: TensorStorageMetadata, index: MetadataIndex) -> Sequence[int]:
    for chunk in stored.chunks:
        if index.offset is None or chunk.offsets == index.offset:
            return chunk.sizes
    raise OSError(f"{index.fqn}: no chunk at {index.offset} in {METADATA}")


def _tensor_of(item: WriteItem, planner: SavePlanner) -> Tensor:
    """An item's tensor; plain values, which DCP has pickled, as bytes."""
    data = planner.resolve_data(item)
    if item.type == WriteItemType.BYTE_IO:
        return torch.frombuffer(bytearray(cast("io.BytesIO", data).getvalue()), dtype=torch.uint8)
    return cast("Tensor", data)


def _header(items: list[tuple[WriteItem, Tensor]]) -> tuple[bytes, int]:
    """The head of a safetensors file, and where the data starts after it."""
    entries, offset = {}, 0
    for item, tensor in items:
        size = tensor.numel() * tensor.element_size()
        entries[_name(item)] = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % _HEADER_MULTIPLE)
    return len(text).to_bytes(8, "little") + text, len(text) + 8


def _name(item: WriteItem) -> str:
    """Name in the file: that of the state dict, and for a part of a tensor where it starts."""
    offset = item.index.offset
    return item.index.fqn + (f"@{','.join(map(str, offset))}" if offset is not None and any(offset) else "")


@contextmanager
def _named_failure(what: str) -> Generator[None]:
    """DCP's own exception is no Exception and spans many lines; say which ranks failed, and why, in one."""
    try:
        yield
    except dcp.CheckpointException as error:
        reasons = "; ".join(f"rank {rank}: {type(problem).__name__}: {problem}" for rank, (problem, _) in sorted(error.failures.items()))
        raise CheckpointError(f"{what} the checkpoint failed on {reasons}") from None
