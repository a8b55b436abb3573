"""What a container runs, read from its words."""

import pytest

from guardrails.command import TORCHRUN, invocations, split

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("end", [";", "&&", "||", "|", "&"])
def test_a_launcher_s_options_end_where_its_command_does(end: str) -> None:
    (call,) = invocations(split(f"torchrun train.py {end} report --nnodes=4"), TORCHRUN)
    assert call.arguments == ["train.py"]


def test_a_command_that_nothing_follows_is_read_to_its_end() -> None:
    (call,) = invocations(split("cd /src && /opt/bin/torchrun --nnodes 4 train.py"), TORCHRUN)
    assert (call.launcher, call.number("--nnodes")) == ("torchrun", 4)
