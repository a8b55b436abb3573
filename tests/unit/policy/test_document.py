"""YAML as Kubernetes reads it, JSON and Hjson as DeepSpeed does."""

from typing import Any

import pytest

from guardrails.document import DocumentError, DuplicateError, read_hjson, read_json, read_yaml

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("=", "="),
        ("[=, a]", ["=", "a"]),
        ("{=: 1}", {"=": 1}),
        ("1e-4", 1e-4),
        ("1e3", 1000),
        ("-2.5E+2", -250),
        (".5e1", 5),
        ("1e", "1e"),
        ("e1", "e1"),
        ("1e5x", "1e5x"),
        ("2026-11-30", "2026-11-30"),
        ("2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z"),
    ],
)
def test_yaml_is_read_as_kubernetes_does(text: str, value: Any) -> None:
    assert read_yaml(f"a: {text}") == [{"a": value}]


def test_a_key_that_stands_twice_is_refused_where_it_may_stand_once() -> None:
    assert read_json('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(DuplicateError, match="the key b stands twice"):
        read_json('{"a": {"b": 1, "c": 2, "b": 3}}', once=True)


# Each verdict is that of hjson 3.1.0.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -2.5, 1e-4, true, false, null, "x\\n"]}', {"a": [1, -2.5, 1e-4, True, False, None, "x\n"]}),
        ("{a: 1 # one\n b: two words, and more\n}", {"a": 1, "b": "two words, and more"}),
        ("a: 1\n/* x */ b: [1\n2,3,]\n// end", {"a": 1, "b": [1, 2, 3]}),
        ("{a: 'it\\'s \"so\"', b: '''x''', c: 007\n}", {"a": 'it\'s "so"', "b": "x", "c": "007"}),
        ("\ufeff{a: {}, b: []}", {"a": {}, "b": []}),
        ("{a: true}", {"a": True}),
        ("{a: truely\n}", {"a": "truely"}),
        ("[]", []),
        ("", {}),
    ],
)
def test_hjson_is_read(text: str, value: Any) -> None:
    assert read_hjson(text) == value


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ('{"a": 1,\n"a": 2}', "the key a stands twice", 1),
        ('{"a": 1', "Bad key name (eof)", 1),
        ('{\n"a" 1}', "Expecting ':' delimiter", 2),
        ("{a: [}", "Found a punctuator character", 1),
        ('{"a: 1}', "Unterminated string", 1),
        ("{a b: 1}", "Found whitespace in your key name", 1),
        ("{}\n}", "Extra data", 2),
        ("{a: }", "Found a punctuator character", 1),
        ('{"a": "\\ud800"}', "surrogates", 1),
        ('{"a": "\\x"}', "Invalid", 1),
        ("[" * 100, "End of input", 1),
        ("[" * 100_000, "recursion", 1),
    ],
    ids=range(12),
)
def test_what_is_no_hjson_is_told_with_its_line(text: str, words: str, line: int) -> None:
    with pytest.raises(DocumentError) as raised:
        read_hjson(text)
    assert words in str(raised.value)
    assert raised.value.line == line
