"""Check files without Pulumi: `python -m guardrails FILE...`, the same rules and the same messages.

Exit status 0: nothing is refused; 1: a rule refuses something; 2: the input or the configuration can't be read, or the outcome
can't be written.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from guardrails import RULES
from guardrails.configuration import Configuration, ConfigurationError, read_configuration
from guardrails.document import DocumentError, read_json
from guardrails.judge import Judge
from guardrails.manifest import STDIN, Document, ManifestError, read_files
from guardrails.markdown import markdown
from guardrails.node import printable
from guardrails.pack import PACK_NAME, VERSION
from guardrails.row import Kind, Row, refused, row_of_verdict
from guardrails.rule import Finding
from guardrails.sarif import sarif
from guardrails.table import table

OK, VIOLATIONS, BAD_INPUT = 0, 1, 2
_EKSCTL = "kubernetes:eksctl.io/"


def write_json(rows: Sequence[Row], fallback: str) -> str:
    """The rows for machines."""
    return json.dumps({"pack": PACK_NAME, "version": VERSION, "results": [row.as_json() for row in rows]}, indent=2) + "\n"


def write_sarif(rows: Sequence[Row], fallback: str) -> str:
    """The rows for code scanning."""
    return json.dumps(sarif(rows, RULES, name=PACK_NAME, version=VERSION, fallback=fallback), indent=2) + "\n"


FORMATS: Mapping[str, Callable[[Sequence[Row], str], str]] = {
    "table": lambda rows, fallback: table(rows),
    "markdown": lambda rows, fallback: markdown(rows),
    "sarif": write_sarif,
    "json": write_json,
}


def check(paths: Sequence[str], *, configuration: Configuration | None = None, stdin: str = "") -> list[Row]:
    """What the pack says of files. Raises ManifestError where one can't be judged."""
    documents = read_files(paths, stdin=stdin)
    judge = Judge(RULES, configuration)
    verdicts = [verdict for document in documents for verdict in judge.resource(document.resource)]
    verdicts += judge.program([document.resource for document in documents])
    by_place = {document.resource.urn: document for document in documents}
    rows = []
    for verdict in verdicts:
        document = by_place.get(verdict.urn)
        rows.append(row_of_verdict(verdict, file=document.file if document else "", line=_line(document, verdict.finding)))
    return rows + [_unjudged(document) for document in documents if document.resource.type.startswith(_EKSCTL)]


def _unjudged(document: Document) -> Row:
    """That no rule knows what eksctl makes of its file, which otherwise would look as if all were well."""
    message = f"{printable(document.resource.name)}: eksctl's own kinds are not judged; a NodePool, a node group of Pulumi and pods are"
    return Row(kind=Kind.NOTE, message=message, resource=printable(document.resource.name), file=document.file, line=document.line(""))


def load_configuration(path: str | None) -> Configuration:
    """The configuration in a policy configuration file. Raises ConfigurationError."""
    if path is None:
        return Configuration()
    try:
        values = read_json(Path(path).read_text(encoding="utf-8-sig"), once=True)
    except (OSError, UnicodeDecodeError, DocumentError) as error:
        raise ConfigurationError(f"{path}: {error}") from None
    if not isinstance(values, dict):
        raise ConfigurationError(f"{path} is no mapping; allowed: rule names and their levels")
    try:
        return read_configuration(values, RULES)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def run(paths: Sequence[str], *, form: str, output: str | None, config: str | None) -> int:
    """Check files, write the outcome, return the exit status. Errors go to standard error in words."""
    try:
        rows = check(paths, configuration=load_configuration(config), stdin=_standard_input() if STDIN in paths else "")
    except (ManifestError, ConfigurationError) as error:
        _say(sys.stderr, f"error: {printable(str(error))}\n")
        return BAD_INPUT
    text = FORMATS[form](rows, paths[0])
    if output is None:
        _say(sys.stdout, text)
        return VIOLATIONS if refused(rows) else OK
    try:
        # The name of a file need not be text.
        Path(output).write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        _say(sys.stderr, f"error: {output}: {getattr(error, 'strerror', None) or error}\n")
        return BAD_INPUT
    return VIOLATIONS if refused(rows) else OK


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m guardrails", description="Check Kubernetes manifests and DeepSpeed configurations.")
    parser.add_argument("paths", nargs="+", metavar="FILE", help="YAML or JSON; - is standard input, such as what `helm template` writes")
    parser.add_argument("--format", dest="form", choices=list(FORMATS), default="table")
    parser.add_argument("--output", help="file to write to instead of standard output")
    parser.add_argument("--config", help="policy configuration file, as for `pulumi preview --policy-pack-config`")
    return run(**vars(parser.parse_args(arguments)))


def _say(stream: TextIO, text: str) -> None:
    """Write what the stream's encoding has no letters for as escapes."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, errors="backslashreplace").decode(encoding))


def _standard_input() -> str:
    try:
        return sys.stdin.read().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ManifestError(f"stdin: no UTF-8 text (byte {error.start})") from None


def _line(document: Document | None, finding: Finding | None) -> int:
    return document.line(finding.path) if document and finding else 0
