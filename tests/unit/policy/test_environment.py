"""Values of variables in a container's command line."""

import pytest

from guardrails.environment import expanded
from guardrails.node import Node

pytestmark = pytest.mark.policy

CONTAINER = Node(
    {
        "command": ["bash", "-c", "PATH=$PATH:/opt/x; A=$B; B=$A; OUT=/ckpt/$RUN; exec python3 train.py"],
        "env": [{"name": "RUN", "value": "7"}, {"name": "MANY", "value": "$MORE" * 9}, {"name": "MORE", "value": "$EVEN" * 9}],
    }
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$OUT", "/ckpt/7"),
        ("${OUT}/x", "/ckpt/7/x"),
        ("$(RUN)", "7"),
        ("$NOBODY/$RUN", "$NOBODY/7"),
        ("$PATH", "$PATH"),
        ("plain", "plain"),
        ("$MORE", "$EVEN" * 9),
    ],
)
def test_a_variable_stands_for_what_the_container_sets_it_to(text: str, found: str) -> None:
    assert expanded(CONTAINER, text) == found


def test_two_that_stand_for_each_other_come_to_an_end() -> None:
    assert expanded(CONTAINER, "$A") in ("$A", "$B")


def test_what_is_very_long_is_put_together_no_further() -> None:
    text = "$MANY" * 20_000
    assert expanded(CONTAINER, text) == text
    assert len(expanded(CONTAINER, "$MANY" * 3_000)) < 2_000_000
