"""A monitor that records what a program registers, and a runner for programs under it: no engine, no process, no network.

It shows what the stock mock monitor drops: parents, providers, protection, dependencies, deletion order and component outputs.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from google.protobuf import json_format
from pulumi.runtime import config as runtime_config
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import ROOT, SETTINGS
from pulumi.runtime.stack import run_in_stack

UNKNOWN = rpc.UNKNOWN
CLUSTER_TYPE = "eks:index:Cluster"
# What str() makes of an output, of any other object and of a coroutine that nobody awaited.
TRACES = ("Calling __str__", "Output[", "<pulumi.", "object at 0x", "<coroutine")


@dataclass(frozen=True, kw_only=True)
class Registration:
    """One registered resource, as the engine would see it."""

    type: str
    name: str
    urn: str
    parent: str
    custom: bool
    remote: bool
    provider: str
    providers: Mapping[str, str]
    inputs: dict[str, Any]
    dependencies: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    protect: bool
    retain_on_delete: bool
    delete_before_replace: bool
    deleted_with: str
    ignore_changes: tuple[str, ...]
    aliases: int
    delete_timeout: str
    num_transforms: int


@dataclass(kw_only=True)
class Recording:
    """What a run of a program registered, exported and logged."""

    registrations: list[Registration] = field(default_factory=list)
    component_outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    exports: dict[str, Any] = field(default_factory=dict)

    def of_type(self, type_: str) -> list[Registration]:
        """Return every registration of a type."""
        return [found for found in self.registrations if found.type == type_]

    def one(self, type_: str, name: str | None = None) -> Registration:
        """Return the one registration of a type (and name)."""
        found = [entry for entry in self.of_type(type_) if name in (None, entry.name)]
        assert len(found) == 1, f"{len(found)} registrations of {type_} {name or ''}: {[entry.name for entry in found]}"
        return found[0]

    def below(self, urn: str) -> list[Registration]:
        """Return every registration whose chain of parents leads to `urn`."""
        by_urn = {found.urn: found for found in self.registrations}

        def leads(found: Registration) -> bool:
            return found.parent == urn or (found.parent in by_urn and leads(by_urn[found.parent]))

        return [found for found in self.registrations if leads(found)]

    def waits_for(self, later: Registration, earlier: Registration) -> bool:
        """Return whether `later` depends on `earlier`, directly or through others; a resource also depends on its provider."""
        by_urn = {found.urn: found for found in self.registrations}
        seen: set[str] = set()
        open_ = [later.urn]
        while open_:
            urn = open_.pop()
            if urn in seen:
                continue
            seen.add(urn)
            if found := by_urn.get(urn):
                open_ += [*found.dependencies, found.provider.rpartition("::")[0]]
        return earlier.urn in seen - {later.urn}


def leaks(recording: Recording) -> list[str]:
    """Return where an input or export holds the text of an output or object instead of its value, or an unknown value within a text."""
    places = {entry.urn: entry.inputs for entry in recording.registrations} | {"exports": recording.exports}
    return [f"{place}: {text[:80]}" for place, values in places.items() for text in strings(values) if _is_leak(text)]


def _is_leak(text: str) -> bool:
    return any(trace in text for trace in TRACES) or (UNKNOWN in text and text != UNKNOWN)


def strings(value: Any) -> Iterator[str]:
    """Yield every text in plain data, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (*strings(key), *strings(item))
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


class AwsLike(mocks.Mocks):
    """Answers like AWS and Kubernetes would, or, with `resolved` false, like a preview: inputs come back, nothing else is known."""

    def __init__(self, *, resolved: bool, stack_outputs: Mapping[str, Any] | None = None) -> None:
        self.resolved = resolved
        self.stack_outputs = dict(stack_outputs or {})

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if args.typ == "pulumi:pulumi:StackReference":
            return args.name, {"name": args.name, "outputs": self.stack_outputs}
        if not self.resolved:
            return "", dict(args.inputs)
        return f"{args.name}-id", {**_computed(args), **args.inputs}

    def call(self, args: mocks.MockCallArgs) -> NoReturn:
        raise AssertionError(f"the program looks {args.token} up; it must not depend on the account it runs in")


