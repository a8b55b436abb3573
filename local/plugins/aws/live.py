"""What AWS says about a resource, as the engine's inputs and outputs: in the program's own spelling wherever that still holds."""

from collections.abc import Mapping
from typing import Any

from local.plugins.aws.convert import from_aws, named
from local.plugins.aws.diff import equivalent, projected
from local.plugins.aws.row import Described, creating_call
from local.plugins.aws.run import Run, search


def state_of(run: Run, described: Described) -> dict[str, Any]:
    """Outputs: what AWS says, in the program's spelling where both mean the same; the inputs where AWS says nothing."""
    state = {name: value for name, value in {**_kept(run), **visible(run.inputs)}.items() if name in run.schema.outputs}
    for name, prop in run.row.props.items():
        live, declared = _live(run, described, name), run.inputs.get(name)
        if live is not None and not equivalent(prop, live, declared):
            state[name] = _spelled(live, declared) if equivalent(prop, projected(live, declared, prop), declared) else live
        elif live is not None:
            state.setdefault(name, live)
    if run.row.tags is not None:
        live_tags = run.tags(described)
        state["tagsAll"] = live_tags
        state["tags"] = _own_tags(run, live_tags)
    run.state = state
    for name, source in run.row.outputs.items():
        value = source(run, described) if callable(source) else run.filled(source) if "{" in source else search(source, described)
        if value is not None:
            state[name] = from_aws(value, run.schema.outputs[name])
    if "region" in run.schema.outputs:
        state.setdefault("region", run.region)
    state["id"] = run.resource_id
    return state


def _kept(run: Run) -> dict[str, Any]:
    """Recorded values that still stand: not those of properties which the program no longer sets."""
    props = run.row.props
    return {name: value for name, value in run.state.items() if name not in props or props[name].computed or not run.inputs}


def _live(run: Run, described: Described, name: str) -> Any:
    prop = run.row.props[name]
    if prop.read == "" or prop.write_only:
        return None
    if callable(prop.read):
        raw = prop.read(described, run.inputs.get(name))
    elif prop.read:
        raw = search(prop.read, described)
    else:
        raw = _named(run, described, prop.param.rpartition(".")[2] if prop.param else name)
    return from_aws(raw, run.schema.outputs.get(name, run.schema.inputs[name]), prop.names)


def _named(run: Run, described: Described, name: str) -> Any:
    call = creating_call(run.row)
    found, inside = named(described, name), call.inside if call is not None else ""
    return named(described.get(inside) or {}, name) if found is None and inside else found


def live_inputs(run: Run, described: Described, *, importing: bool) -> dict[str, Any]:
    """The inputs that would declare what is there: the old ones where they still hold, so that only drift shows."""
    inputs = dict(run.inputs)
    for name, prop in run.row.props.items():
        live = _live(run, described, name)
        if live is None:
            if importing and run.state.get(name) is not None:
                inputs[name] = run.state[name]
            elif importing and prop.default is not None and not prop.read:
                inputs[name] = prop.default
            elif prop.read != "" and not prop.write_only and name in inputs and _clearable(run, name):
                del inputs[name]
        elif name in inputs:
            seen = projected(live, inputs[name], prop)
            inputs[name] = inputs[name] if equivalent(prop, inputs[name], seen) else seen
        elif importing or (not prop.computed and live not in (prop.default, False, 0, "", [], {})):
            inputs[name] = live
    _live_tags(run, described, inputs)
    if importing and "region" in run.schema.inputs:
        inputs["region"] = run.region
    return inputs


def _clearable(run: Run, name: str) -> bool:
    """AWS is silent about what it would tell: it was cleared. Numbers and flags always have a value, so silence says nothing."""
    prop, kind = run.row.props[name], run.schema.inputs[name]["t"]
    return run.state.get(name) is not None and (prop.told or not prop.computed) and kind in ("string", "list", "map", "object")


def _live_tags(run: Run, described: Described, inputs: dict[str, Any]) -> None:
    if run.row.tags is None:
        return
    live = run.tags(described)
    own = _own_tags(run, live)
    for name, value in (("tags", own), ("tagsAll", live)):
        if value:
            inputs[name] = value
        else:
            inputs.pop(name, None)


def _own_tags(run: Run, live: Mapping[str, str]) -> dict[str, str]:
    """Without those that only the provider's default tags put there."""
    declared, defaults = run.inputs.get("tags") or {}, run.clients.configuration.default_tags
    return {key: value for key, value in live.items() if key in declared or defaults.get(key) != value}


def _spelled(live: Any, declared: Any) -> Any:
    """The declared value with the fields that AWS added."""
    if isinstance(live, Mapping) and isinstance(declared, Mapping):
        return {**live, **{name: _spelled(live.get(name), value) for name, value in declared.items()}}
    return declared


def visible(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs without the hidden ones."""
    return {name: value for name, value in inputs.items() if not name.startswith("__")}
