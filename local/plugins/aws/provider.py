"""The engine's ResourceProvider protocol, answered from the table."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from local.errors import LocalStackError
from local.plugins.aws import schema
from local.plugins.aws.check import Declared, check
from local.plugins.aws.clients import Clients, read_configuration
from local.plugins.aws.diff import Change, Difference, compare
from local.plugins.aws.errors import InitFailed
from local.plugins.aws.functions import FUNCTIONS
from local.plugins.aws.lifecycle import Lifecycle
from local.plugins.aws.package_schema import package_schema
from local.plugins.aws.row import Row
from local.plugins.aws.types import TABLE
from local.plugins.aws.values import UNKNOWN, decode, encode, has_unknown

# Protobuf makes its classes when it is imported, so a type checker can't see them.
protobuf_any: Any = any_pb2
protobuf_empty: Any = empty_pb2

_KINDS: Final = {
    (Change.ADD, False): provider_pb2.PropertyDiff.ADD,
    (Change.ADD, True): provider_pb2.PropertyDiff.ADD_REPLACE,
    (Change.DELETE, False): provider_pb2.PropertyDiff.DELETE,
    (Change.DELETE, True): provider_pb2.PropertyDiff.DELETE_REPLACE,
    (Change.UPDATE, False): provider_pb2.PropertyDiff.UPDATE,
    (Change.UPDATE, True): provider_pb2.PropertyDiff.UPDATE_REPLACE,
}


def _told(doing: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turn our errors into gRPC ones that say what was being done to what. Anything else is our own fault and says so too."""

    def wrap(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def answer(self: "AwsProvider", request: Any, context: grpc.ServicerContext) -> Any:
            what = f"{doing} {request.urn.rpartition('::')[2]}: " if getattr(request, "urn", "") else ""
            try:
                return method(self, request, context)
            except InitFailed as error:
                _abort_with_state(context, f"{what}{error}", error)
            except (LocalStackError, ValueError) as error:
                context.abort(grpc.StatusCode.UNKNOWN, f"{what}{error}")
            except Exception as error:
                context.abort(grpc.StatusCode.INTERNAL, f"{what}the stand-in aws plug-in failed: {type(error).__name__}: {error}")

        return answer

    return wrap


def _abort_with_state(context: grpc.ServicerContext, message: str, error: InitFailed) -> None:
    """The engine keeps a resource that exists although its creation or change failed, so nothing is lost from the state."""
    detail = provider_pb2.ErrorResourceInitFailed(id=error.resource_id, properties=encode(error.state), reasons=[str(error)])
    packed = protobuf_any.Any()
    packed.Pack(detail)
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=message, details=[packed])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, message)


