"""SSM parameters that are there already."""

from collections.abc import Mapping
from typing import Any

from local.plugins.aws.clients import Clients
from local.plugins.aws.functions.query import ask, region_of, result


def parameter(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """One parameter, decrypted unless the program says otherwise."""
    decrypt = args.get("withDecryption", True)
    found = ask(clients, "ssm", "GetParameter", {"Name": args["name"], "WithDecryption": decrypt}, args)["Parameter"]
    return result(
        "aws:ssm/getParameter:getParameter",
        found,
        args,
        id=found["Name"],
        region=region_of(clients, args),
        withDecryption=decrypt,
        insecureValue=None if found["Type"] == "SecureString" else found["Value"],
    )


FUNCTIONS = {"aws:ssm/getParameter:getParameter": parameter}
