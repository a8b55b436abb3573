"""Speaks the engine's side of the protocol to the stand-in aws plug-in: what one resource goes through, step by step."""

import time
from collections.abc import Collection, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from local.plugins.aws.provider import AwsProvider
from local.plugins.aws.values import decode, encode

# Protobuf makes its classes when it is imported, so a type checker can't see them.
protobuf_empty: Any = empty_pb2
REGION = "us-west-2"
TIMEOUT = 15.0
"""Seconds for waits: the emulator is quick, and a test that waits longer has found something."""


@dataclass(kw_only=True)
class Resource:
    """A resource as the engine's state has it."""

    token: str
    name: str
    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any] = field(default_factory=dict)

    @property
    def urn(self) -> str:
        return urn(self.token, self.name)

    def __getitem__(self, name: str) -> Any:
        return self.outputs[name]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a Diff answered: property path -> kind such as UPDATE_REPLACE."""

    changes: dict[str, str]
    replaces: list[str]
    delete_before_replace: bool


class CheckFailed(Exception):
    """Check refused the inputs; `failures` maps property to reason."""

    def __init__(self, failures: dict[str, str]) -> None:
        super().__init__(str(failures))
        self.failures = failures


def urn(token: str, name: str) -> str:
    return f"urn:pulumi:test::project::{token}::{name}"


class Driver:
    """The engine's steps, one call each."""

    def __init__(self, stub: Any) -> None:
        self.stub = stub
        self.endpoint = ""
        # Names must not meet those of an earlier test on the same emulator.
        self.seed = time.time_ns()

    def configure(self, endpoint: str, **settings: Any) -> None:
        self.endpoint = endpoint
        args = {"region": REGION, "endpoints": [dict.fromkeys(SERVICES, endpoint)], **settings}
        self.stub.Configure(provider_pb2.ConfigureRequest(args=encode(args)))

    def check(self, token: str, name: str, news: dict[str, Any], olds: dict[str, Any] | None = None) -> dict[str, Any]:
        self.seed += 1
        request = provider_pb2.CheckRequest(
            urn=urn(token, name), news=encode(news), olds=encode(olds or {}), randomSeed=self.seed.to_bytes(32, "big")
        )
        response = self.stub.Check(request)
        if response.failures:
            raise CheckFailed({one.property: one.reason for one in response.failures})
        return decode(response.inputs)

    def preview(self, token: str, name: str, /, **news: Any) -> dict[str, Any]:
        inputs = self.check(token, name, news)
        response = self.stub.Create(provider_pb2.CreateRequest(urn=urn(token, name), properties=encode(inputs), preview=True))
        return decode(response.properties)

    def create(self, token: str, name: str, /, **news: Any) -> Resource:
        inputs = self.check(token, name, news)
        response = self.stub.Create(provider_pb2.CreateRequest(urn=urn(token, name), properties=encode(inputs), timeout=TIMEOUT))
        return Resource(token=token, name=name, id=response.id, inputs=inputs, outputs=decode(response.properties))

    def plan(self, resource: Resource, /, **news: Any) -> Plan:
        return self.compare(resource, resource.inputs, self.check(resource.token, resource.name, news, resource.inputs))

    def compare(self, resource: Resource, olds: dict[str, Any], news: dict[str, Any]) -> Plan:
        request = provider_pb2.DiffRequest(
            id=resource.id, urn=resource.urn, olds=encode(resource.outputs), old_inputs=encode(olds), news=encode(news)
        )
        response = self.stub.Diff(request)
        kinds = {path: provider_pb2.PropertyDiff.Kind.Name(one.kind) for path, one in response.detailedDiff.items()}
        return Plan(changes=kinds, replaces=list(response.replaces), delete_before_replace=response.deleteBeforeReplace)

    def update(self, resource: Resource, /, **news: Any) -> None:
        inputs = self.check(resource.token, resource.name, news, resource.inputs)
        request = provider_pb2.UpdateRequest(
            id=resource.id,
            urn=resource.urn,
            olds=encode(resource.outputs),
            old_inputs=encode(resource.inputs),
            news=encode(inputs),
            timeout=TIMEOUT,
        )
        resource.outputs = decode(self.stub.Update(request).properties)
        resource.inputs = inputs

    def read(self, resource: Resource) -> Resource | None:
        request = provider_pb2.ReadRequest(
            id=resource.id, urn=resource.urn, inputs=encode(resource.inputs), properties=encode(resource.outputs)
        )
        return self._found(resource, self.stub.Read(request))

    def drift(self, resource: Resource) -> dict[str, str]:
        """What a refresh would show, as the engine finds it: the differences from what is there to what was declared."""
        found = self.read(resource)
        assert found is not None, f"{resource.token} {resource.id} is gone"
        return self.compare(found, found.inputs, resource.inputs).changes

    def imported(self, resource: Resource, import_id: str | None = None) -> Resource | None:
        request = provider_pb2.ReadRequest(id=import_id or resource.id, urn=resource.urn)
        return self._found(resource, self.stub.Read(request))

    def delete(self, resource: Resource) -> None:
        self.stub.Delete(
            provider_pb2.DeleteRequest(
                id=resource.id, urn=resource.urn, properties=encode(resource.outputs), old_inputs=encode(resource.inputs), timeout=TIMEOUT
            )
        )

    def cancel(self) -> None:
        self.stub.Cancel(protobuf_empty.Empty())

    def invoke(self, token: str, /, **args: Any) -> dict[str, Any]:
        response = self.stub.Invoke(provider_pb2.InvokeRequest(tok=token, args=encode(args)))
        return decode(getattr(response, "return"))

    def _found(self, resource: Resource, response: Any) -> Resource | None:
        if not response.id:
            return None
        return Resource(
            token=resource.token, name=resource.name, id=response.id, inputs=decode(response.inputs), outputs=decode(response.properties)
        )


