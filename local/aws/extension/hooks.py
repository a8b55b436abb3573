"""How an operation of ours enters moto: a method added to its response class, or a wrapper around one that is there.

moto parses requests and writes answers from botocore's service models; the functions here only see plain dictionaries
with the names of the AWS API on both sides, whatever the wire format.
"""

from collections.abc import Callable, Mapping
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse

Params = dict[str, Any]
# What a function of ours gets as first argument: moto's response object of this one request (account, region, backends).
Call = Any
Operation = Callable[[Call, Params], Mapping[str, Any] | None]
Guard = Callable[[Call, Params], None]
Completion = Callable[[Call, Params, Any], None]


class Refusal(ServiceException):
    """An error that AWS would answer: `code` is AWS's own error code, `message` what it says."""

    def __init__(self, code: str, message: str, **fields: Any) -> None:
        super().__init__(code, message)
        # Members of the modelled error besides its message, such as `clusterName` of EKS.
        for name, value in fields.items():
            setattr(self, name, value)


def parameters(call: Call) -> Params:
    """The request's parameters as the service model names them."""
    call.parse_parameters(call.normalized_request)
    return call.params


def add_operations(response: type[BaseResponse], operations: Mapping[str, Operation]) -> None:
    """Answer the named operations (snake case) by functions of ours, in place of moto's where it has them."""
    for name, operation in operations.items():
        setattr(response, name, _method(operation))


def add_guards(response: type[BaseResponse], guards: Mapping[str, Guard]) -> None:
    """Run a check before moto's own method; a `Refusal` that it raises is the answer."""
    for name, guard in guards.items():
        setattr(response, name, _guarded(guard, getattr(response, name)))


def add_completions(response: type[BaseResponse], completions: Mapping[str, Completion]) -> None:
    """Let a function of ours complete what moto's own method has made; it gets the answer's dictionary, or moto's object."""
    for name, completion in completions.items():
        setattr(response, name, _completed(completion, getattr(response, name)))


def _method(operation: Operation) -> Callable[[Call], ActionResult]:
    def answer(self: Call) -> ActionResult:
        return ActionResult(operation(self, parameters(self)))

    return answer


def _guarded(guard: Guard, original: Callable[[Call], Any]) -> Callable[[Call], Any]:
    def answer(self: Call) -> Any:
        guard(self, parameters(self))
        return original(self)

    return answer


def _completed(completion: Completion, original: Callable[[Call], Any]) -> Callable[[Call], Any]:
    def answer(self: Call) -> Any:
        given = parameters(self)
        result = original(self)
        completion(self, given, result.result if isinstance(result, ActionResult) else result)
        return result

    return answer
