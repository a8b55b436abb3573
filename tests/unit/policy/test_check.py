"""Plain files by the same rules: what is read, which line is named, what each format holds, what the exit status says."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from guardrails import RULES
from guardrails.check import FORMATS, check, main
from guardrails.configuration import read_configuration
from guardrails.judge import by_id
from guardrails.manifest import read_files
from guardrails.pack import PACK_NAME, VERSION
from guardrails.row import Kind
from local.paths import REPOSITORY

pytestmark = pytest.mark.unit

POOLS = """\
apiVersion: v1
kind: Namespace
metadata: {name: training}
---
apiVersion: v1
kind: List
items:
- apiVersion: karpenter.sh/v1
  kind: NodePool
  metadata:
    name: p5
  spec:
    limits: {nvidia.com/gpu: 8}
    disruption:
      consolidationPolicy: WhenEmpty
      budgets:
      - nodes: "1"
      - nodes: "150%"
    template:
      spec:
        expireAfter: Never
        nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: p5}
        requirements:
        - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
"""


BOMB = "k0: &k0 [x, x]\n" + "".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]\n" for n in range(1, 10))


IDLE = {"guardrails": {"exemptions": [{"rule": "FSX02", "resource": "*", "reason": "r", "expires": "2999-01-01"}]}}


@pytest.fixture
def pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pools.yaml").write_text(POOLS)
    return "pools.yaml"


def of_rule(rows, rule: str):
    return [row for row in rows if row.rule == rule]


def test_a_finding_names_file_and_line_of_the_value(pools: str) -> None:
    (found,) = of_rule(check([pools]), "KRP03")
    assert (found.file, found.line, found.path) == ("pools.yaml", 18, "items[0].spec.disruption.budgets[1].nodes")
    assert found.kind is Kind.VIOLATION
    assert found.found == "150%"
    assert found.resource == "pools.yaml/p5"


def test_a_missing_value_is_shown_at_what_holds_it(pools: str) -> None:
    Path(pools).write_text(POOLS.replace("        expireAfter: Never\n", ""))
    (found,) = of_rule(check([pools]), "KRP04")
    assert Path(pools).read_text().splitlines()[found.line - 1].strip() == "spec:"


def test_a_file_of_eksctl_is_said_to_be_unjudged(tmp_path: Path) -> None:
    (tmp_path / "eksctl.yaml").write_text(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: ml}\nmanagedNodeGroups: []\n"
    )
    (row,) = check([str(tmp_path / "eksctl.yaml")])
    assert (row.kind, row.resource, row.line) == (Kind.NOTE, "ml", 1)
    assert "not judged" in row.message
    assert main([str(tmp_path / "eksctl.yaml"), "--format", "sarif", "--output", str(tmp_path / "out")]) == 0


def test_a_path_is_shown_from_here(pools: str, tmp_path: Path) -> None:
    for path in (str(tmp_path / pools), f"./{pools}", pools):
        assert {row.file for row in of_rule(check([path]), "KRP03")} == {"pools.yaml"}


POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: cpu}
"""


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        (POOL, "", 1),
        (POOL, "kind", 2),
        (POOL, "metadata.labels", 3),
        (POOL, "spec.limits", 1),
        (f"# cpu\n---\n\n{POOL}", "spec.limits", 4),
        (f"{POOL}metadata:\n  labels:\n    team.example/pool: a\n    b: c\n", "metadata.name", 3),
        (f"{POOL}spec:\n  weights:\n  - 1\n  -\n    a: 2\n", "spec.weights[0]", 6),
        (f"{POOL}spec:\n  weights:\n  - 1\n  -\n    a: 2\n", "spec.weights[1].a", 8),
        (f"{POOL}spec:\n  weights:\n  - 1\n", "spec.weights[1]", 5),
        (f"{POOL}spec:\n  weights:\n  - 1\n", "spec.weights.a", 5),
        (f"{POOL}spec:\n  weights:\n    a: 1\n", "spec.weights[0]", 5),
        (f'{POOL}spec:\n  limits:\n    cpu: 1\n    nvidia.com/gpu: "8"\n', 'spec.limits["nvidia.com/gpu"]', 7),
        (f'{POOL}spec:\n  limits:\n    cpu: 1\n    nvidia.com/gpu: "8"\n', "spec.limits.cpu", 6),
    ],
)
def test_a_path_leads_to_a_line(text: str, path: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    (document,) = read_files([str(tmp_path / "a.yaml")])
    assert document.line(path) == line


def test_each_document_has_the_lines_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"---\n# nothing\n---\n{POOL}---\nnull\n---\n~\n---\n{POOL}---\n")
    first, second = read_files([str(tmp_path / "a.yaml")])
    assert (first.line("kind"), second.line("kind")) == (5, 13)
    assert (Path(first.resource.urn).name, Path(second.resource.urn).name) == ("a.yaml#1", "a.yaml#2")


