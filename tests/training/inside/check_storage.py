"""The checkpoint folder's promises, on a real disk: whole or not there, and every kind of damage has a name."""

from pathlib import Path

import pytest

from training import storage

pytestmark = pytest.mark.training


def publish(root: Path, step: int, files: dict[str, bytes]) -> Path:
    """A published checkpoint with these files."""
    directory = storage.saving_directory(root, step)
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    storage.write_manifest(directory, step, [storage.record_file(directory, directory / name) for name in files])
    target = storage.step_directory(root, step)
    storage.publish(directory, target)
    return target


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return publish(tmp_path, 20, {"info.json": b"{}", "engine/weights": bytes(range(256)) * 8, "engine/empty": b""})


def test_a_published_checkpoint_has_no_damage(checkpoint: Path) -> None:
    assert storage.find_damage(checkpoint) == []


@pytest.mark.parametrize(
    ("name", "damage", "expected"),
    [
        ("engine/weights", lambda path: path.write_bytes(path.read_bytes()[:-1]), "engine/weights: 2047 bytes in place of 2048"),
        ("engine/weights", lambda path: path.write_bytes(b""), "engine/weights: 0 bytes in place of 2048"),
        ("engine/weights", lambda path: path.write_bytes(bytes(2048)), "engine/weights: its content does not match its digest"),
        ("engine/weights", lambda path: path.write_bytes(path.read_bytes() + b"x"), "engine/weights: 2049 bytes in place of 2048"),
        ("engine/weights", lambda path: path.unlink(), "engine/weights: missing"),
        ("engine/empty", lambda path: path.unlink(), "engine/empty: missing"),
        ("info.json", lambda path: path.write_bytes(b"[]"), "info.json: its content does not match its digest"),
        ("manifest.json", lambda path: path.unlink(), "manifest.json: missing"),
        ("manifest.json", lambda path: path.write_bytes(b""), "manifest.json: unreadable"),
        ("manifest.json", lambda path: path.write_text(path.read_text()[: path.stat().st_size // 2]), "manifest.json: unreadable"),
        (
            "manifest.json",
            lambda path: path.write_text(path.read_text().replace('"size": 2048', '"size": 2049')),
            "manifest.json: its content does not match its own digest",
        ),
    ],
)
def test_damage_is_named(checkpoint: Path, name: str, damage, expected: str) -> None:
    damage(checkpoint / name)
    found = storage.find_damage(checkpoint)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_every_single_flipped_bit_of_a_small_file_is_found(checkpoint: Path) -> None:
    path = checkpoint / "info.json"
    whole = path.read_bytes()
    for bit in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(changed))
        assert storage.find_damage(checkpoint), f"bit {bit} went unnoticed"


def test_a_checkpoint_under_another_steps_name_is_damaged(tmp_path: Path, checkpoint: Path) -> None:
    checkpoint.rename(storage.step_directory(tmp_path, 30))
    assert storage.find_damage(storage.step_directory(tmp_path, 30)) == ["manifest.json: it belongs to step 20"]


def test_files_swapped_between_steps_are_found(tmp_path: Path, checkpoint: Path) -> None:
    other = publish(tmp_path, 30, {"engine/weights": bytes(2048)})
    (other / "engine/weights").write_bytes((checkpoint / "engine/weights").read_bytes())
    assert storage.find_damage(other) == ["engine/weights: its content does not match its digest"]


def test_readers_that_share_the_work_find_what_one_finds(checkpoint: Path) -> None:
    (checkpoint / "engine/weights").write_bytes(b"")
    (checkpoint / "info.json").unlink()
    shared = [damage for part in range(2) for damage in storage.find_damage(checkpoint, part=part, parts=2)]
    assert sorted(shared) == sorted(storage.find_damage(checkpoint))


def test_unfinished_folders_are_neither_listed_nor_kept(tmp_path: Path, checkpoint: Path) -> None:
    unfinished = storage.saving_directory(tmp_path, 40)
    (unfinished / "half").write_bytes(b"x")
    assert storage.published_steps(tmp_path) == [20]
    assert storage.clear_leftovers(tmp_path) == [unfinished.name]
    assert checkpoint.is_dir()
    assert not unfinished.exists()


def test_publishing_over_a_damaged_step_keeps_the_damaged_one_aside(tmp_path: Path, checkpoint: Path) -> None:
    (checkpoint / "info.json").unlink()
    publish(tmp_path, 20, {"info.json": b"new"})
    assert storage.find_damage(checkpoint) == []
    assert len(list(tmp_path.glob("step-000000020.damaged-*"))) == 1
    assert storage.published_steps(tmp_path) == [20]


def test_a_condemned_checkpoint_is_never_read_and_cleared_at_the_next_start(tmp_path: Path, checkpoint: Path) -> None:
    condemned = storage.condemn(checkpoint)
    assert storage.published_steps(tmp_path) == []
    assert storage.clear_leftovers(tmp_path) == [condemned.name]
    assert list(tmp_path.iterdir()) == []


def test_steps_are_newest_first_by_number(tmp_path: Path) -> None:
    for step in (9, 1_000_000_000, 10):
        publish(tmp_path, step, {})
    assert storage.published_steps(tmp_path) == [1_000_000_000, 10, 9]
