"""One operation on one resource: what the steps of a row are given, and how they talk to AWS."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeVar

from local.plugins.aws.clients import Clients
from local.plugins.aws.convert import param_path, to_aws, walk
from local.plugins.aws.errors import AwsError, call_failed
from local.plugins.aws.naming import client_token
from local.plugins.aws.row import Call, Described, Row, Step, Tags, Wait
from local.plugins.aws.schema import TypeSchema

T = TypeVar("T")
_EMPTY: Final = {"string": "", "list": [], "map": {}, "object": {}, "boolean": False}


@dataclass(kw_only=True, slots=True)
class Run:
    """The resource being worked on."""

    row: Row
    schema: TypeSchema
    clients: Clients
    urn: str
    inputs: Mapping[str, Any]
    """As declared now."""
    olds: Mapping[str, Any]
    """As declared before (update)."""
    state: dict[str, Any]
    """As recorded by the engine, with what the identifier spells out."""
    resource_id: str = ""
    timeout: float = 0.0
    made: Mapping[str, Any] = field(default_factory=dict)
    """What creation answered."""
    attempt: int = 0
    """How often a client token has led to something deleted already."""

    @property
    def region(self) -> str:
        """The resource's own region, which defaults to the provider's."""
        return self.inputs.get("region") or self.state.get("region") or self.clients.configuration.region

    @property
    def partition(self) -> str:
        """AWS partition of the region."""
        return "aws-cn" if self.region.startswith("cn-") else "aws-us-gov" if self.region.startswith("us-gov-") else "aws"

    def value(self, name: str) -> Any:
        """A property as declared, else as recorded; `id` is the identifier."""
        if name == "id":
            return self.resource_id
        declared = self.inputs.get(name)
        return declared if declared is not None else self.state.get(name)

    def filled(self, template: str) -> str:
        """A template with {id}, {region}, {account}, {partition} and properties put in."""
        return template.format_map(_Names(self))

    def call(
        self, op: str, params: Mapping[str, Any], sources: Mapping[str, str] | None = None, service: str | None = None
    ) -> dict[str, Any]:
        """Call an operation by botocore's name. `sources` says which property filled which parameter, for error messages.

        Raises:
            AwsError: AWS or botocore's own check refused it.
        """
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        client = self.clients.client(service or self.row.service, self.region)
        try:
            return client._make_api_call(op, dict(params))
        except (ClientError, BotoCoreError, ResponseParserError) as error:
            raise call_failed(op, error, params, sources or {}) from error

    def do(self, step: Step, *, creating: bool = False, only: Sequence[str] | None = None) -> Any:
        """Carry out a step of the row: a function, or a call with its properties, token and tags as parameters."""
        if not isinstance(step, Call):
            return step(self)
        params, sources = self.params(step, creating=creating, only=only)
        return search(step.result, self.call(step.op, params, sources))

    def params(self, call: Call, *, creating: bool = False, only: Sequence[str] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
        """Parameters of a call, and parameter path -> property that filled it."""
        shape = self.clients.client(self.row.service, self.region).meta.service_model.operation_model(call.op).input_shape
        params = _substituted(call.by, self)
        sources: dict[str, str] = {}
        names = only if only is not None else call.takes if call.takes is not None else tuple(self.row.props) if creating else ()
        for name in names:
            self._place(params, sources, call, shape, name, creating=creating)
        if call.token:
            params.setdefault(call.token, client_token(self.urn, self.inputs, self.attempt))
        if creating and self.row.tags is not None and (tags := self.inputs.get("tagsAll")):
            self._place_tags(params, tags)
        return params, sources

    def _place(self, params: dict[str, Any], sources: dict[str, str], call: Call, shape: Any, name: str, *, creating: bool) -> None:
        prop, value = self.row.props[name], self.inputs.get(name)
        if prop.write_only or (creating and (value is None or prop.param == "")):
            return
        path = param_path(shape, call, name, None if prop.param == "" else prop)
        if path is None:
            raise AwsError(f"{call.op} takes no parameter for property {name} of {self.row.token}", code="TableError")
        if value is None:
            value = prop.default if prop.default is not None else _EMPTY.get(self.schema.inputs[name]["t"])
            if value is None:
                return
        if prop.send is not None:
            value = prop.send(value)
        try:
            converted = to_aws(value, walk(shape, path), prop.names)
        except ValueError as error:
            raise AwsError(f"{self.row.token}: {name}.{error}", code="BadProperty") from error
        _put(params, path, converted)
        sources[path] = name

    def _place_tags(self, params: dict[str, Any], tags: Mapping[str, str]) -> None:
        rule = self.row.tags
        assert rule is not None
        if rule.spec:
            items = [{"Key": key, "Value": value} for key, value in tags.items()]
            params.setdefault("TagSpecifications", []).append({"ResourceType": rule.spec, "Tags": items})
        elif rule.create:
            _put(params, rule.create, _tags_as(rule, tags))

    def describe(self) -> Described | None:
        """What AWS says about the resource; None where there is none."""
        try:
            found = self.do(self.row.read)
        except AwsError as error:
            if error.is_gone(self.row.gone):
                return None
            raise
        return found or None

    def tags(self, described: Described) -> dict[str, str]:
        """The resource's tags, without AWS's own."""
        rule = self.row.tags
        assert rule is not None
        found = search(rule.at, self.do(rule.read) if rule.read is not None else described) or {}
        if not isinstance(found, Mapping):
            key, value = rule.form.split("/")
            found = {item[key]: item[value] for item in found}
        return {key: value for key, value in found.items() if not key.startswith("aws:")}

    def apply_tags(self, olds: Mapping[str, str], news: Mapping[str, str]) -> None:
        """Add and remove tags so that `news` hold."""
        rule = self.row.tags
        if rule is None:
            return
        changed = {key: value for key, value in news.items() if olds.get(key) != value}
        gone = [key for key in olds if key not in news]
        if rule.put is not None:
            if changed or gone:
                rule.put(self, news)
            return
        if gone and rule.remove is not None:
            items: Any = [{"Key": key} for key in gone] if rule.remove_as == "Tags" else gone
            self.call(rule.remove.op, {**_substituted(rule.remove.by, self), rule.remove_as: items}, {rule.remove_as: "tags"})
        if changed and rule.add is not None:
            self.call(rule.add.op, {**_substituted(rule.add.by, self), rule.add_as: _tags_as(rule, changed)}, {rule.add_as: "tags"})

    def retried(self, action: Callable[[], T], codes: Sequence[str], seconds: float) -> T:
        """Repeat an action while it fails with one of `codes`, with growing pauses, for at most so many seconds."""
        pause, deadline = 0.25, time.monotonic() + seconds
        while True:
            try:
                return action()
            except AwsError as error:
                if error.code not in codes or time.monotonic() + pause > deadline:
                    raise
            run_paused(self, pause)
            pause = min(pause * 2, 5.0)


def waited(run: Run, wait: Wait | None, *, deleting: bool = False) -> Described | None:
    """Describe the resource until the condition holds; None where it does not exist.

    Raises:
        AwsError: it reached a failed state, or the time is up.
    """
    pause = 0.1
    deadline = time.monotonic() + (run.timeout or (wait.seconds if wait else 0.0))
    while True:
        described = run.describe()
        if wait is None or (described is None and deleting):
            return described
        now = search(wait.at, described) if described is not None else None
        if now in wait.done:
            return described
        if now in wait.failed:
            why = search(wait.reason, described) if wait.reason else None
            raise AwsError(f"{run.row.token} {run.resource_id}: {wait.at} is {now}{f': {why}' if why else ''}", code="FailedState")
        if time.monotonic() + pause > deadline:
            wanted = "gone" if deleting else " or ".join(map(str, wait.done))
            raise AwsError(f"{run.row.token} {run.resource_id}: {wait.at} is still {now}, not {wanted}", code="Timeout")
        run_paused(run, pause)
        pause = min(pause * 1.6, 3.0)


def run_paused(run: Run, seconds: float) -> None:
    """Sleep, unless the engine has called the work off."""
    if run.clients.cancelled.wait(seconds):
        raise AwsError(f"{run.row.token}: cancelled while waiting", code="Cancelled")


def search(path: str, value: Any) -> Any:
    """JMESPath in a value."""
    return value if path == "@" else _compiled(path).search(value)


@lru_cache(maxsize=1024)
def _compiled(path: str) -> Any:
    import jmespath

    return jmespath.compile(path)


class _Names(dict):
    """Names that a template may use."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    def __missing__(self, name: str) -> Any:
        if name == "account":
            return self._run.clients.account
        if name in ("region", "partition"):
            return getattr(self._run, name)
        value = self._run.value(name)
        if value is None:
            raise AwsError(f"{self._run.row.token}: property {name} is not known", code="TableError")
        return value


def _substituted(value: Any, run: Run) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        return run.value(value[1:])
    if isinstance(value, str) and "{" in value:
        return run.filled(value)
    if isinstance(value, Mapping):
        filled = {key: _substituted(item, run) for key, item in value.items()}
        return {key: item for key, item in filled.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_substituted(item, run) for item in value]
    return value


def _put(params: dict[str, Any], path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for step in outer:
        params = params.setdefault(step, {})
    if isinstance(value, dict) and isinstance(params.get(last), dict):
        params[last] |= value
    else:
        params[last] = value


def _tags_as(rule: Tags, tags: Mapping[str, str]) -> Any:
    if rule.form == "map":
        return dict(tags)
    key, value = rule.form.split("/")
    return [{key: name, value: text} for name, text in tags.items()]
