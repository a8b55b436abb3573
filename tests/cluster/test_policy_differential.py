"""What the real API server refuses, the pack refuses; what the pack refuses beyond that belongs to a rule.

Real definitions with their validation rules in CEL, and Volcano's own admission; every object is only asked for (dry run). What
controllers refuse beyond that is held by the truth tables. A small count by default;
`TRAINYARD_POLICY_OBJECTS=5000 pytest tests/cluster/test_policy_differential.py -s` for the whole proof.
"""

import collections
import os
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from guardrails import RULES
from guardrails.tokens import QUEUE, VOLCANO_JOB
from local.progress import Progress
from local.toolchain.crds import definitions
from local.toolchain.tools import ensure
from tests.cluster.api_server import ApiServer, api_server
from tests.cluster.generated import KINDS, bases, objects
from tests.cluster.volcano_admission import volcano_admission
from tests.unit.policy.analyzer import Thing, analyze

pytestmark = pytest.mark.cluster

COUNT = int(os.environ.get("TRAINYARD_POLICY_OBJECTS", "600"))
SEED = 20261130
# Whether the cluster has a queue of that name, no program says.
_MADE_ELSEWHERE = "unable to find job queue"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[ApiServer]:
    folder = tmp_path_factory.mktemp("api")
    tools = ensure(["etcd", "kube-apiserver"], Progress(folder / "build.log", total=1))
    wanted = {definition["metadata"]["name"]: definition for token, definition in definitions().items() if token in (*KINDS, QUEUE)}
    with api_server(folder, Path(tools["etcd"]), Path(tools["kube-apiserver"])) as server:
        server.define(list(wanted.values()))
        yield server


@pytest.fixture(scope="module")
def paths() -> dict[str, str]:
    """Type token -> path of the collection."""
    found = {}
    for token, definition in definitions().items():
        spec = definition["spec"]
        version = token.removeprefix("kubernetes:").partition("/")[2].partition(":")[0]
        inside = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
        found[token] = f"/apis/{spec['group']}/{version}{inside}/{spec['names']['plural']}"
    return found


def manifest(thing: Thing) -> dict[str, object]:
    version, _, kind = thing.type.removeprefix("kubernetes:").rpartition(":")
    metadata = {"name": "generated", **(thing.properties.get("metadata") or {})}
    return {**thing.properties, "metadata": metadata, "apiVersion": version, "kind": kind}


def mandatory(thing: Thing) -> dict[str, str]:
    """First line of each refusal -> id of its rule."""
    said = [each for each in analyze(thing, rules=RULES) if each.mandatory and " not evaluated: " not in each.message]
    return {each.message.partition("\n")[0]: each.policy.partition("-")[0].upper() for each in said}


def test_what_the_api_server_refuses_the_pack_refuses(served: ApiServer, paths: dict[str, str]) -> None:
    compare(served, paths, COUNT)


def compare(served: ApiServer, paths: Mapping[str, str], count: int, **chosen: Any) -> None:
    """Ask the server and the pack of `count` generated objects; see `generated.objects` for what can be chosen."""
    refused: collections.Counter[str] = collections.Counter()
    extra: collections.Counter[str] = collections.Counter()
    escapes: list[str] = []
    for base, thing in objects(count, SEED, lambda thing: served.dry_run(paths[thing.type], manifest(thing))[0], **chosen):
        taken, said = served.dry_run(paths[thing.type], manifest(thing))
        # What a rule says of the object as it was does not count: it must be the change that is refused.
        before = mandatory(base)
        found = {rule for line, rule in mandatory(thing).items() if line not in before}
        refused[thing.type.rpartition(":")[2]] += not taken
        if not taken and not found and _MADE_ELSEWHERE not in said:
            escapes.append(f"{thing.type.rpartition(':')[2]}: {said}")
        if taken:
            extra.update(found)
    print(f"{count} objects; the server refuses {sum(refused.values())}: {dict(refused)}; the pack alone: {dict(extra)}")
    assert min(refused.values()) > count // 100, "hardly any object is wrong: nothing is proved"
    assert sum(refused.values()) < 0.9 * count, "hardly any object is right: nothing is proved"
    assert not escapes, f"{len(escapes)} of {count}:\n" + "\n".join(sorted(set(escapes))[:60])


def test_what_volcano_s_admission_refuses_of_a_job_the_pack_refuses(served: ApiServer, paths: dict[str, str]) -> None:
    """All but the pod templates: those are judged as any pod is, when a controller makes it."""
    manager = ensure(["vc-webhook-manager"], Progress(served.folder / "build.log", total=1))["vc-webhook-manager"]
    queues = {str(thing.properties["spec"].get("queue") or "default") for thing in bases(VOLCANO_JOB)}
    with volcano_admission(served, Path(manager), sorted({*queues, "default", "root"})):
        compare(served, paths, COUNT // 3, kinds=(VOLCANO_JOB,), spared="template")
