"""The pack's facts of custom resources are those of the definitions in the pinned modules."""

import json

import pytest

from local.errors import LocalStackError
from local.toolchain.crds import FACTS, facts

pytestmark = pytest.mark.engine


def test_the_pack_knows_the_definitions_of_the_pinned_modules() -> None:
    try:
        found = facts()
    except LocalStackError as error:
        pytest.skip(f"a module can't be had here: {error}")
    assert json.loads(FACTS.read_text()) == found, "run `python -m local.toolchain.crds`"
