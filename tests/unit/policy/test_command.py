"""What a container runs, read from its words."""

import pytest

from guardrails.command import TORCHRUN, Invocation, base, invocations, place, split, words
from guardrails.node import Node

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("end", [";", "&&", "||", "|", "&"])
def test_a_launcher_s_options_end_where_its_command_does(end: str) -> None:
    (call,) = invocations(split(f"torchrun train.py {end} report --nnodes=4"), TORCHRUN)
    assert call.arguments == ["train.py"]


def test_a_command_that_nothing_follows_is_read_to_its_end() -> None:
    (call,) = invocations(split("cd /src && /opt/bin/torchrun --nnodes 4 train.py"), TORCHRUN)
    assert (call.launcher, call.number("--nnodes")) == ("torchrun", 4)


def test_the_words_are_those_of_command_and_arguments_as_a_shell_splits_them() -> None:
    container = Node({"command": ["bash", "-c"], "args": ["torchrun \\\n  --tag '#3 of 4' # the last\n train.py"]})
    assert words(container) == ["bash", "-c", "torchrun", "--tag", "#3 of 4", "#", "the", "last", "train.py"]


def test_what_the_shell_would_not_take_is_split_at_its_blanks() -> None:
    assert split("echo it's  on") == ["echo", "it's", "on"]


@pytest.mark.parametrize(("container", "path"), [({"command": ["a"], "args": ["b"]}, "command"), ({"args": ["b"]}, "args")])
def test_a_finding_is_shown_at_the_command_or_else_the_arguments(container: dict, path: str) -> None:
    assert place(Node(container)).path == path


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("/opt/conda/bin/torchrun", "torchrun"),
        ("torchrun", "torchrun"),
        ("tools.torchrun", "torchrun"),
        ("torch.distributed.run", "torch.distributed.run"),
    ],
)
def test_a_program_is_known_by_its_own_name(word: str, name: str) -> None:
    assert base(word) == name


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["--rdzv_endpoint", "a:1"], "a:1"),
        (["--rdzv-endpoint=a:1"], "a:1"),
        (["--rdzv-endpoint"], ""),
        (["rdzv-endpoint", "a:1"], None),
        (["--rdzv-endpoint=b:1", "--rdzv_endpoint", "a:1"], "a:1"),
    ],
)
def test_an_option_is_read_with_a_blank_or_an_equals_sign(arguments: list[str], value: str | None) -> None:
    assert Invocation("torchrun", arguments).option("--rdzv-endpoint") == value
