"""SSM parameters."""

from collections.abc import Mapping
from typing import Any

from local.plugins.aws.row import Call, Name, Prop, Row, Tags, Update, fixed
from local.plugins.aws.run import Run

_VALUES = ("value", "insecureValue")


def _describe(run: Run) -> dict[str, Any] | None:
    parameter = run.call("GetParameter", {"Name": run.resource_id, "WithDecryption": True})["Parameter"]
    mine = [{"Key": "Name", "Option": "Equals", "Values": [run.resource_id]}]
    listed = run.call("DescribeParameters", {"ParameterFilters": mine})["Parameters"]
    plain = parameter["Value"] if run.value("insecureValue") is not None else None
    return {**(listed[0] if listed else {}), **parameter, "InsecureValue": plain}


_PUT = Call(op="PutParameter")


def _put(run: Run) -> dict[str, Any]:
    names = [name for name in PARAMETER.props if run.inputs.get(name) is not None and PARAMETER.props[name].param != ""]
    params, sources = run.params(_PUT, only=names, creating=not run.olds)
    # AWS takes tags only with a new parameter.
    if run.olds or run.inputs.get("overwrite"):
        params["Overwrite"] = True
        params.pop("Tags", None)
    return run.call(_PUT.op, params, sources)


def _one_value(inputs: Mapping[str, Any]) -> dict[str, str]:
    given = [name for name in _VALUES if inputs.get(name) is not None]
    if len(given) == 1:
        return {}
    return {"value": f"a parameter has exactly one of {' and '.join(_VALUES)}; {'both are' if given else 'none is'} set"}


_BY = {"ResourceType": "Parameter", "ResourceId": "$id"}

PARAMETER = Row(
    token="aws:ssm/parameter:Parameter",
    service="ssm",
    create=_put,
    form=_PUT,
    id="{name}",
    read=_describe,
    delete=Call(op="DeleteParameter", by={"Name": "$id"}),
    props={
        **fixed("name"),
        "type": Prop(),
        "value": Prop(computed=True),
        "insecureValue": Prop(param="Value", read="InsecureValue", computed=True),
        "description": Prop(),
        "allowedPattern": Prop(),
        "keyId": Prop(computed=True),
        "tier": Prop(computed=True),
        "dataType": Prop(computed=True),
        "overwrite": Prop(param="", write_only=True),
    },
    updates=[Update(takes=("type", "value", "insecureValue", "description", "allowedPattern", "keyId", "tier", "dataType"), run=_put)],
    outputs={"arn": "ARN", "version": "Version"},
    volatile=("version",),
    tags=Tags(
        add=Call(op="AddTagsToResource", by=_BY),
        remove=Call(op="RemoveTagsFromResource", by=_BY),
        read=Call(op="ListTagsForResource", by=_BY),
        at="TagList",
    ),
    name=Name(longest=2048, prefix_prop=""),
    validate=_one_value,
)

ROWS = (PARAMETER,)
