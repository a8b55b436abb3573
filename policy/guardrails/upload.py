"""Whether a container sends what lies in a folder to a store elsewhere, as far as its words and variables say."""

import re
from collections.abc import Iterator, Sequence

from guardrails import command
from guardrails.node import Node

_UPLOADS = re.compile(r"(?<![a-z])upload", re.IGNORECASE)
_SAVES = re.compile(r"upload|save|checkpoint|ckpt|output|remote|backup", re.IGNORECASE)
_PROGRAM = re.compile(r"(?<![a-z])upload(er)?(?![a-z/])", re.IGNORECASE)
_CALL = re.compile(r"(?<![a-z])upload\w*\(", re.IGNORECASE)
_SETTING = re.compile(r"\+*[A-Za-z_][\w.-]*=")
# What such a setting names is read, or it turns uploads off.
_NOT = frozenset({"load", "resume", "restore", "from", "init", "initial", "input", "pretrained", "no", "not", "disable", "skip"})
_OFF = frozenset({"", "0", "false", "no", "none", "off", "null"})
# When Hugging Face's Trainer sends to the hub; otherwise the model alone, at the end.
_AT_EACH_SAVE = frozenset({"every_save", "checkpoint", "all_checkpoints"})
_STORE = re.compile(r"s3://|\$\{?\w*(s3|upload|bucket|remote|backup)", re.IGNORECASE)
_COPIES = frozenset({"sync", "rsync", "cp", "copy", "mv", "move", "put"})
_ELSEWHERE = re.compile(r"[A-Za-z][\w.+-]*:\S|\$\{?\w*(s3|upload|bucket|remote|backup)", re.IGNORECASE)
_LOCAL = ("/", ".", "~", "$")


def uploads(container: Node, folder: str) -> bool:
    """Whether the container has an upload set, calls a program of that name, or copies `folder` or a part of it elsewhere."""
    return any(_sends_by(each, folder) for each in command.commands(container)) or _by_variable(container)


def _sends_by(words: Sequence[str], folder: str) -> bool:
    # A word with blanks is a script, and among the commands itself, or a text of Python.
    if any(len(word.split()) > 1 and _CALL.search(word) for word in words):
        return True
    plain = [word for word in words if len(word.split()) == 1]
    return _by_setting(plain) or _by_hub(plain) or _by_program(plain) or any(_overlap(source, folder) for source in _copied(plain))


def _by_setting(words: Sequence[str]) -> bool:
    return any(_sends(name, value) for name, value in _settings(words))


def _settings(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each option and setting among the words, and its value."""
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word.startswith("-") and not equals:
            following = words[index + 1] if index + 1 < len(words) else "-"
            value = "true" if following.startswith("-") else following
        elif not word.startswith("-") and not _SETTING.match(word):
            continue
        yield name, value


def _by_hub(words: Sequence[str]) -> bool:
    """Whether Hugging Face's Trainer is told to send each save to the hub, as it does by default where it sends anything."""
    told = {name.lstrip("-").replace("-", "_"): value.lower() for name, value in _settings(words)}
    return told.get("push_to_hub", "") not in _OFF and told.get("hub_strategy", "every_save") in _AT_EACH_SAVE


def _sends(name: str, value: str) -> bool:
    if _NOT & set(re.split(r"[^a-z]+", name.lower())):
        return False
    if _UPLOADS.search(name):
        return value.lower() not in _OFF
    return bool(_SAVES.search(name) and _STORE.match(value))


def _by_program(words: Sequence[str]) -> bool:
    """A word such as upload.py or `hf upload`; what follows a long option is its value."""
    for before, word in zip(("", *words), words, strict=False):
        plain = not word.startswith("-") and not _SETTING.match(word)
        if plain and not before.startswith("--") and _PROGRAM.search(word):
            return True
    return False


def _copied(words: Sequence[str]) -> Iterator[str]:
    """What `aws s3 sync` and the like copy from here to elsewhere; a copy that ends here brings data in."""
    for index, word in enumerate(words):
        if command.base(word) not in _COPIES:
            continue
        places = [each for each in words[index + 1 :] if not each.startswith("-")]
        for here, there, after in zip(places, places[1:], [*places[2:], ""], strict=False):
            if _ELSEWHERE.match(there) and not _ELSEWHERE.match(here) and not after.startswith(_LOCAL):
                yield here


def _overlap(source: str, folder: str) -> bool:
    """Whether one lies in the other; what is no full path may be any."""
    if not source.startswith("/"):
        return True
    one, other = (f"{path.partition('*')[0].rstrip('/')}/" for path in (source, folder))
    return one.startswith(other) or other.startswith(one)


def _by_variable(container: Node) -> bool:
    for variable in container.at("env").elements():
        name = variable.at("name").text()
        if _SAVES.search(name) and _sends(name, variable.at("value").text()):
            return True
    return False
