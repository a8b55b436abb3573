"""What a stack left behind, asked of AWS itself: of an account, or of the emulator.

A resource counts if it carries one of the given tags, or belongs to one that does. Terminated instances and keys that wait for their
deletion don't count; nor do the parts of a default VPC.
"""

import functools
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local.errors import LocalStackError

THREADS = 8


@dataclass(frozen=True, kw_only=True, order=True)
class Leftover:
    """One resource: its kind (boto3's service and the noun), its id, a name for people, its tags."""

    kind: str
    id: str
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.id}" + (f" ({self.name})" if self.name and self.name != self.id else "")


class Account:
    """Clients of one account and region, and the answers of paginated calls as plain lists."""

    def __init__(self, session: boto3.session.Session, endpoint: str | None) -> None:
        self._session, self._endpoint = session, endpoint
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """A boto3 client; made once."""
        if service not in self._clients:
            config = Config(retries={"mode": "standard", "max_attempts": 5}, max_pool_connections=THREADS, s3={"addressing_style": "path"})
            self._clients[service] = self._session.client(service, endpoint_url=self._endpoint, config=config)
        return self._clients[service]

    def every(self, service: str, operation: str, member: str, **given: Any) -> list[Any]:
        """All items of `member` over all pages."""
        client = self.client(service)
        if not client.can_paginate(operation):
            return getattr(client, operation)(**given).get(member, [])
        return [item for page in client.get_paginator(operation).paginate(**given) for item in page.get(member) or []]


@functools.cache
def emulator_session(region: str = "us-east-1") -> boto3.session.Session:
    """A session for the emulator, whatever credentials the environment holds. One a region: it keeps the service models it has read."""
    return boto3.session.Session(aws_access_key_id="local", aws_secret_access_key="local", region_name=region)


@functools.cache
def _account(session: boto3.session.Session, endpoint: str | None) -> Account:
    return Account(session, endpoint)


def leftovers(
    session: boto3.session.Session,
    tags: Mapping[str, str],
    *,
    endpoint: str | None = None,
    name_prefix: str | None = None,
) -> list[Leftover]:
    """Resources of the stack that still exist, sorted.

    Args:
        session: credentials and region.
        tags: a resource with any one of them counts; a value may be a pattern (`*`).
        endpoint: the emulator's URL; None asks AWS.
        name_prefix: resources whose id or name starts with it count too.

    Raises:
        LocalStackError: a kind could not be asked for; names it and AWS's answer.
    """
    if not tags and not name_prefix:
        raise LocalStackError("leftovers: neither tags nor a name prefix were given, so every resource of the account would count")
    return sorted(each for each in _collect(_account(session, endpoint)) if _belongs(each, tags, name_prefix))


def inventory(endpoint: str, region: str = "us-east-1") -> list[Leftover]:
    """Everything in the emulator that a fresh account does not have, sorted."""
    return sorted(_collect(_account(emulator_session(region), endpoint)))


def _belongs(found: Leftover, tags: Mapping[str, str], prefix: str | None) -> bool:
    if any(key in found.tags and fnmatchcase(found.tags[key], wanted) for key, wanted in tags.items()):
        return True
    return bool(prefix) and (found.id.startswith(str(prefix)) or found.name.startswith(str(prefix)))


def _collect(account: Account) -> Iterable[Leftover]:
    from local.aws.inventory_kinds import COLLECTORS

    # boto3 clients may be shared by threads, but not made by several at once.
    for service in {service for services, _ in COLLECTORS for service in services}:
        account.client(service)
    with ThreadPoolExecutor(THREADS) as pool:
        answers = [(services, pool.submit(lambda each: list(each(account)), collector)) for services, collector in COLLECTORS]
    failed = []
    for services, answer in answers:
        try:
            yield from answer.result()
        except (ClientError, BotoCoreError) as error:
            failed.append(f"{', '.join(services)}: {error}")
    if failed:
        raise LocalStackError("what is left can't be told, as these could not be asked for:\n" + "\n".join(failed))
