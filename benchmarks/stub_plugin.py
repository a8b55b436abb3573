"""A resource plug-in that answers at once and calls nothing, so that a benchmark measures the engine and what is asked beside it.

python benchmarks/stub_plugin.py <engine address>
"""

import sys
import threading
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import empty_pb2 as _empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

empty_pb2: Any = _empty_pb2


class Stub(provider_pb2_grpc.ResourceProviderServicer):
    """Takes every resource as it is asked for."""

    def GetPluginInfo(self, request: Any, context: Any) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version="99.0.0")

    def GetSchema(self, request: Any, context: Any) -> provider_pb2.GetSchemaResponse:
        return provider_pb2.GetSchemaResponse(schema="{}")

    def CheckConfig(self, request: provider_pb2.CheckRequest, context: Any) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> provider_pb2.DiffResponse:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> provider_pb2.ConfigureResponse:
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    def Check(self, request: provider_pb2.CheckRequest, context: Any) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> provider_pb2.DiffResponse:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Create(self, request: provider_pb2.CreateRequest, context: Any) -> provider_pb2.CreateResponse:
        return provider_pb2.CreateResponse(id="" if request.preview else "id", properties=request.properties)

    def Delete(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()


def main() -> None:
    """Serve until the engine ends this process."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Stub(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
