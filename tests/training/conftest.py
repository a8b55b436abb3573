"""One corpus for the whole tier: small, of real text, and the same on every machine."""

from pathlib import Path

import pytest

from tests.training.job import Job
from tests.training.rank import REPOSITORY


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This package's own sources as they are: real text that needs no download."""
    path = tmp_path_factory.mktemp("corpus") / "text"
    path.write_bytes(b"".join(file.read_bytes() for file in sorted((REPOSITORY / "training").glob("*.py")))[:80_000])
    return path


@pytest.fixture
def job(tmp_path: Path, corpus: Path) -> Job:
    """A run of one rank on that corpus."""
    return Job(tmp_path / "runs", {"data": {"files": [str(corpus)]}})
