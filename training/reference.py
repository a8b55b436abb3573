"""Every setting with its type, limits, default and meaning, taken from the dataclasses themselves. Standard library only.

`python -m training.reference` prints docs/training-config.md, and `python -m training.reference FILE` writes it.
"""

import ast
import dataclasses
import functools
import inspect
import json
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from training.config import TrainConfig
from training.exit_codes import ExitCode
from training.schema import Range, Section

_NAMES = {int: "whole number", float: "number", str: "text", bool: "true or false"}
_HELP_WIDTH = 110


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting of TrainConfig."""

    path: str
    """Dotted path, as in `--set`."""
    allowed: str
    """Type, choices and bounds."""
    default: str
    """Value where none is given, as JSON; `required` where there is none."""
    doc: str


def sections(kind: type[Section] = TrainConfig, path: str = "") -> Iterator[tuple[str, str, list[Setting]]]:
    """Path, meaning and settings of each section, outermost first; the path of the whole is empty."""
    hints = get_type_hints(kind, include_extras=True)
    docs = field_docs(kind)
    own, inner = [], []
    for field in dataclasses.fields(kind):
        where = f"{path}.{field.name}".lstrip(".")
        section = _section(hints[field.name])
        if section:
            inner.append((section, where))
        if not section or _is_optional(hints[field.name]):
            own.append(Setting(where, allowed(hints[field.name]), _default(field), docs[field.name]))
    yield path, " ".join((kind.__doc__ or "").split()), own
    for section, where in inner:
        yield from sections(section, where)


@functools.cache
def field_docs(kind: type) -> dict[str, str]:
    """The text under each field of a dataclass. Raises ValueError for a field without one."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    docs: dict[str, str] = {}
    for statement, following in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = following.value if isinstance(following, ast.Expr) else None
            if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
                raise ValueError(f"{kind.__name__}.{statement.target.id} has no text under it that says what it means")
            docs[statement.target.id] = " ".join(text.value.split())
    return docs


def allowed(hint: Any) -> str:
    """What a value of this annotation may be, in words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(allowed(argument) for argument in arguments if argument is not type(None)) + " or nothing"
    if origin is Annotated:
        bounds = " ".join(str(bound) for bound in arguments[1:] if isinstance(bound, Range))
        return f"{allowed(arguments[0])} {bounds}".strip()
    if origin is Literal:
        return ", ".join(json.dumps(choice) for choice in arguments)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f"list of {allowed(arguments[0])}"
        return f"list of {len(arguments)}: " + ", ".join(allowed(argument) for argument in arguments)
    if isinstance(hint, type) and issubclass(hint, Section):
        return "section"
    return _NAMES[hint]


def help_text() -> str:
    """Every setting for a terminal."""
    lines = ["settings (in the file, or --set path=value):"]
    for path, doc, settings in sections():
        lines += ["", *textwrap.wrap(f"{path or 'the run'}: {doc}", _HELP_WIDTH)]
        for setting in settings:
            lines.append(f"  {setting.path}  ({setting.allowed}; {setting.default})")
            lines += textwrap.wrap(setting.doc, _HELP_WIDTH, initial_indent="      ", subsequent_indent="      ")
    lines += ["", "exit codes:"]
    lines += [f"  {int(code)}  {code.name.lower()}" for code in ExitCode]
    return "\n".join(lines)


def markdown() -> str:
    """Every setting as docs/training-config.md has it."""
    lines = [
        "# Training configuration",
        "",
        "Every setting of a run. Written by `python -m training.reference docs/training-config.md` from `training/config.py`; a test",
        "keeps it true.",
        "",
        "A file of JSON or YAML (`--config run.yaml`), a recipe (`--recipe tiny`), and `--set path=value` on top of either. An unknown",
        "key, a value out of bounds and a combination that cannot work are refused before torch is imported, with the path, the value,",
        "what is allowed and, for YAML, the line. `python -m training.train --check --config run.yaml` does that and nothing else.",
    ]
    for path, doc, settings in sections():
        lines += ["", f"## {path or 'The run'}", "", doc]
        if settings:
            lines += ["", "| setting | allowed | default | meaning |", "| --- | --- | --- | --- |"]
            lines += [
                f"| `{setting.path}` | {_cell(setting.allowed)} | `{setting.default}` | {_cell(setting.doc)} |" for setting in settings
            ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(hint: Any) -> type[Section] | None:
    candidates = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return next((kind for kind in candidates if isinstance(kind, type) and issubclass(kind, Section)), None)


def _is_optional(hint: Any) -> bool:
    return type(None) in get_args(hint)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return json.dumps(field.default_factory(), default=list)
    return "required" if field.default is dataclasses.MISSING else json.dumps(field.default, default=list)


def main(arguments: list[str]) -> int:
    """Run the command and give its exit code."""
    if arguments:
        Path(arguments[0]).write_text(markdown(), encoding="utf-8")
    else:
        sys.stdout.write(markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
