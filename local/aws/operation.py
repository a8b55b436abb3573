"""Which AWS operation an HTTP request is: service, operation, region, and whether it may change something."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from moto.core.routing import get_service_router
from moto.core.utils import get_service_model
from moto.moto_server.werkzeug_app import BackendRequest
from werkzeug.exceptions import HTTPException

# Signing names that differ from boto3's name of the service.
BOTO_NAMES = {
    "elasticfilesystem": "efs",
    "tagging": "resourcegroupstaggingapi",
    "elasticloadbalancing": "elbv2",
    "monitoring": "cloudwatch",
    "servicequotas": "service-quotas",
    "dynamodb": "dynamodb",
}
REST = ("s3", "eks", "efs")
# ReceiveMessage hides messages for a while; a restart that shows them again is what SQS promises anyway (delivered at least once).
READ_ONLY = re.compile(
    r"(Describe|Get|List|Head|Lookup|Search|Batch(Get|Check)|Check|Simulate|Validate|Estimate|Select|AssumeRole|ReceiveMessage)"
)
SCOPE = re.compile(r"Credential=[^/]+/\d{8}/([^/]+)/([^/]+)/aws4_request")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One request, named. Parts that can't be told are empty."""

    service: str
    name: str
    region: str
    protocol: str

    @property
    def changes_state(self) -> bool:
        return not READ_ONLY.match(self.name)


def identify(environ: dict[str, Any], body: bytes) -> Operation:
    """Name a request by its signature's scope, its target header, its form, or its method and path."""
    query = environ.get("QUERY_STRING", "")
    scope = SCOPE.search(environ.get("HTTP_AUTHORIZATION", "")) or SCOPE.search(
        query.replace("%2F", "/").replace("X-Amz-Credential", "Credential")
    )
    region, signing_name = scope.groups() if scope else ("us-east-1", "s3")
    service = BOTO_NAMES.get(signing_name, signing_name)
    return Operation(service=service, name=_name(environ, service, query, body), region=region, protocol=_protocol(service))


def _name(environ: dict[str, Any], service: str, query: str, body: bytes) -> str:
    target = environ.get("HTTP_X_AMZ_TARGET")
    if target:
        return target.rpartition(".")[2]
    form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    found = re.search(rb"(?:^|&)Action=(\w+)", body) if form else None
    if found:
        return found.group(1).decode()
    if "Action" in (given := parse_qs(query)):
        return given["Action"][0]
    if service in REST:
        try:
            return get_service_router(service).match(BackendRequest(environ))[0].name
        except (HTTPException, NotImplementedError):
            pass
    # An operation that can't be named is judged by its method.
    return f"{'Get' if environ['REQUEST_METHOD'] in ('GET', 'HEAD') else 'Change'} {urlsplit(environ.get('PATH_INFO', '')).path}"


def _protocol(service: str) -> str:
    try:
        return str(get_service_model(service).protocol)
    except Exception:  # botocore's loader raises a family of errors for a service it does not know.
        return "json"