class Life:
    """Resources that a test makes, each taken through what the engine does with it; `end` removes them in reverse."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.made: list[Resource] = []

    def of(
        self,
        token: str,
        name: str,
        /,
        change: dict[str, Any] | None = None,
        import_id: str | None = None,
        not_imported: Collection[str] = (),
        **inputs: Any,
    ) -> Resource:
        """Preview, create, compare, refresh, import and (with `change`) update one resource, each without a surprise.

        `change` are inputs to set, or to take away with None. `not_imported` are inputs that AWS does not tell.
        """
        self.driver.preview(token, name, **inputs)
        resource = self.driver.create(token, name, **inputs)
        self.made.append(resource)
        assert self.driver.plan(resource, **inputs).changes == {}, "unchanged inputs are a change"
        self._agrees(resource)
        imported = self.driver.imported(resource, import_id)
        assert imported is not None
        assert imported.id == resource.id
        differing = self.driver.compare(imported, imported.inputs, resource.inputs).changes
        assert {path.partition(".")[0].partition("[")[0] for path in differing} <= set(not_imported), f"imported inputs differ: {differing}"
        if change is not None:
            news = {key: value for key, value in (inputs | change).items() if value is not None}
            plan = self.driver.plan(resource, **news)
            assert plan.changes
            assert plan.replaces == []
            self.driver.update(resource, **news)
            self._agrees(resource)
        return resource

    def end(self) -> None:
        """Delete everything; a second deletion of what is gone is no error."""
        for resource in reversed(self.made):
            self.driver.delete(resource)
            if resource.token not in STAYING:
                assert self.driver.read(resource) is None, f"{resource.token} {resource.id} is still there"
            self.driver.delete(resource)
        self.made.clear()

    def _agrees(self, resource: Resource) -> None:
        """A refresh shows no drift, and the same outputs as creation or update did."""
        found = self.driver.read(resource)
        assert found is not None
        assert self.driver.compare(found, found.inputs, resource.inputs).changes == {}, "drift where nobody changed anything"
        assert found.outputs == resource.outputs


STAYING = {
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
    "aws:efs/backupPolicy:BackupPolicy",
    "aws:s3/bucketVersioning:BucketVersioning",
}
"""Settings that AWS has no deletion of."""
SERVICES = ("ec2", "eks", "iam", "sts", "sqs", "events", "logs", "fsx", "efs", "s3", "kms", "ssm", "ecr")


@contextmanager
def running_driver() -> Generator[Driver]:
    """A plug-in in this process behind a real gRPC channel."""
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(AwsProvider(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Driver(provider_pb2_grpc.ResourceProviderStub(channel))
    finally:
        server.stop(grace=0).wait(2)
