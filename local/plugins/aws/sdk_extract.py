"""Reads the genuine SDK's classes and botocore's limits into the schema file: `python -m local.plugins.aws.sdk_extract FILE`."""

import inspect
import json
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any, Final

import pulumi_aws  # noqa: F401  (registers the classes that the registry below is asked for)
from botocore.session import get_session
from pulumi import _types
from pulumi.runtime import rpc

from local.plugins.aws.convert import PROVIDER_SET, shape_of
from local.plugins.aws.functions import FUNCTIONS
from local.plugins.aws.row import Row, creating_call
from local.plugins.aws.types import TABLE

_LEAVES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}


def extract() -> dict[str, Any]:
    """Schema of every type in the table and of the provider itself."""
    schema = {token: _resource(row) for token, row in TABLE.items()} | {token: _function(token) for token in FUNCTIONS}
    schema["pulumi:providers:aws"] = {"inputs": _inputs(_class_of("provider", "ProviderArgs"))[0], "required": [], "outputs": {}}
    return schema


def resource_class(token: str) -> type:
    """The SDK's class of a resource token.

    Raises:
        KeyError: the SDK has no such resource.
    """
    package, module, _ = token.split(":")
    found = rpc.get_resource_module(package, module, "")
    if found is None:
        raise KeyError(token)
    # The SDK's own registry entry; pulumi's base class does not declare it.
    entry = vars(found)["mod_info"]
    __import__(entry["fqn"])
    return getattr(sys.modules[entry["fqn"]], entry["classes"][token])


def args_class(resource: type) -> type:
    """The class of a resource's arguments. It is called `*InitArgs` where a nested type has taken the name."""
    module, name = resource.__module__.removeprefix("pulumi_aws."), resource.__name__
    try:
        return _class_of(module, f"{name}InitArgs")
    except AttributeError:
        return _class_of(module, f"{name}Args")


def _resource(row: Row) -> dict[str, Any]:
    resource = resource_class(row.token)
    inputs, required = _inputs(args_class(resource))
    _add_limits(row, inputs)
    outputs = {name: _kind(hint) for name, hint in _types.resource_types(resource).items()}
    return {"inputs": inputs, "required": required, "outputs": outputs}


def function_class(token: str) -> type:
    """The SDK's class of a data source's result."""
    _, module, name = token.split(":")
    file = re.sub(r"(?<=[a-z])([A-Z])", lambda found: f"_{found[0].lower()}", name)
    area = module.split("/")[0]
    return _class_of(file if area == "index" else f"{area}.{file}", f"{name[0].upper()}{name[1:]}Result")


def _function(token: str) -> dict[str, Any]:
    outputs = {name: _kind(hint) for name, hint in _types.output_type_types(function_class(token)).items()}
    return {"inputs": {}, "required": [], "outputs": outputs}


def _class_of(module: str, name: str) -> type:
    __import__(f"pulumi_aws.{module}")
    return getattr(sys.modules[f"pulumi_aws.{module}"], name)


def _inputs(args: type) -> tuple[dict[str, Any], list[str]]:
    names = _types.input_type_py_to_pulumi_names(args)
    parameters = inspect.signature(args.__init__).parameters
    required = [names[name] for name, given in parameters.items() if name in names and given.default is inspect.Parameter.empty]
    return {name: _kind(hint) for name, hint in _types.input_type_types(args).items()}, required


def _kind(hint: Any) -> dict[str, Any]:
    hint = _plain(hint)
    if hint in _LEAVES:
        return {"t": _LEAVES[hint]}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is not None and issubclass(origin, typing.Mapping):
        return {"t": "map", "of": _kind(arguments[1])}
    if origin is not None and issubclass(origin, typing.Sequence):
        return {"t": "list", "of": _kind(arguments[0])}
    if _types.is_input_type(hint):
        props, required = _inputs(hint)
        return {"t": "object", "props": props, "required": required}
    if _types.is_output_type(hint):
        return {"t": "object", "props": {name: _kind(field) for name, field in _types.output_type_types(hint).items()}, "required": []}
    return {"t": "any"}


def _plain(hint: Any) -> Any:
    """The one type that a program can mean: without optionality, outputs, awaitables, dict twins and string enums."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    found = [choice for choice in typing.get_args(hint) if _is_meant(choice)]
    return _plain(found[0]) if len(found) == 1 else Any


def _is_meant(choice: Any) -> bool:
    if choice is type(None) or "Awaitable" in str(choice) or "pulumi.output.Output" in str(choice):
        return False
    return not (isinstance(choice, type) and ((issubclass(choice, str) and choice is not str) or choice.__name__.endswith("ArgsDict")))


def _add_limits(row: Row, inputs: dict[str, Any]) -> None:
    """Note allowed values and ranges of the creating call's parameters beside the inputs that fill them."""
    call = creating_call(row)
    if call is None:
        return
    operation = _service_model(row.service).operation_model(call.op)
    for name, prop in row.props.items():
        if name not in PROVIDER_SET and prop.param != "" and not prop.json and name in inputs:
            _limit(inputs[name], shape_of(operation.input_shape, call, name, prop), prop.names)


def _limit(kind: dict[str, Any], shape: Any, names: typing.Mapping[str, str], path: str = "") -> None:
    from local.plugins.aws.convert import member_name

    if shape is None:
        return
    if kind["t"] == "object":
        while shape.type_name == "list":
            shape = shape.member
        for name, field in kind["props"].items():
            below = f"{path}.{name}".lstrip(".")
            member = member_name(shape, names.get(below, name)) if shape.type_name == "structure" else None
            _limit(field, shape.members[member] if member else None, names, below)
    elif kind["t"] == "list" and shape.type_name == "list":
        _limit(kind["of"], shape.member, names, path)
    elif kind["t"] in ("string", "integer") and shape.type_name in ("string", "integer", "long"):
        limits = {"enum": list(shape.enum)} if kind["t"] == "string" and getattr(shape, "enum", None) else {}
        limits |= {key: shape.metadata[key] for key in ("min", "max") if key in shape.metadata}
        kind.update(limits)


def _service_model(service: str) -> Any:
    return get_session().get_service_model(service)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(extract(), separators=(",", ":")))
