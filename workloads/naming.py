"""Names of a job's objects, which carry a hash of all that decides what runs.

Pods of a started job cannot be changed, so a changed job is another object: the engine replaces it, the old one deleted first. A job whose
settings are the same keeps its name and is left alone; `attempt` is there to change it on purpose.
"""

import hashlib
import json
from typing import Any

_HASH_LENGTH = 8


def content_name(name: str, content: Any) -> str:
    """Return `name-<8 hex digits>` for JSON-like `content`; the same content gives the same name wherever it is computed."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]}"
