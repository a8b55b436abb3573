"""IAM policy documents, put together from statements. No call to AWS is made."""

import json
import zlib
from collections.abc import Mapping
from typing import Any

from local.errors import LocalStackError
from local.plugins.aws.clients import Clients

_LISTS = {"actions": "Action", "notActions": "NotAction", "resources": "Resource", "notResources": "NotResource"}


def policy_document(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """JSON of a policy: source documents first, then the statements, then overrides, which replace statements of the same sid."""
    statements: list[dict[str, Any]] = []
    for source in (args.get("sourceJson"), *(args.get("sourcePolicyDocuments") or ())):
        statements += _statements_of(source)
    version = args.get("version") or "2012-10-17"
    statements = _merged(statements, [_statement(one, version) for one in args.get("statements") or ()])
    for override in (args.get("overrideJson"), *(args.get("overridePolicyDocuments") or ())):
        statements = _merged(statements, _statements_of(override))
    document = {"Version": version, **({"Id": args["policyId"]} if args.get("policyId") else {}), "Statement": statements}
    text = json.dumps(document, indent=2)
    return {
        **args,
        "version": version,
        "json": text,
        "minifiedJson": json.dumps(document, separators=(",", ":")),
        "id": str(zlib.crc32(text.encode())),
    }


def _statements_of(source: str | None) -> list[dict[str, Any]]:
    if not source:
        return []
    try:
        found = json.loads(source)["Statement"]
    except (ValueError, KeyError, TypeError) as error:
        raise LocalStackError(f"a source or override document is no policy: {source[:200]!r}") from error
    return found if isinstance(found, list) else [found]


def _merged(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[dict[str, Any]]:
    newer = {one["Sid"]: one for one in second if one.get("Sid")}
    kept = [newer.pop(one.get("Sid"), one) for one in first]
    return kept + [one for one in second if not one.get("Sid") or one["Sid"] in newer]


def _statement(one: Mapping[str, Any], version: str) -> dict[str, Any]:
    found: dict[str, Any] = {"Sid": one["sid"]} if one.get("sid") else {}
    found["Effect"] = one.get("effect") or "Allow"
    for name, word in _LISTS.items():
        if one.get(name):
            found[word] = _single([_variables(text, version) for text in one[name]])
    for name, word in (("principals", "Principal"), ("notPrincipals", "NotPrincipal")):
        if one.get(name):
            found[word] = _principals(one[name])
    if one.get("conditions"):
        found["Condition"] = _conditions(one["conditions"], version)
    return found


def _principals(given: list[Mapping[str, Any]]) -> Any:
    by_type: dict[str, list[str]] = {}
    for one in given:
        by_type.setdefault(one["type"], []).extend(one["identifiers"])
    if by_type == {"*": ["*"]}:
        return "*"
    return {kind: _single(sorted(names)) for kind, names in by_type.items()}


def _conditions(given: list[Mapping[str, Any]], version: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in given:
        found.setdefault(one["test"], {})[one["variable"]] = _single([_variables(text, version) for text in one["values"]])
    return found


def _variables(text: str, version: str) -> str:
    """`&{aws:username}` stands for IAM's `${aws:username}`, which a program's own templates would eat."""
    return text if version == "2008-10-17" else text.replace("&{", "${")


def _single(values: list[str]) -> Any:
    return values[0] if len(values) == 1 else values


FUNCTIONS = {"aws:iam/getPolicyDocument:getPolicyDocument": policy_document}
