"""From the engine's property encoding to plain data."""

from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf import struct_pb2 as _struct_pb2
from pulumi_policy import deserialize, proxy

from guardrails.decode import plain_properties
from guardrails.node import UNKNOWN

pytestmark = pytest.mark.unit
struct_pb2: Any = _struct_pb2

SIGNATURE = deserialize.SPECIAL_SIG_KEY
SECRET = {SIGNATURE: deserialize.SPECIAL_SECRET_SIG}
ASSET = {SIGNATURE: deserialize.SPECIAL_ASSET_SIG}
ARCHIVE = {SIGNATURE: deserialize.SPECIAL_ARCHIVE_SIG}
OUTPUT = {SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
REFERENCE = {SIGNATURE: "5cf8f73096256a8f31e491e813e4eb8e"}


def plain(value: Any) -> Any:
    return plain_properties(json_format.ParseDict({"x": value}, struct_pb2.Struct()))[0]["x"]


@pytest.mark.parametrize("name", [name for name in vars(proxy) if name.startswith("UNKNOWN_")])
def test_every_kind_of_unknown_is_unknown(name: str) -> None:
    assert plain(getattr(proxy, name)) is UNKNOWN
    assert plain([{"a": getattr(proxy, name)}]) == [{"a": UNKNOWN}]


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (200.0, 200),
        (0.5, 0.5),
        (1e300, int(1e300)),
        (True, True),
        (None, None),
        ("text", "text"),
        ({}, {}),
        ([], []),
        ({**SECRET, "value": {"a": "hidden"}}, {"a": "hidden"}),
        ({**SECRET}, None),
        ({**ASSET, "text": "echo"}, "echo"),
        ({**ASSET, "path": "a.sh"}, "(content of a.sh)"),
        ({**ASSET, "uri": "https://x"}, "(content of https://x)"),
        ({**ASSET, "hash": "0a1b"}, "(content of )"),
        ({**ARCHIVE, "uri": "https://x"}, "(content of https://x)"),
        ({**ARCHIVE, "path": "a.zip"}, "(content of a.zip)"),
        ({**ARCHIVE, "assets": {}}, "(content of )"),
        ({**OUTPUT, "value": 3}, 3),
        ({**OUTPUT}, UNKNOWN),
        ({**REFERENCE, "urn": "u", "id": "i-1"}, "i-1"),
        ({**REFERENCE, "urn": "u"}, UNKNOWN),
        ({SIGNATURE: ["no", "signature"]}, {SIGNATURE: ["no", "signature"]}),
        ({SIGNATURE: "a newer one"}, {SIGNATURE: "a newer one"}),
    ],
)
def test_a_value_is_read_as_the_program_meant_it(sent: Any, read: Any) -> None:
    assert plain(sent) == read
    assert isinstance(plain(sent), type(read))


@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        ("hunter2", {"hunter2"}),
        ({"user": "team", "keys": ["key-1", {"old": "key-0"}]}, {"team", "key-1", "key-0"}),
        ("ab", {"ab"}),
        (1234, {1234}),
        ([0.5, True, None, ""], {0.5}),
    ],
)
def test_every_text_and_number_in_a_secret_is_one(value: Any, secrets: set[str | float]) -> None:
    sent = json_format.ParseDict({"open": "text", "hidden": {**SECRET, "value": value}}, struct_pb2.Struct())
    assert plain_properties(sent)[1] == secrets