def test_json_that_is_no_yaml_is_shown_at_its_top(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{\n"note": "\\ud83d\\ude00",\n"train_batch_size": 64\n}')
    (document,) = read_files([str(tmp_path / "ds.json")])
    assert document.line("train_batch_size") == 1
    assert Path(document.resource.urn).name == "ds.json"


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ("{name: p5}", "p5"),
        ("{generateName: p5-}", "p5-"),
        ('{name: "", generateName: p5-}', "p5-"),
        ("{name: 5}", "a.yaml"),
        ("p5", "a.yaml"),
    ],
)
def test_a_document_is_called_by_its_name_or_its_file(metadata: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\n")
    (document,) = read_files([str(tmp_path / "a.yaml")])
    assert (document.resource.name, document.resource.properties.owner) == (name, name)


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(POOLS))
    assert main(["-"]) == 1
    assert "stdin:18" in capsys.readouterr().out


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_tells_rule_place_value_and_fix(form: str, pools: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([pools, "--format", form]) == 1
    text = capsys.readouterr().out
    fix = by_id(RULES)["KRP03"].fix
    for words in ("KRP03", "pools.yaml", "budgets[1].nodes", "150%", "0% to 100%"):
        assert words in text
    assert " ".join(fix.split()) in " ".join(text.replace("\\n", " ").split())


def test_yaml_in_braces_is_yaml(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: =}}")
    assert main([str(tmp_path / "a.yaml")]) == 0


