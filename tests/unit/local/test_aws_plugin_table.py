"""The table of the stand-in aws plug-in, held against the genuine SDK's classes and botocore's service model."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.session import get_session

from local.plugins.aws.convert import member_name, shape_of, walk
from local.plugins.aws.functions import FUNCTIONS
from local.plugins.aws.row import Call, Row, creating_call
from local.plugins.aws.schema import Kind, TypeSchema, function_outputs, schema_of
from local.plugins.aws.types import TABLE

pytestmark = pytest.mark.unit

ALL = pytest.mark.parametrize("row", TABLE.values(), ids=lambda row: row.token.rpartition(":")[2])
SHARED = {"region", "tags", "tagsAll"}
# Outputs of the SDK that the stand-in never has, because neither the emulator nor the inputs that it knows bring them.
WITHOUT = {
    "Eip": {"carrierIp", "customerOwnedIp", "privateDns", "ptrRecord"},
    "NatGateway": {"autoProvisionZones", "autoScalingIps", "regionalNatGatewayAddresses", "regionalNatGatewayAutoMode", "routeTableId"},
    "VpcEndpoint": {"cidrBlocks"},
    "DefaultSecurityGroup": {"namePrefix"},
    "Bucket": {"hostedZoneId", "websiteDomain", "websiteEndpoint"},
    "BucketV2": {"hostedZoneId", "websiteDomain", "websiteEndpoint"},
    "Parameter": {"hasValueWo"},
}
_SESSION = get_session()


def operation(row: Row, name: str) -> Any:
    return _SESSION.get_service_model(row.service).operation_model(name)


def calls(row: Row) -> Iterator[Call]:
    """Every call that the row states."""
    tags = row.tags
    found = [row.create, row.form, row.read, row.delete, *row.updates, *((tags.add, tags.remove, tags.read) if tags else ())]
    yield from (call for call in found if isinstance(call, Call))


@ALL
def test_names_are_those_of_the_sdk(row: Row) -> None:
    schema = schema_of(row.token)
    assert set(row.props) <= set(schema.inputs), "a property that the SDK does not take"
    assert set(schema.required) <= set(row.props), "a required property that the table can't carry out"
    assert set(row.outputs) <= set(schema.outputs), "an output that the SDK does not read"
    assert set(row.volatile) <= set(schema.outputs)
    assert row.tags is None or "tagsAll" in schema.outputs
    assert ("tags" in schema.inputs) == (row.tags is not None), "the type's tags are not handled"


@ALL
def test_every_output_of_the_sdk_is_there_or_known_to_be_missing(row: Row) -> None:
    schema = schema_of(row.token)
    missing = set(schema.outputs) - set(row.props) - set(row.outputs) - set(schema.inputs) - SHARED
    assert missing == WITHOUT.get(row.token.rpartition(":")[2], set())


@ALL
def test_every_property_that_does_not_replace_can_be_changed(row: Row) -> None:
    handled = {name for update in row.updates for name in update.takes or ()}
    assert handled <= set(row.props)
    left = {name for name, prop in row.props.items() if not prop.replace and not prop.write_only} - handled
    assert left == set(), "a change of it would be planned as an update and then fail"


@ALL
def test_automatic_names_go_into_properties(row: Row) -> None:
    if row.name is None:
        return
    assert row.props[row.name.prop].replace, "a changed name is another resource"
    assert not row.name.prefix_prop or row.name.prefix_prop in row.props


@ALL
def test_calls_and_their_constant_parameters_are_botocores(row: Row) -> None:
    for call in calls(row):
        shape = operation(row, call.op).input_shape
        for name in [*call.by, *([call.token] if call.token else [])]:
            assert name in shape.members, f"{call.op} has no parameter {name}"
        first = re.match(r"\w+", call.result)
        if first:
            assert first[0] in operation(row, call.op).output_shape.members, f"{call.op} does not answer {first[0]}"


@ALL
def test_tags_go_where_the_service_takes_them(row: Row) -> None:
    if row.tags is None:
        return
    call = creating_call(row)
    if call is not None and row.tags.create and not row.tags.spec:
        assert row.tags.create in operation(row, call.op).input_shape.members
    if row.tags.spec and call is not None:
        assert "TagSpecifications" in operation(row, call.op).input_shape.members
    for change, param in ((row.tags.add, row.tags.add_as), (row.tags.remove, row.tags.remove_as)):
        assert (row.tags.put is not None) != (change is not None)
        assert change is None or param in operation(row, change.op).input_shape.members


@ALL
def test_every_sent_property_has_a_parameter(row: Row) -> None:
    call = creating_call(row)
    for name, prop in row.props.items():
        if call is not None and prop.param != "" and not prop.write_only:
            assert shape_of(operation(row, call.op).input_shape, call, name, prop) is not None, f"{call.op} takes no {name}"
    for update in (update for update in row.updates if isinstance(update, Call)):
        for name in update.takes or ():
            prop = row.props[name]
            shape = shape_of(operation(row, update.op).input_shape, update, name, None if prop.param == "" else prop)
            assert shape is not None, f"{update.op} takes no {name}"


@ALL
def test_nested_fields_have_parameters_too(row: Row) -> None:
    call, schema = creating_call(row), schema_of(row.token)
    for name, prop in row.props.items():
        if call is None or prop.param == "" or prop.write_only or prop.send is not None:
            continue
        shape = shape_of(operation(row, call.op).input_shape, call, name, prop)
        assert list(unmapped(schema.inputs[name], shape, prop.names)) == [], f"nested fields of {name} without a parameter"


@ALL
def test_nested_paths_in_the_row_exist(row: Row) -> None:
    schema = schema_of(row.token)
    for name, prop in row.props.items():
        for path in (*prop.names, *prop.replace_below, *prop.computed_below):
            assert field(schema, name, path) is not None, f"{row.token} has no {name}.{path}"


def unmapped(kind: Kind, shape: Any, names: Any, path: str = "") -> Iterator[str]:
    if kind["t"] == "list":
        yield from unmapped(kind["of"], shape.member if shape.type_name == "list" else shape, names, path)
    elif kind["t"] == "object":
        while shape.type_name == "list":
            shape = shape.member
        for name, below in kind["props"].items():
            here = f"{path}.{name}".lstrip(".")
            wanted = names.get(here, name)
            member = member_name(shape, wanted) if wanted else None
            if wanted and member is None:
                yield here
            elif member is not None:
                yield from unmapped(below, shape.members[member], names, here)


def field(schema: TypeSchema, name: str, path: str) -> Kind | None:
    here: Kind | None = schema.inputs[name]
    for step in path.split("."):
        while here is not None and here["t"] == "list":
            here = here["of"]
        here = here["props"].get(step) if here is not None and here["t"] == "object" else None
    return here


@pytest.mark.parametrize("token", FUNCTIONS)
def test_data_sources_are_the_sdks(token: str) -> None:
    assert "id" in function_outputs(token)


def test_parameters_can_be_walked_through_lists_and_maps() -> None:
    queue = operation(TABLE["aws:sqs/queue:Queue"], "CreateQueue").input_shape
    assert walk(queue, "Attributes.VisibilityTimeout").type_name == "string"
    assert walk(queue, "Attributes.VisibilityTimeout.More") is None
    assert walk(queue, "Nothing") is None
