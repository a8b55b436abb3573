"""Damages a run's checkpoints in every way that storage does, and has each one named: `python mutations.py CHECKPOINTS COUNT SEED`.

Runs in the training environment, in one process; each mutation is undone before the next. Prints the count of each kind, as JSON.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from training import storage


def truncate(path: Path, chance: random.Random, others: list[Path]) -> None:
    """Cut off at any byte."""
    del others
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def zero(path: Path, chance: random.Random, others: list[Path]) -> None:
    """A page, or what there is of it, reads as zeros; at the start where the page was zeros already."""
    del others
    content = bytearray(path.read_bytes())
    start = chance.randrange(len(content))
    if not any(content[start : start + 4096]):
        start = 0
    content[start : start + 4096] = bytes(len(content[start : start + 4096]))
    path.write_bytes(content)


def flip(path: Path, chance: random.Random, others: list[Path]) -> None:
    """One bit anywhere."""
    del others
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def delete(path: Path, chance: random.Random, others: list[Path]) -> None:
    """Gone."""
    del chance, others
    path.unlink()


def swap(path: Path, chance: random.Random, others: list[Path]) -> None:
    """The file of the same name of another step."""
    path.write_bytes(chance.choice(others).read_bytes())


KINDS: dict[str, Callable[[Path, random.Random, list[Path]], None]] = {
    function.__name__: function for function in (truncate, zero, flip, delete, swap)
}


def main() -> None:
    """Run and print."""
    root, count, chance = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    steps = [storage.step_directory(root, step) for step in storage.published_steps(root)]
    assert len(steps) >= 2, "swapping needs another step"
    made: Counter[str] = Counter()
    while made.total() < count:
        checkpoint = chance.choice(steps)
        path = chance.choice(sorted(path for path in checkpoint.rglob("*") if path.is_file()))
        kind = chance.choice(sorted(KINDS))
        name = path.relative_to(checkpoint)
        whole = path.read_bytes()
        KINDS[kind](path, chance, [step / name for step in steps if step != checkpoint and (step / name).is_file()] or [path])
        if path.exists() and path.read_bytes() == whole:
            # Nothing was damaged: the same content in both steps, or zeros where zeros were.
            continue
        found = storage.find_damage(checkpoint)
        path.write_bytes(whole)
        assert len(found) == 1, f"{kind} of {path} gave {found}"
        assert found[0].startswith(f"{name.as_posix()}: "), f"{kind} of {path} gave {found}"
        made[kind] += 1
    assert all(not storage.find_damage(step) for step in steps), "every mutation must have been undone"
    print(json.dumps(made))


if __name__ == "__main__":
    main()
