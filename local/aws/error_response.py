"""Error answers that AWS gives whatever the operation: throttling and internal failures, in the service's wire format."""

import json
from collections.abc import Iterable
from xml.sax.saxutils import escape

from werkzeug.datastructures import Headers

from local.aws.operation import Operation

# Code and HTTP status by protocol, as the SDKs' retry rules know them.
THROTTLES = {
    "ec2": ("RequestLimitExceeded", 503),
    "query": ("Throttling", 400),
    "rest-xml": ("SlowDown", 503),
    "json": ("ThrottlingException", 400),
    "rest-json": ("TooManyRequestsException", 429),
}
FAILURES = {"ec2": "InternalError", "query": "InternalFailure", "rest-xml": "InternalError"}


def error_response(operation: Operation, kind: str, reason: str = "on purpose") -> tuple[Iterable[bytes], str, Headers]:
    """The answer for a `throttle` or an `error` fault, or for an operation that is `missing` here."""
    if kind == "throttle":
        code, status = THROTTLES.get(operation.protocol, THROTTLES["json"])
    elif kind == "missing":
        code, status = "NotImplemented", 501
    else:
        code, status = FAILURES.get(operation.protocol, "InternalServerError"), 500
    message = f"{operation.service} {operation.name}: {kind}, {reason}"
    if operation.protocol in ("json", "rest-json"):
        headers = Headers({"Content-Type": "application/x-amz-json-1.1", "x-amzn-ErrorType": code})
        return [json.dumps({"__type": code, "message": message}).encode()], f"{status} {code}", headers
    text = _xml(operation.protocol, f"<Code>{code}</Code><Message>{escape(message)}</Message>")
    return [text.encode()], f"{status} {code}", Headers({"Content-Type": "text/xml"})


def _xml(protocol: str, error: str) -> str:
    if protocol == "ec2":
        return f"<Response><Errors><Error>{error}</Error></Errors><RequestID>fault</RequestID></Response>"
    if protocol == "rest-xml":
        return f"<Error>{error}<RequestId>fault</RequestId></Error>"
    return f"<ErrorResponse><Error>{error}</Error><RequestId>fault</RequestId></ErrorResponse>"
