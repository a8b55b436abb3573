"""What differs between two sets of inputs, property by property, and whether that replaces the resource."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from local.plugins.aws.check import DEFAULTS_KEY
from local.plugins.aws.row import Prop, Row
from local.plugins.aws.values import UNKNOWN, has_unknown

_PLAIN: Final = Prop()
_ABSENT: Final[tuple[Any, ...]] = (None, [], {}, "")


class Change(Enum):
    """What happened to a property."""

    ADD = "add"
    DELETE = "delete"
    UPDATE = "update"


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Result of comparing what was declared before with what is declared now."""

    changes: Mapping[str, tuple[Change, bool]] = field(default_factory=dict)
    """Property path -> what happened, and whether it replaces the resource."""
    delete_before_replace: bool = False

    @property
    def replaces(self) -> list[str]:
        """Top-level properties whose change replaces the resource."""
        return sorted({_top(path) for path, (_, replace) in self.changes.items() if replace})

    @property
    def properties(self) -> list[str]:
        """Top-level properties that changed."""
        return sorted({_top(path) for path in self.changes})


def compare(row: Row, olds: Mapping[str, Any], news: Mapping[str, Any]) -> Difference:
    """Compare inputs as `check` leaves them."""
    changes: dict[str, tuple[Change, bool]] = {}
    for name in sorted({*olds, *news}):
        if name.startswith("__"):
            continue
        prop = property_of(row, name)
        new = news.get(name)
        old = _without_filled_in(olds.get(name), new, prop)
        if (new is None and prop.computed) or equivalent(prop, old, new):
            continue
        for path, change in _paths(name, old, new, prop):
            changes[path] = (change, prop.replace or _replaces_below(prop, name, path))
    difference = Difference(changes=changes)
    if not difference.replaces:
        return difference
    return Difference(changes=changes, delete_before_replace=row.delete_before_replace or _name_is_kept(row, olds, news))


def _without_filled_in(old: Any, new: Any, prop: Prop, path: str = "") -> Any:
    """The old value without nested fields that AWS chose and the program does not speak of."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        kept = {}
        for name, value in old.items():
            below = f"{path}.{name}".lstrip(".")
            if name in new or not ((prop.computed and not path) or below in prop.computed_below):
                kept[name] = _without_filled_in(value, new.get(name), prop, below)
        return kept
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and prop.computed_below:
        return [_without_filled_in(one, other, prop, path) for one, other in zip(old, new, strict=True)]
    return old


def property_of(row: Row, name: str) -> Prop:
    """The row's own entry, or the one that all types share (`region`, `tags`, `tagsAll`)."""
    if name == "region":
        return Prop(replace=True)
    return row.props.get(name, _PLAIN)


def equivalent(prop: Prop, old: Any, new: Any) -> bool:
    """Whether two values mean the same to AWS. An unknown one equals nothing."""
    if has_unknown(old) or has_unknown(new):
        return False
    if old == new or (old in _ABSENT and new in _ABSENT):
        return True
    if old in _ABSENT or new in _ABSENT:
        return False
    return canonical(prop, old) == canonical(prop, new)


def canonical(prop: Prop, value: Any) -> Any:
    """One spelling for all that means the same: JSON by content, lists as sets, empty fields left out."""
    if prop.json and isinstance(value, str):
        try:
            return _canonical_json(json.loads(value))
        except ValueError:
            return value
    if prop.spell is not None and isinstance(value, str):
        return prop.spell(value)
    if isinstance(value, Mapping):
        return {key: canonical(prop, item) for key, item in value.items() if item not in _ABSENT}
    if isinstance(value, list):
        items = [canonical(prop, item) for item in value]
        return items if prop.ordered else sorted(items, key=_sort_key)
    return value


def _canonical_json(value: Any) -> Any:
    """IAM reads a single text and a list of that one text alike, and no order in lists."""
    if isinstance(value, Mapping):
        return {key: _canonical_json(item) for key, item in value.items()}
    if isinstance(value, list):
        items = sorted((_canonical_json(item) for item in value), key=_sort_key)
        return items[0] if len(items) == 1 and not isinstance(items[0], Mapping) else items
    return value


def projected(live: Any, declared: Any, prop: Prop) -> Any:
    """What AWS says, cut to what was declared: AWS adds fields of its own to nested objects, and those are no drift."""
    if isinstance(live, Mapping) and isinstance(declared, Mapping):
        # AWS may leave out what is off or empty.
        kept = {name: value for name, value in declared.items() if name not in live and value in (False, 0, "", [], {})}
        return kept | {name: projected(live[name], value, prop) for name, value in declared.items() if name in live}
    if isinstance(live, list) and isinstance(declared, list):
        return _projected_list(live, declared, prop)
    return live


def _projected_list(live: list[Any], declared: list[Any], prop: Prop) -> list[Any]:
    left, result, unmatched = list(live), [], []
    for item in declared:
        twin = next((one for one in left if equivalent(prop, projected(one, item, prop), item)), None)
        if twin is None:
            unmatched.append(item)
        else:
            left.remove(twin)
            result.append(item)
    pairs = zip(left, unmatched, strict=False)
    return result + [projected(one, item, prop) for one, item in pairs] + left[len(unmatched) :]


def _replaces_below(prop: Prop, name: str, path: str) -> bool:
    below = path.removeprefix(f"{name}.")
    return any(
        below == field or below.startswith((f"{field}.", f"{field}[")) or field.startswith(f"{below}.") for field in prop.replace_below
    )


def _sort_key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _paths(path: str, old: Any, new: Any, prop: Prop) -> Iterator[tuple[str, Change]]:
    """Deepest paths that differ, in the spelling the engine wants: `tags.Team`, `ingress[0].fromPort`, `tags["a.b"]`."""
    if new in _ABSENT and new is not UNKNOWN:
        yield path, Change.DELETE
    elif old in _ABSENT and old is not UNKNOWN:
        yield path, Change.ADD
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            if not equivalent(prop, old.get(key), new.get(key)):
                yield from _paths(f"{path}{_step(key)}", old.get(key), new.get(key), prop)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_paths(path, old, new, prop)
    else:
        yield path, Change.UPDATE


def _list_paths(path: str, old: list[Any], new: list[Any], prop: Prop) -> Iterator[tuple[str, Change]]:
    gone, come = dict(enumerate(old)), dict(enumerate(new))
    if not prop.ordered:
        for index, item in list(gone.items()):
            twin = next((other for other, value in come.items() if equivalent(prop, item, value)), None)
            if twin is not None:
                del gone[index], come[twin]
    for index in sorted({*gone, *come}):
        yield from (
            _paths(f"{path}[{index}]", gone.get(index), come.get(index), prop)
            if not equivalent(prop, gone.get(index), come.get(index))
            else ()
        )


def _step(key: str) -> str:
    return f".{key}" if key.replace("_", "a").replace("-", "a").isalnum() else f'["{key}"]'


def _top(path: str) -> str:
    return path.split(".", 1)[0].split("[", 1)[0]


def _name_is_kept(row: Row, olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    """A name that the program fixes can't belong to the old and the new one at the same time."""
    if row.name is None:
        return False
    prop = row.name.prop
    return news.get(prop) is not None and news.get(prop) == olds.get(prop) and prop not in news.get(DEFAULTS_KEY, ())
