"""Hjson, in which DeepSpeed reads its configuration: JSON with comments, and without most of its quotes and commas.

Syntax: https://hjson.github.io/syntax.html; verdicts as those of hjson 3.1.0, with which DeepSpeed refuses a key that stands twice.
"""

import json
import re
from typing import Any

from guardrails.document import DocumentError, plain, unique

_BLANK = re.compile(r"(?:\s|#[^\n]*|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_BLANK_OR_COMMA = re.compile(rf"{_BLANK.pattern},?{_BLANK.pattern}", re.DOTALL)
_KEY = re.compile(r"[^\s{}\[\],:]+(?=\s*:)")
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'")
_LINES = re.compile(r"'''(.*?)'''", re.DOTALL)
_WORD = re.compile(r"(true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)[ \t]*(?=$|[,}\]#\r\n]|//|/\*)", re.MULTILINE)
_TO_THE_END_OF_THE_LINE = re.compile(r"[^\s{}\[\],:][^\n]*")
_DEEPEST = 64


def read_hjson(text: str) -> Any:
    """An Hjson text as plain data. Raises DocumentError."""
    try:
        return plain(_Reader(text.removeprefix("\ufeff")).whole())
    except ValueError as error:
        raise DocumentError(f"no valid JSON or Hjson: {error}") from None


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def whole(self) -> Any:
        """The one value of the text; the braces of an outermost mapping may be missing."""
        self._take(_BLANK)
        value = self._value(0) if self._text.startswith(("{", "["), self._at) else self._mapping("", 0)
        self._take(_BLANK)
        if self._at < len(self._text):
            raise self._wrong("something stands behind the end")
        return value

    def _value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise self._wrong(f"more than {_DEEPEST} levels deep")
        opening = self._text[self._at : self._at + 1]
        if opening in ("{", "["):
            self._at += 1
            return self._mapping("}", depth) if opening == "{" else self._list(depth)
        lines = self._take(_LINES)
        if lines:
            return lines[1].strip("\n")
        if opening in ('"', "'"):
            return self._quoted()
        word = self._take(_WORD)
        if word:
            return json.loads(word[1])
        line = self._take(_TO_THE_END_OF_THE_LINE)
        if not line:
            raise self._wrong("a value is missing")
        return line[0].strip()

    def _mapping(self, closing: str, depth: int) -> dict[str, Any]:
        pairs: list[tuple[str, Any]] = []
        self._take(_BLANK)
        while not self._closes(closing):
            key = self._quoted() if self._text.startswith(('"', "'"), self._at) else self._bare()
            self._take(_BLANK)
            self._expect(":")
            self._take(_BLANK)
            pairs.append((key, self._value(depth + 1)))
            self._take(_BLANK_OR_COMMA)
        return unique(pairs)

    def _list(self, depth: int) -> list[Any]:
        members: list[Any] = []
        self._take(_BLANK)
        while not self._closes("]"):
            members.append(self._value(depth + 1))
            self._take(_BLANK_OR_COMMA)
        return members

    def _closes(self, closing: str) -> bool:
        if self._at >= len(self._text):
            if closing:
                raise self._wrong(f"{closing} is missing")
            return True
        if closing and self._text.startswith(closing, self._at):
            self._at += 1
            return True
        return False

    def _bare(self) -> str:
        key = self._take(_KEY)
        if not key:
            raise self._wrong("a key and a colon are missing")
        return key[0]

    def _quoted(self) -> str:
        found = self._take(_TEXT)
        if not found:
            raise self._wrong("a text has no end")
        inner = found[0][1:-1]
        if found[0][0] == "'":
            inner = inner.replace("\\'", "'").replace('"', '\\"')
        try:
            return json.loads(f'"{inner}"', strict=False)
        except json.JSONDecodeError as error:
            raise self._wrong(error.msg) from None

    def _expect(self, sign: str) -> None:
        if not self._text.startswith(sign, self._at):
            raise self._wrong(f"{sign} is missing")
        self._at += len(sign)

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _wrong(self, words: str) -> DocumentError:
        return DocumentError(f"no valid JSON or Hjson: {words}", self._text.count("\n", 0, self._at) + 1)
