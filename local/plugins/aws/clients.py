"""The provider's configuration and its boto3 clients, which only ever talk to a loopback address."""

import ipaddress
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from local.errors import LocalStackError

_ENDPOINT_KEYS: Final = {
    "events": ("events", "eventbridge", "cloudwatchevents"),
    "logs": ("logs", "cloudwatchlogs", "cloudwatchlog"),
    "ecr": ("ecr",),
}
"""boto3's service -> names the provider's `endpoints` may use for it, where they differ."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """What the engine configures the provider with."""

    region: str
    endpoints: Mapping[str, str] = field(default_factory=dict)
    """Service, or "*" for all -> URL."""
    default_tags: Mapping[str, str] = field(default_factory=dict)
    access_key: str = "local"
    secret_key: str = "local"
    path_style: bool = True

    def endpoint(self, service: str) -> str:
        """URL of a service.

        Raises:
            LocalStackError: there is none. Falling back to AWS itself is never right here.
        """
        for key in (*_ENDPOINT_KEYS.get(service, (service,)), "*"):
            if key in self.endpoints:
                return self.endpoints[key]
        raise LocalStackError(
            f"the stand-in aws plug-in has no endpoint for service {service}, and never talks to AWS itself: "
            f"name one in the provider's `endpoints` or in AWS_ENDPOINT_URL, such as http://127.0.0.1:5000"
        )


def read_configuration(args: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Configuration:
    """The provider's arguments, and AWS's own environment variables where those say nothing.

    Raises:
        LocalStackError: no region, no endpoint, or an endpoint that is not a loopback address.
    """
    region = args.get("region") or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        raise LocalStackError("the aws provider needs a region: set `region` on it, aws:region, or AWS_REGION")
    endpoints = _environment_endpoints(environment)
    for entry in opened(args.get("endpoints")) or []:
        endpoints |= {service: url for service, url in entry.items() if url}
    if not endpoints:
        raise LocalStackError(
            "this is the stand-in for the aws plug-in; it works on a local emulator only and was given no endpoint. "
            "Set the provider's `endpoints` or AWS_ENDPOINT_URL to a loopback address such as http://127.0.0.1:5000; "
            "for a real account install the genuine plug-in: pulumi plugin install resource aws"
        )
    for service, url in sorted(endpoints.items()):
        _require_loopback(service, url)
    return Configuration(
        region=region,
        endpoints=endpoints,
        default_tags=(opened(args.get("defaultTags")) or {}).get("tags") or {},
        access_key=args.get("accessKey") or "local",
        secret_key=args.get("secretKey") or "local",
        path_style=str(opened(args.get("s3UsePathStyle"))).lower() != "false",
    )


def opened(value: Any) -> Any:
    """The engine hands nested provider settings over as JSON text."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.loads(value)
    return value


def _environment_endpoints(environment: Mapping[str, str]) -> dict[str, str]:
    prefix = "AWS_ENDPOINT_URL"
    found = {key.removeprefix(f"{prefix}_").lower(): url for key, url in environment.items() if key.startswith(f"{prefix}_") and url}
    if environment.get(prefix):
        found["*"] = environment[prefix]
    return found


def _require_loopback(service: str, url: str) -> None:
    host = urlsplit(url).hostname or ""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        what = "AWS_ENDPOINT_URL" if service == "*" else f"endpoint of {service}"
        raise LocalStackError(
            f"{what} is {url}: the stand-in aws plug-in talks to loopback addresses only (127.0.0.0/8, ::1, localhost). "
            "For anything else install the genuine plug-in: pulumi plugin install resource aws"
        )


class Clients:
    """boto3 clients by service and region, made when first asked for. Safe to use from several threads."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.cancelled = threading.Event()
        """Set once the engine calls its work off; waits end then."""
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()
        self._account = ""

    def client(self, service: str, region: str | None = None) -> Any:
        """The client of a service; `region` defaults to the provider's."""
        key = (service, region or self.configuration.region)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._make(*key)
            return self._clients[key]

    @property
    def account(self) -> str:
        """Account id that the emulator answers with."""
        if not self._account:
            self._account = self.client("sts").get_caller_identity()["Account"]
        return self._account

    def _make(self, service: str, region: str) -> Any:
        import boto3
        from botocore.config import Config

        settings = self.configuration
        return boto3.session.Session().client(
            service,
            region_name=region,
            endpoint_url=settings.endpoint(service),
            aws_access_key_id=settings.access_key,
            aws_secret_access_key=settings.secret_key,
            config=Config(
                retries={"mode": "standard", "max_attempts": 6},
                connect_timeout=5,
                read_timeout=60,
                max_pool_connections=32,
                proxies={},
                s3={"addressing_style": "path" if settings.path_style else "auto"},
            ),
        )
