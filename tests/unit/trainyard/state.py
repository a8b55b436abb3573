"""Exports of a stack's state, small ones, as the engine writes them."""

import json
from typing import Any

VPC, SUBNET, QUEUE = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet", "aws:sqs/queue:Queue"
RELEASE, NAMESPACE = "kubernetes:helm.sh/v3:Release", "kubernetes:core/v1:Namespace"


def urn(kind: str, name: str) -> str:
    return f"urn:pulumi:dev::trainyard::{kind}::{name}"


def resource(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"urn": urn(kind, name), "type": kind, "custom": True, "inputs": {}, **more}


def operation(word: str, about: dict[str, Any]) -> dict[str, Any]:
    return {"type": word, "resource": about}


def export(resources: list[dict[str, Any]], pending: list[dict[str, Any]] | None = None) -> str:
    deployment: dict[str, Any] = {"manifest": {}, "resources": resources}
    if pending:
        deployment["pending_operations"] = pending
    return json.dumps({"version": 3, "deployment": deployment})
