"""Secret values of a resource, which no message shows.

Nothing here runs where a resource has no secrets, or no rule objects to it.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

Secrets = frozenset[str | float]
"""Texts and numbers."""

HIDDEN = "[secret]"
_SHORTEST_TEXT = 3
"""Characters; shorter texts are hidden where they are a whole value, and not looked for within words."""
_SHORTEST_WORD = 6
"""Characters of a word that is looked for where only a part of a longer secret is told."""
_WORD = re.compile(r"\w+(?:[.-]\w+)*")


def members(value: Any, *, keys: bool = False) -> Iterator[str | float]:
    """Every text and number in a value, with `keys` also those of its mappings. Truth values and empty texts tell nothing."""
    if (isinstance(value, str) and value) or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield value
    elif isinstance(value, Mapping):
        for key, member in value.items():
            if keys:
                yield key
            yield from members(member, keys=keys)
    elif isinstance(value, list):
        for member in value:
            yield from members(member, keys=keys)


def is_secret(value: Any, secrets: Secrets) -> bool:
    """Whether a value is one of the secrets, as a whole."""
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value in secrets


def hidden(value: Any, secrets: Secrets) -> Any:
    """A copy of plain data without its secrets. To be taken before a text is shortened: a part of a secret is not found any more."""
    if is_secret(value, secrets):
        return HIDDEN
    if isinstance(value, str):
        return redacted(value, secrets)
    if isinstance(value, Mapping):
        return {redacted(str(key), secrets): hidden(member, secrets) for key, member in value.items()}
    return [hidden(member, secrets) for member in value] if isinstance(value, list) else value


def redacted(text: str, secrets: Secrets) -> str:
    """A text without the secrets in it, the longest first, as one may be a part of another."""
    pattern, words = _looked_for(secrets)
    text = pattern.sub(HIDDEN, text) if pattern else text
    return _WORD.sub(lambda word: HIDDEN if word[0].lower() in words else word[0], text) if words else text


@lru_cache(32)
def _looked_for(secrets: Secrets) -> tuple[re.Pattern[str] | None, frozenset[str]]:
    texts = [text for text in secrets if isinstance(text, str) and len(text) >= _SHORTEST_TEXT]
    # Rules may tell a text on one line.
    forms = {form for text in texts for form in (text, " ".join(text.split())) if len(form) >= _SHORTEST_TEXT}
    numbers = {str(number) for number in secrets if not isinstance(number, str)}
    sought = {form: re.escape(form) for form in forms} | {each: rf"(?<![\w.]){re.escape(each)}(?!\w|\.\d)" for each in numbers - forms}
    # A command or a document may be told word by word.
    words = {word.lower() for text in texts if len(text.split()) > 1 for word in _WORD.findall(text) if len(word) >= _SHORTEST_WORD}
    if not sought:
        return None, frozenset(words)
    return re.compile("|".join(sought[each] for each in sorted(sought, key=len, reverse=True)), re.IGNORECASE), frozenset(words)
