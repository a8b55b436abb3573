"""The commands of a shell script, as far as text can tell: quotes, comments, separators, here-documents."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# A command substitution with two more levels of parentheses inside.
SUBSTITUTION = r"\$\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)"
DOUBLE_QUOTED = rf'"(?:[^"\\$]++|\\.|{SUBSTITUTION}|\$)*+"'
SINGLE_QUOTED = r"'[^']*+'"
_TOKEN = re.compile(
    rf"""
      (?P<blank>(?:[ \t\r]|\\\n)++)
    | (?P<end>&&|\|\||;+|\|&?|&(?!>)|[\n()])
    | (?P<redirection>(?:[0-9]+(?=[<>]))?(?:&>>?|<<<|<<-?|<>|[<>]&|>\||>>|[<>]))
    | (?P<comment>(?<![^\s;&|()])\#[^\n]*)
    | (?P<single>{SINGLE_QUOTED})
    | (?P<double>{DOUBLE_QUOTED})
    | (?P<kept>{SUBSTITUTION}|`[^`]*+`|\$\{{[^{{}}]*+\}})
    | (?P<escaped>\\.)
    | (?P<plain>[^\s;&|()<>'"\\`$]++|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_HERE = re.compile(r"(?<!<)<<-?[ \t]*+(['\"]?)(\w++)\1")
# Here-documents in here-documents are no deeper than this.
_DEEPEST = 4
_COMMENT = re.compile(rf"(?:{SINGLE_QUOTED}|{DOUBLE_QUOTED})|(?<!\S)\#[^\n]*", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\\"$`])|\\\n")


def commands(text: str, depth: int = 0) -> list[list[str]]:
    """The words of each command of a script; what a here-document holds comes after the others, read alike."""
    script, bodies = _without_bodies(text.split("\n")) if depth < _DEEPEST else (text, [])
    reader = _Reader()
    for token in _TOKEN.finditer(script):
        reader.take(str(token.lastgroup), token[0])
    return [*reader.finish(), *(command for body in bodies for command in commands(body, depth + 1))]


def _without_bodies(lines: Sequence[str]) -> tuple[str, list[str]]:
    """The script without its here-documents, and these; one that nothing ends is none."""
    places: dict[str, list[int]] = defaultdict(list)
    for index, line in enumerate(lines):
        places[line.lstrip("\t")].append(index)
    kept, bodies, at = [], [], 0
    while at < len(lines):
        kept.append(lines[at])
        following = at + 1
        for found in _HERE.finditer(lines[at]):
            ends = places.get(found[2], [])
            position = bisect_left(ends, following)
            if position < len(ends):
                bodies.append("\n".join(lines[following : ends[position]]))
                following = ends[position] + 1
        at = following
    return "\n".join(kept), bodies


def without_comments(text: str) -> str:
    """The text without what a shell takes for comments."""
    return _COMMENT.sub(lambda found: "" if found[0].startswith("#") else found[0], text)


def unquoted(word: str) -> str:
    """A piece of a word without the quotes around it."""
    if len(word) > 1 and word[0] == word[-1] == "'":
        return word[1:-1]
    if len(word) > 1 and word[0] == word[-1] == '"':
        return _ESCAPED.sub(lambda found: found[1] or "", word[1:-1])
    return word


@dataclass
class _Reader:
    """Puts tokens together to words and words to commands."""

    found: list[list[str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    word: str | None = None
    redirected: bool = False
    """The next word is a file, no argument."""

    def take(self, kind: str, piece: str) -> None:
        if kind == "comment":
            return
        if kind in ("blank", "end", "redirection"):
            self._end_word()
            self.redirected = kind == "redirection" or (kind == "blank" and self.redirected)
            if kind == "end":
                self._end_command()
            return
        piece = piece[1:] if kind == "escaped" else unquoted(piece)
        self.word = (self.word or "") + piece

    def finish(self) -> Iterator[list[str]]:
        self._end_word()
        self._end_command()
        yield from self.found

    def _end_word(self) -> None:
        if self.word is not None:
            if not self.redirected:
                self.words.append(self.word)
            self.word, self.redirected = None, False

    def _end_command(self) -> None:
        if self.words:
            self.found.append(self.words)
        self.words = []
