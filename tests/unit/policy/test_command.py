"""What a container runs, read from its words."""

import pytest

from guardrails import shell
from guardrails.command import MPIRUN, RANKS, TORCHRUN, Invocation, base, commands, invocations, parts, place, scripted, split, words
from guardrails.node import Node

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("end", [";", "&&", "||", "|", "&", "\n", " # the last\n", "2>&1 | tee log; "])
def test_a_launcher_s_options_end_where_its_command_does(end: str) -> None:
    (call,) = invocations(scripted(f"torchrun --tee 3 {end} report --nnodes=4"), TORCHRUN)
    assert call.arguments == ["--tee", "3"]


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ("torchrun --standalone train.py --nnodes=4", ["--standalone"]),
        ("torchrun --nnodes 4 -m train --nnodes=8", ["--nnodes", "4", "-m"]),
        ("torchrun -r3 -t 3 train.py -t 1", ["-r3", "-t", "3"]),
        ("accelerate launch --multi_gpu --num_machines 4 train.py --num_machines 8", ["--multi_gpu", "--num_machines", "4"]),
        ("python -m accelerate.commands.launch --num_machines 4 train.py", ["--num_machines", "4"]),
        ("deepspeed --no_ssh --num_nodes=4 train.py --deepspeed", ["--no_ssh", "--num_nodes=4"]),
    ],
)
def test_a_launcher_s_options_end_at_its_program(line: str, own: list[str]) -> None:
    (call,) = invocations(scripted(line), RANKS)
    assert call.arguments == own


def test_a_command_that_nothing_follows_is_read_to_its_end() -> None:
    (call,) = invocations(scripted("cd /src && /opt/bin/torchrun --nnodes 4 train.py"), TORCHRUN)
    assert (call.launcher, call.number("--nnodes")) == ("torchrun", 4)


@pytest.mark.parametrize(
    "line",
    [
        "torchrun x",
        "A=1 B='2 3' exec torchrun x",
        "python3 -u -X dev -m torch.distributed.run x",
        "python3 /opt/conda/bin/torchrun x",
        "! { time torchrun x; }",
        "while true; do torchrun x; done",
        "(cd /src; torchrun x)",
        "srun --ntasks=4 env A=1 torchrun x",
        "mpirun -np 4 torchrun x",
        "timeout -s KILL 3600 torchrun x",
        "uv run torchrun x",
        "./entrypoint.sh torchrun x",
        "bash -eo pipefail -c 'sleep 1; torchrun x'",
        "mpirun -np 4 bash -c 'torchrun x'",
        "eval 'torchrun x'",
        "cat <<'END' > run.sh\ntorchrun x\nEND\nbash run.sh",
    ],
)
def test_a_launcher_is_found_where_a_command_may_be(line: str) -> None:
    assert len(list(invocations(scripted(line), TORCHRUN))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "pip install torchrun",
        "python -m pip install torchrun",
        "python train.py --launcher torchrun",
        "python -c 'import torchrun' torchrun",
        "cd /opt/torchrun",
        "echo 'a; torchrun x'",
        "conda install torchrun",
        "grep -c 'torchrun x' log",
        "true # torchrun x",
        "accelerate config",
    ],
)
def test_a_launcher_s_name_elsewhere_is_no_call(line: str) -> None:
    assert list(invocations(scripted(line), RANKS)) == []


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("mpirun -np 4 -mca a b -x A=1 python3 train.py -np 8", [[("np", ["4"]), ("mca", ["a", "b"]), ("x", ["A=1"])]]),
        ("mpirun --allow-run-as-root --map-by=ppr:8:node x -N 2", [[("allow-run-as-root", []), ("map-by", ["ppr:8:node"])]]),
        ("mpiexec.hydra -genv A=1 -env B=2 -n 8 ./a", [[("genv", ["A=1"]), ("env", ["B=2"]), ("n", ["8"])]]),
        ("mpiexec.hydra -genv A 1 -ppn 8 ./a : -n 4 ./b", [[("genv", ["A", "1"]), ("ppn", ["8"])], [("n", ["4"])]]),
        ("mpirun -unheard of -np 4 x", [[("unheard", ["of"]), ("np", ["4"])]]),
        ("mpirun -unheard bash -c 'x -np 4'", [[("unheard", [])]]),
    ],
)
def test_the_options_of_mpirun_end_at_its_program(line: str, options: list[list[tuple[str, list[str]]]]) -> None:
    (call,) = invocations(scripted(line), MPIRUN)
    assert parts(call) == options


def test_a_script_after_a_shell_is_commands_and_another_text_is_one_word() -> None:
    container = Node({"command": ["bash", "-ec"], "args": ["a 'b c'; d", "e"]})
    assert commands(container) == [["bash", "-ec", "a 'b c'; d", "e"], ["a", "b c"], ["d"]]
    assert commands(Node({"command": ["python3", "-c", "a; torchrun"]})) == [["python3", "-c", "a; torchrun"]]
    assert commands(Node({"args": ["a b; c", "d"]})) == [["a", "b"], ["c"], ["d"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a "b \\"c\\" $d" e\\ f', [["a", 'b "c" $d', "e f"]]),
        ("a$(b | c (d)) `e; f`", [["a$(b | c (d))", "`e; f`"]]),
        ("a#b #c\nd", [["a#b"], ["d"]]),
        ("a > b c 2>&1 &> d", [["a", "c"]]),
        ("a &\nb", [["a"], ["b"]]),
        ("a ${B:-c d} ''", [["a", "${B:-c d}", ""]]),
        ("a <<< b c", [["a", "c"]]),
        ("a <<X > b; c\nit's\nX\nd", [["a"], ["c"], ["d"], ["it's"]]),
        ("a <<-'X' <<Y\n1\n\tX\n2\nY\nd", [["a"], ["d"], ["1"], ["2"]]),
        ("a <<X\nb", [["a"], ["b"]]),
        ("echo it's  on", [["echo", "it's", "on"]]),
        ('a "b $(c "d") e"', [["a", 'b $(c "d") e']]),
    ],
)
def test_a_script_is_read_as_a_shell_reads_it(text: str, expected: list[list[str]]) -> None:
    assert shell.commands(text) == expected


def test_comments_go_and_quoted_hashes_stay() -> None:
    assert shell.without_comments("a#b '# c' # it's d\n# e\nf") == "a#b '# c' \n\nf"


def test_the_words_are_those_of_command_and_arguments_as_a_shell_splits_them() -> None:
    container = Node({"command": ["bash", "-c"], "args": ["torchrun \\\n  --tag '#3 of 4' # the last\n train.py"]})
    assert words(container) == ["bash", "-c", "torchrun", "--tag", "#3 of 4", "train.py"]


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


def test_a_long_script_is_read_in_a_moment() -> None:
    for piece in ("cat <<A\n", "$(", '"$(', "${", "'", "`", "A=\"$(a '", "$(((", "# ", "bash -c 'x y' "):
        assert scripted(piece * 2000) is not None
    names = [f"X{number}" for number in range(2000)]
    assert scripted("\n".join([*(f"cat <<{name}" for name in names), *reversed(names)]))
