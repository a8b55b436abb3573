"""Looks in AWS for resources that the state lacks."""

import time
from collections.abc import Callable, Iterable, Mapping

from botocore.exceptions import BotoCoreError, ClientError

from local.aws.inventory import Account
from local.errors import LocalStackError
from trainyard.recovery.aws_kinds import KINDS, REPEATABLE
from trainyard.recovery.wanted import Found, Wanted, is_meant

SETTLE_SECONDS = 2400.0
"""How long AWS may take to make something: a cluster takes ten minutes, a Lustre file system about as much."""
_POLL_SECONDS = 5.0


class AwsSearch:
    """Finds what is tagged with the stack's tags, or belongs to something that is."""

    def __init__(self, account: Account, tags: Mapping[str, str], on_wait: Callable[[str], None]) -> None:
        self._account, self._tags, self._on_wait = account, tags, on_wait

    def knows(self, wanted: Wanted) -> bool:
        """Whether it can tell if this kind of resource exists, or need not."""
        return wanted.kind in KINDS or wanted.kind in REPEATABLE

    def find(self, wanted: Wanted, taken: set[str]) -> Found | None:
        """The resource if it exists, usable or failed for good. `taken` are the ids that the state has already.

        Raises:
            LocalStackError: AWS did not answer, or the resource is not usable after `SETTLE_SECONDS`.
        """
        if wanted.kind not in KINDS:
            return None
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            found = self._first(wanted, taken)
            if found is None or not found.settling:
                return found
            if time.monotonic() > deadline:
                raise LocalStackError(f"{wanted.name} ({found.id}) is still {found.condition}; try again when AWS has made it")
            self._on_wait(f"{wanted.name} is {found.condition}")
            time.sleep(_POLL_SECONDS)

    def _first(self, wanted: Wanted, taken: set[str]) -> Found | None:
        try:
            candidates = self._ask(wanted)
        except (ClientError, BotoCoreError) as error:
            raise LocalStackError(f"AWS does not tell whether {wanted.name} ({wanted.kind}) exists: {error}") from error
        meant = [each for each in candidates if each.id not in taken and is_meant(each, wanted, self._tags)]
        return min(meant, key=lambda each: each.id, default=None)

    def _ask(self, wanted: Wanted) -> Iterable[Found]:
        try:
            return list(KINDS[wanted.kind](self._account, wanted))
        except ClientError as error:
            code = error.response["Error"]["Code"]
            # What it would belong to is gone.
            if "NotFound" in code or "NoSuch" in code or code == "NonExistentQueue":
                return []
            raise
