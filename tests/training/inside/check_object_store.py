"""The checksums that S3 is told: the published check values of both, so that a store which knows them agrees."""

import pytest

from training.errors import CheckpointError
from training.object_store import ObjectStore

pytestmark = pytest.mark.training


@pytest.mark.parametrize(("checksum", "expected"), [("CRC64NVME", "rosUhgp5mIg="), ("CRC32", "y/Q5Jg==")])
def test_checksums_have_their_published_check_values(checksum: str, expected: str) -> None:
    """Of the text 123456789: AE8B14860A799888 and CBF43926, big-endian in base64; also when taken piece by piece."""
    store = ObjectStore("s3://bucket/prefix", "run", checksum, client=object())
    assert store._encoded(store._crc(b"123456789", 0)) == expected
    assert store._encoded(store._crc(b"6789", store._crc(b"12345", 0))) == expected


def test_another_kind_of_address_is_refused() -> None:
    with pytest.raises(CheckpointError, match="https://bucket is not s3://bucket/prefix"):
        ObjectStore("https://bucket", "run", "CRC32", client=object())
