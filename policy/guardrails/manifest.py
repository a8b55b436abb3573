"""Kubernetes manifests and DeepSpeed configurations in files, as resources with the lines they come from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from guardrails.document import DocumentError, DuplicateError, Loader, read_hjson, read_json, read_yaml
from guardrails.node import Node
from guardrails.rule import Resource
from guardrails.tokens import DEEPSPEED, LIST
from guardrails.view import deepspeed, manifest

STDIN = "-"
_STEP = re.compile(r'\["(?P<quoted>.*?)"\]|\[(?P<index>[0-9]+)\]|(?P<key>[^.\[]+)')


class ManifestError(Exception):
    """A file can't be read or holds nothing that can be judged; the text names file, line and what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document of a file."""

    file: str
    text: str
    index: int
    """Its position among the file's documents that are not empty."""
    resource: Resource

    def line(self, path: str) -> int:
        """The line on which the value at `path` stands, or the nearest one above it that is there; counted from 1."""
        node = self._root()
        if node is None:
            return 1
        line = node.start_mark.line
        for step in _STEP.finditer(path):
            node, mark = _below(node, step)
            if node is None:
                break
            line = mark
        return line + 1

    def _root(self) -> Any:
        try:
            nodes = [node for node in yaml.compose_all(self.text, Loader=Loader) if not _is_empty(node)]
        except yaml.YAMLError:
            return None  # JSON that is no YAML, such as one with an escaped emoji.
        return nodes[self.index] if self.index < len(nodes) else None


def read_files(paths: Sequence[str], *, stdin: str = "") -> list[Document]:
    """Every document of the files; `-` is what came on standard input. Raises ManifestError for the first that can't be judged."""
    return [document for path in paths for document in _documents(path, stdin if path == STDIN else _text(path))]


def _relative(path: str) -> str:
    """As seen from here where it lies below, because code scanning knows files by their place in the repository."""
    given = Path(path)
    inside = given.is_absolute() and given.is_relative_to(Path.cwd())
    return str(given.relative_to(Path.cwd()) if inside else given)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path}: no UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror or error}") from None


def _documents(path: str, text: str) -> Iterator[Document]:
    file = "stdin" if path == STDIN else _relative(path)
    try:
        parsed = _parsed(path, text)
    except DocumentError as error:
        raise ManifestError(f"{file}:{error.line}: {error}") from None
    if not parsed:
        raise ManifestError(f"{file}: holds no document; allowed: Kubernetes manifests or a DeepSpeed configuration")
    for index, value in enumerate(parsed):
        yield Document(file=file, text=text, index=index, resource=_resource(file, index, value, len(parsed)))


def _parsed(path: str, text: str) -> list[Any]:
    """The documents of a file: JSON whatever its name is, else Hjson where it is DeepSpeed's, else YAML."""
    json_file = path.lower().endswith((".json", ".hjson"))
    if not json_file and not text.lstrip().startswith(("{", "//", "/*")):
        return read_yaml(text)
    try:
        return [read_json(text, once=True)]
    except DuplicateError:
        raise
    except DocumentError as error:
        try:
            found = read_hjson(text)
        except DuplicateError:
            raise
        except DocumentError:
            found = None
        if deepspeed(found, Path(path).name):
            return [found]
        if json_file:
            raise error from None
        return read_yaml(text)


def _resource(file: str, index: int, value: Any, count: int) -> Resource:
    kind = manifest(value) or (DEEPSPEED if deepspeed(value, Path(file).name) else None)
    place = file if count == 1 else f"{file}#{index + 1}"
    if kind is None:
        allowed = "a Kubernetes object (apiVersion and kind) or a DeepSpeed configuration (a mapping with train_batch_size, say)"
        raise ManifestError(f"{place}: is neither; allowed: {allowed}")
    _check_items(place, kind, value)
    metadata = value.get("metadata")
    names = [metadata.get(key) for key in ("name", "generateName")] if isinstance(metadata, dict) else []
    name = next((name for name in names if isinstance(name, str) and name), Path(file).name)
    return Resource(type=kind, name=name, urn=place, properties=Node(value, owner=name))


def _check_items(place: str, kind: str, value: Any) -> None:
    """An item of a plain List says itself what it is, else nothing would judge it."""
    items = value.get("items")
    for index, item in enumerate(items if kind == LIST and isinstance(items, list) else ()):
        if manifest(item) is None:
            raise ManifestError(f"{place}: items[{index}] is no Kubernetes object; allowed: apiVersion and kind in each item of a List")


def _is_empty(node: Any) -> bool:
    return node is None or node.tag == "tag:yaml.org,2002:null"


def _below(node: Any, step: re.Match[str]) -> tuple[Any, int]:
    """The value one step further, and the line of its key (of itself in a list)."""
    if isinstance(node, yaml.SequenceNode) and step["index"]:
        index = int(step["index"])
        if index < len(node.value):
            return node.value[index], node.value[index].start_mark.line
    if isinstance(node, yaml.MappingNode) and not step["index"]:
        wanted = step["quoted"] if step["quoted"] is not None else step["key"]
        for key, value in node.value:
            if getattr(key, "value", None) == wanted:
                return value, key.start_mark.line
    return None, 0
