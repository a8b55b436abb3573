"""What several checks share: an S3 server, made when the first of them asks."""

from collections.abc import Generator

import pytest

from tests.training.object_store import s3_server


@pytest.fixture(scope="session")
def s3() -> Generator[str]:
    """Address of an S3 server, empty at first."""
    with s3_server() as address:
        yield address
