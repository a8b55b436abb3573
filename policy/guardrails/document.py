"""YAML and JSON text as plain data, whatever somebody wrote there."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import hjson
import yaml

_MOST_CHARACTERS = 8_000_000
_MOST_VALUES = 400_000
_DEEPEST = 64


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Reads YAML as the Go library of Kubernetes does, where PyYAML keeps to YAML 1.1 more closely."""


# `=` is a text, a number may have an exponent without a point or a sign, and a time is a text.
Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))
Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"), list("-+.0123456789")
)


class DocumentError(Exception):
    """The text can't be read. `line` is where, counted from 1, as far as it is known."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class DuplicateError(DocumentError):
    """A key stands twice in one mapping: readers take the one or the other, or refuse the text."""


def read_yaml(text: str) -> list[Any]:
    """The documents of a YAML text, without the empty ones. Raises DocumentError."""
    if len(text) > _MOST_CHARACTERS:
        raise DocumentError(f"the text has {len(text)} characters; at most {_MOST_CHARACTERS} are read")
    try:
        parsed = [document for document in yaml.load_all(text, Loader=Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise DocumentError(f"no valid YAML: {error.problem or error.context or error}", _line(text, mark)) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise DocumentError(f"no valid YAML: {' '.join(str(error).split())[:200]}") from None
    return [_Plain().value(document) for document in parsed]


def read_json(text: str, *, once: bool = False) -> Any:
    """A JSON text as plain data; with `once` no key may stand twice in a mapping. Raises DocumentError."""
    try:
        return plain(json.loads(text, object_pairs_hook=unique if once else None))
    except json.JSONDecodeError as error:
        raise DocumentError(f"no valid JSON: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"no valid JSON: {error}") from None


def read_hjson(text: str) -> Any:
    """JSON with comments, and without most of its quotes and commas, as DeepSpeed reads its configuration. Raises DocumentError."""
    try:
        return plain(hjson.loads(text.removeprefix("\ufeff"), object_pairs_hook=unique))
    except hjson.HjsonDecodeError as error:
        raise DocumentError(f"no valid JSON or Hjson: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"no valid JSON or Hjson: {error}") from None


def plain(parsed: Any) -> Any:
    """Parsed JSON as plain data. Raises DocumentError or ValueError."""
    json.dumps(parsed, ensure_ascii=False).encode()  # Half a surrogate pair is no text, and nothing could show it.
    return _Plain().value(parsed)


def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The mapping of these pairs; raises DuplicateError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise DuplicateError(f"the key {twice} stands twice in one mapping")
    return found


def _line(text: str, mark: yaml.Mark | None) -> int:
    """The parser points behind the last line where the text ends too soon."""
    return max(1, min(mark.line + 1, len(text.splitlines()))) if mark else 1


class _Plain:
    """Copies parsed data; aliases that multiply (a YAML bomb) end in a DocumentError, not in exhausted memory."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def value(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise DocumentError(f"the text holds more than {_MOST_VALUES} values, or is more than {_DEEPEST} levels deep")
        if isinstance(value, Mapping):
            return {_key(key): self.value(member, depth + 1) for key, member in value.items()}
        if isinstance(value, list | tuple | set):
            return [self.value(member, depth + 1) for member in value]
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)
