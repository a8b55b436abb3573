"""Host memory that holds one checkpoint while it is written behind the training; kept from save to save."""

from collections.abc import Generator

import torch
from torch import Tensor

from training.durable import Bytes

_BLOCK_BYTES = 64 << 20


class Block:
    """A piece of host memory, pinned where there is a GPU."""

    def __init__(self, size: int) -> None:
        self.tensor = torch.empty(size, dtype=torch.uint8, pin_memory=torch.cuda.is_available())
        self.view = memoryview(self.tensor.numpy())


class Staging:
    """Blocks in reserve. They are never given back to the system, as the next save needs as many."""

    def __init__(self, block_bytes: int = _BLOCK_BYTES) -> None:
        self.block_bytes = block_bytes
        self._free: list[Block] = []

    def take(self) -> Block:
        """A block; its content is whatever was in it before."""
        return self._free.pop() if self._free else Block(self.block_bytes)

    def give(self, block: Block) -> None:
        """Return a block for the next use."""
        self._free.append(block)


class StagedFile:
    """A file's content in host memory: written to as to a file, taken out once."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self._size = staging.block_bytes
        self._blocks: list[Block] = []
        self._filled = self._size

    def write(self, data: Bytes) -> int:
        """Append bytes; they are copied before the call returns."""
        source = memoryview(data).cast("B")
        for start, taken in self._pieces(source.nbytes):
            self._blocks[-1].view[self._filled : self._filled + taken] = source[start : start + taken]
            self._filled += taken
        return source.nbytes

    def write_tensor(self, tensor: Tensor) -> None:
        """Append a tensor's content as it is at this moment, from any device. Call `settle` before it is taken out or changed."""
        source = as_bytes(tensor)
        for start, taken in self._pieces(source.numel()):
            self._blocks[-1].tensor[self._filled : self._filled + taken].copy_(source[start : start + taken], non_blocking=True)
            self._filled += taken

    def flush(self) -> None:
        """Nothing; serialisers call it."""

    def drain(self) -> Generator[memoryview]:
        """The content, block by block; each goes back into the reserve once the next one is asked for."""
        while self._blocks:
            block = self._blocks.pop(0)
            yield block.view[: self._size if self._blocks else self._filled]
            self._staging.give(block)

    def _pieces(self, size: int) -> Generator[tuple[int, int]]:
        """Cut an addition at the borders of blocks: start and size of each piece, with a block ready for it."""
        start = 0
        while start < size:
            if self._filled == self._size:
                self._blocks.append(self._staging.take())
                self._filled = 0
            taken = min(size - start, self._size - self._filled)
            yield start, taken
            start += taken


def settle() -> None:
    """Wait until copies from the device have arrived in host memory."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def as_bytes(tensor: Tensor) -> Tensor:
    """The content of a tensor as bytes, [size] of uint8, on its device; no copy if it is contiguous."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
