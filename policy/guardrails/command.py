"""What a container runs: its words, the launcher among them, and the launcher's options."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from guardrails.node import Node

TORCHRUN = frozenset({"torchrun", "torch.distributed.run", "torch.distributed.launch"})
MPIRUN = frozenset({"mpirun", "mpiexec", "orterun"})
DEEPSPEED = frozenset({"deepspeed"})


def words(container: Node) -> list[str]:
    """Command and arguments as words; a shell's command line is split as the shell would."""
    found: list[str] = []
    for node in (*container.at("command").elements(), *container.at("args").elements()):
        found += split(node.text())
    return found


def split(text: str) -> list[str]:
    """The words of a command line; one that the shell itself would not take is split at its blanks."""
    if not re.search(r"\s", text):
        return [text]
    try:
        return shlex.split(text.replace("\\\n", " "))
    except ValueError:
        return text.split()


def place(container: Node) -> Node:
    """Where the container says what it runs: `command`, or `args` where there is no command."""
    return container.at("command") if container.at("command").present else container.at("args")


def base(word: str) -> str:
    """A program's name without its folder; of a module named after its launcher (`tools.torchrun`), that launcher."""
    name = word.rpartition("/")[2]
    return "torchrun" if name.endswith(".torchrun") else name


@dataclass(frozen=True)
class Invocation:
    """One launcher and the words after it, up to the end of its command."""

    launcher: str
    arguments: Sequence[str]

    def option(self, *names: str) -> str | None:
        """The value of `--name value` or `--name=value`, dashes and underscores alike; empty where it has none, None where it is absent.

        Of several the last counts, as for argparse.
        """
        wanted, found = {_plain(name) for name in names}, None
        for index, word in enumerate(self.arguments):
            name, equals, joined = word.partition("=")
            if word.startswith("-") and _plain(name) in wanted:
                following = self.arguments[index + 1] if index + 1 < len(self.arguments) else ""
                found = joined if equals else following
        return found

    def number(self, *names: str) -> int | None:
        """The option as a whole number; None where it is absent or no number (a variable, a word such as `gpu`)."""
        value = self.option(*names)
        return int(value) if value is not None and re.fullmatch(r"[0-9]{1,9}", value) else None

    def flag(self, *names: str) -> bool:
        """Whether the option is given at all."""
        return self.option(*names) is not None


def invocations(container_words: Sequence[str], launchers: frozenset[str]) -> Iterator[Invocation]:
    """Each call of one of `launchers` among the words."""
    ends = {";", "&&", "||", "|", "&"}
    for index, word in enumerate(container_words):
        if base(word) in launchers:
            rest = container_words[index + 1 :]
            stop = next((position for position, other in enumerate(rest) if other in ends), None)
            yield Invocation(base(word), rest[:stop])


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-")
