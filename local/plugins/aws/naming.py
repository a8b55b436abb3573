"""Names for resources that the program leaves unnamed, and client tokens that make creations repeatable."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any, Final

from local.plugins.aws.row import Name

_RANDOM_DIGITS: Final = 7


def automatic_name(rule: Name, resource_name: str, seed: bytes, prefix: str | None = None) -> str:
    """A name such as `queue-1a2b3c4`, as the genuine plug-in makes it: the same one for the same seed.

    `prefix` is the program's own beginning (`namePrefix`), which gets more digits. The result never exceeds the rule's
    length: the beginning is cut, the random part is not.
    """
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(16)
    if prefix is not None:
        beginning, ending = prefix, digits[:26]
    else:
        beginning, ending = f"{rule.before}{resource_name}-", digits[:_RANDOM_DIGITS]
    if rule.lower:
        beginning = beginning.lower()
    return beginning[: rule.longest - len(ending)] + ending


def client_token(urn: str, inputs: Mapping[str, Any], attempt: int = 0) -> str:
    """32 hex digits that name this creation. A run repeated after a kill sends the same, so AWS answers with what is there.

    `attempt` counts up where the answer to a token is something deleted since.
    """
    canonical = json.dumps({key: value for key, value in inputs.items() if key != "__defaults"}, sort_keys=True, default=str)
    return hashlib.sha256(f"{urn}\n{canonical}\n{attempt or ''}".encode()).hexdigest()[:32]
