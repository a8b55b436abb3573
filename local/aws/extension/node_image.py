"""SSM's public parameters for EKS node images. The images themselves are in the catalogue that moto's EC2 loads."""

from datetime import UTC, datetime
from typing import Any

from moto.ssm.models import Parameter, ssm_backends
from moto.ssm.responses import SimpleSystemManagerResponse

from local.aws.extension.hooks import Call, Params, add_guards
from local.aws.node_image import parameters

PUBLIC = "/aws/service/eks/"


def load_parameters(call: Call, given: Params) -> None:
    """Put the parameters into moto's SSM when one of them is first asked for."""
    asked = [given.get("Name"), given.get("Path"), *(given.get("Names") or [])]
    if not any(str(each).startswith(PUBLIC) for each in asked if each):
        return
    table = ssm_backends[call.current_account][call.region]._parameters
    for name, value in parameters().items():
        if name not in table:
            table[name].append(_parameter(call, name, value))


def _parameter(call: Call, name: str, value: str) -> Any:
    # moto's models are abstract for its CloudFormation part only.
    kind: Any = Parameter
    return kind(
        account_id=call.current_account,
        name=name,
        value=value,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=datetime.now(UTC),
        version=1,
        data_type="text",
    )


def install() -> None:
    """Load the parameters before SSM reads them."""
    add_guards(
        SimpleSystemManagerResponse,
        {"get_parameter": load_parameters, "get_parameters": load_parameters, "get_parameters_by_path": load_parameters},
    )