def _computed(args: mocks.MockResourceArgs) -> dict[str, Any]:
    short = args.typ.rpartition(":")[2]
    return {
        "arn": f"arn:aws:mock:us-east-1:123456789012:{short.lower()}/{args.name}",
        "name": args.name,
        "url": f"https://mock/{args.name}",
        "dnsName": f"{args.name}.mock",
        "mountName": "mnt",
        "latestVersion": 1,
        "placementGroupId": "pg-0",
        "allocationId": f"eipalloc-{args.name}",
        "nodeGroupName": args.name,
        "status": "deployed" if short == "Release" else None,
        "kubeconfigJson": json.dumps({"apiVersion": "v1", "kind": "Config"}),
        "endpoint": "https://mock",
        "vpcConfig": {"clusterSecurityGroupId": "sg-cluster", "subnetIds": []},
    }


class RecordingMonitor(mocks.MockMonitor):
    """A mock monitor that keeps the whole of each registration."""

    def __init__(self, answers: AwsLike, recording: Recording) -> None:
        super().__init__(answers)
        self.answers = answers
        self.recording = recording

    def RegisterResource(self, request: resource_pb2.RegisterResourceRequest) -> resource_pb2.RegisterResourceResponse:
        response = super().RegisterResource(request)
        self.recording.registrations.append(_registration(request, response.urn))
        if request.type == CLUSTER_TYPE:
            self._add_control_plane(request, response)
        return response

    def _add_control_plane(self, request: resource_pb2.RegisterResourceRequest, response: resource_pb2.RegisterResourceResponse) -> None:
        """Answer `eksCluster` with a reference to a control plane, as the component provider does."""
        control_plane = mocks.MockResourceArgs(typ="aws:eks/cluster:Cluster", name=f"{request.name}-eksCluster", inputs={})
        identifier, state = self.answers.new_resource(control_plane)
        urn = self.make_urn(response.urn, control_plane.typ, control_plane.name)
        self.resources[urn] = mocks.MockMonitor.ResourceRegistration(urn, identifier, state)
        reference = {rpc._special_sig_key: rpc._special_resource_sig, "urn": urn, "id": identifier}
        response.object.fields["eksCluster"].struct_value.update(reference)

    def RegisterResourceOutputs(self, request: resource_pb2.RegisterResourceOutputsRequest) -> Any:
        outputs = _plain(request.outputs)
        if "pulumi:pulumi:Stack::" in request.urn:
            self.recording.exports = outputs
        else:
            self.recording.component_outputs[request.urn] = outputs
        return super().RegisterResourceOutputs(request)


def record(
    program: Callable[[], Any],
    *,
    resolved: bool = True,
    config: Mapping[str, Any] | None = None,
    stack_outputs: Mapping[str, Any] | None = None,
    project: str = "trainyard",
) -> Recording:
    """Run `program` under mocks and return what it registered.

    `resolved` false runs it as a first preview, in which only inputs are known. `config` holds the stack's configuration with full keys.
    """
    recording = Recording()
    answers = AwsLike(resolved=resolved, stack_outputs=stack_outputs)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        mocks.set_mocks(answers, project=project, stack="test", preview=not resolved, monitor=RecordingMonitor(answers, recording))
        # Setting mocks makes a stack of its own; the program's runner wants to make it.
        ROOT.set(None)
        SETTINGS.rpc_manager.clear()
        SETTINGS.outputs.clear()
        runtime_config.set_all_config(
            {key: value if isinstance(value, str) else json.dumps(value) for key, value in (config or {}).items()}
        )

        async def run() -> None:
            def body() -> None:
                program()

            await run_in_stack(body)

        loop.run_until_complete(run())
    finally:
        runtime_config.set_all_config({})
        loop.close()
    return recording


def _registration(request: resource_pb2.RegisterResourceRequest, urn: str) -> Registration:
    return Registration(
        type=request.type,
        name=request.name,
        urn=urn,
        parent=request.parent,
        custom=request.custom,
        remote=request.remote,
        provider=request.provider,
        providers=dict(request.providers),
        inputs=_plain(request.object),
        dependencies=tuple(request.dependencies),
        sources={key: tuple(value.urns) for key, value in request.propertyDependencies.items()},
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        delete_before_replace=request.deleteBeforeReplace,
        deleted_with=request.deletedWith,
        ignore_changes=tuple(request.ignoreChanges),
        aliases=len(request.aliases),
        delete_timeout=request.customTimeouts.delete,
        num_transforms=len(request.transforms),
    )


def _plain(message: Any) -> dict[str, Any]:
    """Return a struct as plain data, secrets unwrapped; an unknown value stays the UNKNOWN marker."""
    return _unwrap(json_format.MessageToDict(message))


def _unwrap(value: Any) -> Any:
    if isinstance(value, list):
        return [_unwrap(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(rpc._special_sig_key) == rpc._special_secret_sig:
        return {"secret": _unwrap(value.get("value"))}
    return {key: _unwrap(item) for key, item in value.items()}
