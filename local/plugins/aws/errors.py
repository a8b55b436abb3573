"""Failures of AWS calls, told with AWS's code and message and with the Pulumi property they are about."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from local.errors import LocalStackError

_GONE_WORDS: Final = ("NotFound", "NoSuch", "NonExistent", "DoesNotExist")


class AwsError(LocalStackError):
    """A refused or failed AWS call. `code` is AWS's own error code."""

    def __init__(self, message: str, *, code: str, response: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.response = response or {}

    def is_gone(self, more: Iterable[str] = ()) -> bool:
        """Whether the code says that the thing does not exist."""
        return self.code in more or any(word in self.code for word in _GONE_WORDS)


class InitFailed(LocalStackError):
    """A resource exists, but making or changing it did not end well. The engine keeps it with this state and reports the reason."""

    def __init__(self, message: str, *, resource_id: str, state: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.state = state


def call_failed(op: str, error: Exception, params: Mapping[str, Any], sources: Mapping[str, str]) -> AwsError:
    """An error of botocore as one of ours. `sources` says which Pulumi property filled which parameter."""
    response = getattr(error, "response", None)
    if response:
        code, text = response["Error"].get("Code", "Unknown"), response["Error"].get("Message", "")
    else:
        code, text = type(error).__name__, str(error)
    message = f"{op}: {code}: {text}"
    named = _properties_in(text, params, sources)
    if named:
        message += f" [{', '.join(named)}]"
    return AwsError(message, code=code, response=response)


def _properties_in(text: str, params: Mapping[str, Any], sources: Mapping[str, str]) -> list[str]:
    """Properties whose parameter, or whose value, AWS's message speaks of."""
    lowered = text.lower()
    found = [name for path, name in sources.items() if path.rpartition(".")[2].lower() in lowered]
    if not found:
        found = [name for path, name in sources.items() if (value := _at(params, path)) and len(str(value)) > 2 and str(value) in text]
    return [f"property {name}" for name in dict.fromkeys(found)]


def _at(params: Any, path: str) -> Any:
    for step in path.split("."):
        params = params.get(step) if isinstance(params, Mapping) else None
    return params if isinstance(params, str | int) else None
