"""What the data sources share: calls with errors of ours, filters, results in the SDK's names."""

from collections.abc import Mapping
from typing import Any

from local.errors import LocalStackError
from local.plugins.aws.clients import Clients
from local.plugins.aws.convert import from_aws, named
from local.plugins.aws.errors import call_failed
from local.plugins.aws.schema import function_outputs


def region_of(clients: Clients, args: Mapping[str, Any]) -> str:
    """The region asked for, or the provider's."""
    return args.get("region") or clients.configuration.region


def ask(clients: Clients, service: str, op: str, params: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """One AWS call in the region asked for. Raises AwsError."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        return clients.client(service, region_of(clients, args))._make_api_call(op, dict(params))
    except (ClientError, BotoCoreError, ResponseParserError) as error:
        raise call_failed(op, error, params, {}) from error


def filters(args: Mapping[str, Any], **exact: Any) -> list[dict[str, Any]]:
    """EC2's filters: the program's own, its tags, and exact values (keyword `vpc_id` is the filter `vpc-id`)."""
    found = [{"Name": one["name"], "Values": [str(value) for value in one["values"]]} for one in args.get("filters") or ()]
    found += [{"Name": f"tag:{key}", "Values": [value]} for key, value in (args.get("tags") or {}).items()]
    for name, value in exact.items():
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found.append({"Name": name.replace("_", "-"), "Values": [text]})
    return found


def only(found: list[dict[str, Any]], what: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The single match. Raises LocalStackError where there is none, or more than one."""
    if len(found) == 1:
        return found[0]
    asked = ", ".join(f"{name}={value!r}" for name, value in sorted(args.items())) or "no condition"
    raise LocalStackError(f"{'no' if not found else len(found)} {what} found for {asked}; exactly one is needed")


def result(token: str, described: Mapping[str, Any], args: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A result in the SDK's names: what AWS describes, the arguments, and explicit values on top."""
    outputs = function_outputs(token)
    answer = {name: value for name, value in args.items() if name in outputs}
    for name, kind in outputs.items():
        found = from_aws(named(described, name), kind)
        if found is not None:
            answer[name] = found
    return answer | {name: value for name, value in more.items() if value is not None}