def test_a_file_without_a_fault_ends_with_status_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "good.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
    assert main([str(tmp_path / "good.yaml")]) == 0
    assert capsys.readouterr().out == "0 violations, 0 advice, 0 notes\n"
    assert main([str(tmp_path / "good.yaml"), "--output", str(tmp_path / "outcome")]) == 0
    assert (tmp_path / "outcome").read_text() == "0 violations, 0 advice, 0 notes\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.yaml", "a: [1", "a.yaml:1: no valid YAML"),
        ("a.yaml", "a: 1\n---\nb: {", "a.yaml:3: no valid YAML"),
        ("a.yaml", "a: 1\nb: [}\nc: 3\nd: 4\n", "a.yaml:2: no valid YAML"),
        ("a.yaml", "", "holds no document"),
        ("a.yaml", "replicas: 3\n", "a.yaml: is neither; allowed: a Kubernetes object"),
        ("a.yaml", "apiVersion: v1\nkind: Namespace\n---\n- 1\n", "a.yaml#2: is neither"),
        ("a.json", "{\n 'a': 1}", "a.json:2: no valid JSON"),
        ("a.json", "[]", "is neither"),
        ("a.json", '{"apiVersion": "v1", # x\n"kind": "Pod"}', "a.json:1: no valid JSON"),
        ("a.json", '{"train_batch_size": 1, "train_batch_size": 2}', "the key train_batch_size stands twice"),
        ("a.yaml", '{"apiVersion": "v1", "kind": "Pod", "kind": "Job"}', "the key kind stands twice"),
        ("a.yaml", "apiVersion: v1\nkind: List\nitems:\n- {metadata: {name: a}}\n", "a.yaml: items[0] is no Kubernetes object"),
        ("a.json", '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x\\ud800"}}', "a.json:1: no valid JSON: 'utf-8' codec"),
        ("a.json", "1" * 5000, "a.json:1: no valid JSON: Exceeds the limit"),
        ("a.yaml", BOMB, "more than"),
        ("a.yaml", "a: " + "[" * 3000 + "]" * 3000, "a.yaml"),
        ("a.yaml", "a: !!python/object:os.system {}\n", "no valid YAML"),
        ("a.yaml", "a: &x [*x]\n", "levels deep"),
    ],
)  # fmt: skip
def test_bad_input_ends_with_status_2_and_names_the_place(
    name: str, text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    assert main([name]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.startswith("error: ")
    assert said.out == ""


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    assert main([str(tmp_path / "missing.yaml")]) == 2
    assert main([str(tmp_path / "binary.yaml")]) == 2
    assert main([str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "missing.yaml: No such file" in said
    assert "binary.yaml: no UTF-8 text" in said
    assert "Is a directory" in said


def test_standard_input_that_is_no_text_is_bad_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\xff"), encoding="utf-8"))
    assert main(["-"]) == 2
    assert capsys.readouterr().err == "error: stdin: no UTF-8 text (byte 1)\n"


def test_an_outcome_that_cannot_be_written_is_no_verdict(pools: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([pools, "--output", str(tmp_path / "missing" / "a.md")]) == 2
    assert "missing/a.md: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("form", FORMATS)
def test_names_that_an_encoding_has_no_letters_for_are_written_as_escapes(form: str, tmp_path: Path) -> None:
    file = os.fsdecode(bytes(tmp_path) + b"/a\xff.yaml")
    Path(file).write_text(POOLS.replace("name: p5\n", "name: \u017c\u00f3\u0142\u0107\n", 1), encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(REPOSITORY / "policy")}
    output = tmp_path / "outcome"
    for arguments in ((), ("--output", str(output))):
        command = [sys.executable, "-m", "guardrails", file, "--format", form, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (1, b"")
    assert "KRP03" in output.read_text(encoding="utf-8")


def test_an_output_that_cannot_be_is_no_verdict(pools: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([pools, "--output", "a\0b"]) == 2
    assert "null byte" in capsys.readouterr().err


def test_the_configuration_of_the_pack_holds_for_files_too(pools: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exemption = {"rule": "KRP03", "resource": "*/p5", "reason": "r", "expires": "2999-01-01"}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"all": "advisory", "guardrails": {"exemptions": [exemption]}}))
    assert main([pools, "--config", str(config), "--format", "json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert "KRP03" not in {each.get("rule") for each in results}
    config.write_text('{"KRP033": "advisory"}')
    assert main([pools, "--config", str(config)]) == 2
    assert "did you mean KRP03?" in capsys.readouterr().err
    twice = '{"KRP03": "advisory", "KRP03": "disabled"}'
    bad = (("[]", "is no mapping; allowed: rule names and their levels"), ("{", "no valid JSON"), (twice, "the key KRP03 stands twice"))
    for text, words in bad:
        config.write_text(text)
        assert main([pools, "--config", str(config)]) == 2
        assert f"error: {config}" in (said := capsys.readouterr().err)
        assert words in said
    config.write_text('\ufeff{"all": "advisory"}')
    assert main([pools, "--config", str(config)]) == 0


@pytest.mark.parametrize("resource", ["ds.json", "*/ds.json", "ds*"])
def test_a_deepspeed_file_is_exempted_by_its_name(resource: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, config = tmp_path / "ds.json", tmp_path / "config.json"
    file.write_text('{"train_batch_size": "auto"}')
    exemption = {"rule": "DSP02", "resource": resource, "reason": "the Trainer alone reads it", "expires": "2999-01-01"}
    config.write_text(json.dumps({"guardrails": {"exemptions": [exemption]}}))
    assert main([str(file)]) == 1
    assert "where Hugging Face's Trainer alone reads the file, an exemption" in " ".join(capsys.readouterr().out.split())
    assert main([str(file), "--config", str(config), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == []


def test_an_exemption_that_nothing_needs_is_a_note_without_a_place(pools: str) -> None:
    (note,) = [row for row in check([pools], configuration=read_configuration(IDLE, RULES)) if row.kind is Kind.NOTE]
    assert "is not used" in note.message
    assert (note.file, note.line) == ("", 0)


def test_what_has_no_place_is_shown_to_code_scanning_at_the_first_file(pools: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.json").write_text(json.dumps(IDLE))
    main([pools, "--config", "config.json", "--format", "sarif"])
    results = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    (note,) = [result for result in results if result["level"] == "note"]
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == pools


def test_json_names_the_pack_and_reads_line_by_line(pools: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([pools, "--format", "json"])
    text = capsys.readouterr().out
    assert {key: value for key, value in json.loads(text).items() if key != "results"} == {"pack": PACK_NAME, "version": VERSION}
    assert text.startswith('{\n  "')
    main([pools, "--format", "sarif"])
    assert capsys.readouterr().out.startswith('{\n  "')


def test_a_call_that_cannot_be_read_is_bad_input_and_help_says_how(pools: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([pools, "--format", "xml"])
    assert ended.value.code == 2
    assert "invalid choice: 'xml'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("usage: python -m guardrails [-h] [--format {table,markdown,sarif,json}]")
    assert "FILE YAML or JSON; - is standard input" in said


def test_a_deepspeed_configuration_is_known_by_its_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ds.json").write_text('{\n\t"train_batch_size": 64,\n\t"gradient_accumulation_steps": 1\n}')
    assert main([str(tmp_path / "ds.json")]) in (0, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ds.json", '// ours\n{"train_micro_batch_size_per_gpu": 1, # one\n"gradient_cliping": 1}'),
        ("ds.JSON", '{"train_micro_batch_size_per_gpu": 1, "gradient_cliping": 1,}'),
        ("ds.hjson", "train_micro_batch_size_per_gpu: 1\ngradient_cliping: 1"),
        ("ds.txt", '{"train_micro_batch_size_per_gpu": 1, "gradient_cliping": 1}'),
        ("-", '\ufeff{"train_micro_batch_size_per_gpu": 1, "gradient_cliping": 1 // x\n}'),
        ("-", '\ufeff// ours\n{"train_micro_batch_size_per_gpu": 1, "gradient_cliping": 1}'),
        ("ds_config.json", '{"fp16": {"enabled": true}, "gradient_cliping": 1}'),
    ],
)
def test_a_deepspeed_file_is_read_as_deepspeed_reads_it(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    Path("ds").with_name(name if name != "-" else "unused").write_text(text)
    assert main([name]) == 1
    assert "gradient_cliping" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["-m", "guardrails"], ["-m", "trainyard", "policy", "check"]], ids=["pack", "trainyard"])
def test_files_are_checked_from_its_own_folder_without_the_sdk(pools: str, words: list[str]) -> None:
    """A check before each commit has no second to spare for clients and engines that it does not use."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words, str(Path(pools).resolve())],
        cwd=REPOSITORY / "policy" if "guardrails" in words else REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "yaml" in imported
    assert imported.isdisjoint({"pulumi", "pulumi_policy", "grpc", "google", "boto3", "botocore", "kubernetes"})


def test_the_pack_checks_files_from_its_own_folder(pools: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "guardrails", str(Path(pools).resolve())],
        cwd=REPOSITORY / "policy",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "KRP03" in done.stdout