class AwsProvider(provider_pb2_grpc.ResourceProviderServicer):
    """One configured provider. The engine starts a process for each."""

    def __init__(self) -> None:
        self._clients: Clients | None = None
        self._failure: LocalStackError | None = None

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        # Secrets arrive opened, and the engine marks the same properties of our answers secret again.
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=False, accept_resources=False, accept_outputs=False, supports_autonaming_configuration=True
        )

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version=schema.sdk_version())

    @_told("reading the schema")
    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.GetSchemaResponse(schema=package_schema())

    def GetMapping(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.GetMappingResponse()

    @_told("checking provider")
    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        news = decode(request.news)
        known = schema.provider_inputs()
        failures = [
            provider_pb2.CheckFailure(property=name, reason=f"the aws provider has no setting {name}; it has {', '.join(sorted(known))}")
            for name in news
            if name not in known and name != "version" and not name.startswith("__")
        ]
        if not failures and not has_unknown(news):
            try:
                read_configuration(news)
            except LocalStackError as error:
                failures.append(provider_pb2.CheckFailure(property="endpoints", reason=str(error)))
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Another region, endpoint or account makes no resource another one: the engine then only configures anew."""
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    @_told("configuring provider")
    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        args = decode(request.args) if request.HasField("args") else {}
        for key, value in request.variables.items():
            args.setdefault(key.rpartition(":")[2], value)
        self._clients = Clients(read_configuration({name: value for name, value in args.items() if value is not UNKNOWN}))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=False, supportsPreview=True, acceptResources=False, acceptOutputs=False, supports_autonaming_configuration=True
        )

    @_told("calling")
    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        function = FUNCTIONS.get(request.tok)
        if function is None:
            known = ", ".join(sorted(token.rpartition(":")[2] for token in FUNCTIONS))
            raise LocalStackError(f"the stand-in aws plug-in does not know function {request.tok}; it knows {known}")
        try:
            found = function(self._configured, decode(request.args))
        except LocalStackError as error:
            raise LocalStackError(f"{request.tok}: {error}") from error
        response = provider_pb2.InvokeResponse()
        # The field is called `return`, which Python can't spell.
        getattr(response, "return").CopyFrom(encode(found))
        return response

    @_told("checking")
    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        row, configuration = _row(request.urn), self._configured.configuration
        naming = request.autonaming if request.HasField("autonaming") else None
        declared = Declared(
            name=request.urn.rpartition("::")[2],
            news=decode(request.news),
            olds=decode(request.olds),
            seed=request.randomSeed,
            proposed_name=naming.proposed_name or None if naming else None,
            naming_off=naming is not None and naming.mode == provider_pb2.CheckRequest.AutonamingOptions.DISABLE,
            region=configuration.region,
            default_tags=configuration.default_tags,
        )
        inputs, failures = check(row, schema.schema_of(row.token), declared)
        return provider_pb2.CheckResponse(
            inputs=encode(inputs), failures=[provider_pb2.CheckFailure(property=one.path, reason=one.reason) for one in failures]
        )

    @_told("comparing")
    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        difference = compare(_row(request.urn), decode(request.old_inputs), decode(request.news))
        return _diff_response(difference)

    @_told("creating")
    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        row, inputs = _row(request.urn), decode(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(id="", properties=encode(_planned(row, inputs, {})))
        resource_id, state = self._lifecycle(row, request.timeout).create(request.urn, inputs)
        return provider_pb2.CreateResponse(id=resource_id, properties=encode(state))

    @_told("reading")
    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        row = _row(request.urn)
        inputs, state = decode(request.inputs), decode(request.properties)
        found = self._lifecycle(row, request.timeout).read(request.urn, request.id, inputs, state)
        if found is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(id=found.resource_id, properties=encode(found.state), inputs=encode(found.inputs))

    @_told("updating")
    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        row, olds, news = _row(request.urn), decode(request.old_inputs), decode(request.news)
        state = decode(request.olds)
        if request.preview:
            return provider_pb2.UpdateResponse(properties=encode(_planned(row, news, state)))
        return provider_pb2.UpdateResponse(
            properties=encode(self._lifecycle(row, request.timeout).update(request.urn, request.id, olds, state, news))
        )

    @_told("deleting")
    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        row = _row(request.urn)
        self._lifecycle(row, request.timeout).delete(request.urn, request.id, decode(request.old_inputs), decode(request.properties))
        return protobuf_empty.Empty()

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        if self._clients is not None:
            self._clients.cancelled.set()
        return protobuf_empty.Empty()

    @property
    def _configured(self) -> Clients:
        if self._clients is None:
            raise LocalStackError("the aws provider is used before it was configured")
        return self._clients

    def _lifecycle(self, row: Row, timeout: float) -> Lifecycle:
        return Lifecycle(row=row, schema=schema.schema_of(row.token), clients=self._configured, timeout=timeout)


def _row(urn: str) -> Row:
    token = urn.split("::")[2].rpartition("$")[2]
    if token not in TABLE:
        raise LocalStackError(
            f"the stand-in aws plug-in does not carry out type {token}; it knows {len(TABLE)} types (local/plugins/aws/types). "
            "Add a row there, or use the genuine plug-in: pulumi plugin install resource aws"
        )
    return TABLE[token]


def _diff_response(difference: Difference) -> Any:
    response = provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if difference.changes else provider_pb2.DiffResponse.DIFF_NONE,
        replaces=difference.replaces,
        diffs=difference.properties,
        deleteBeforeReplace=difference.delete_before_replace,
        hasDetailedDiff=True,
    )
    for path, change in difference.changes.items():
        response.detailedDiff[path].kind = _KINDS[change]
        response.detailedDiff[path].inputDiff = True
    return response


def _planned(row: Row, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs as a preview knows them: what is declared, what stays, and `UNKNOWN` for what AWS will decide."""
    declared = {name: value for name, value in inputs.items() if not name.startswith("__")}
    outputs = schema.schema_of(row.token).outputs
    if state:
        kept = {name: value for name, value in state.items() if name not in row.volatile and name != "id"}
        return kept | dict.fromkeys(row.volatile, UNKNOWN) | declared
    open_inputs = (name for name, prop in row.props.items() if prop.computed and name in outputs)
    return dict.fromkeys((*row.outputs, *open_inputs), UNKNOWN) | declared
