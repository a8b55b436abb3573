"""What the policy pack costs a preview: no pack, one that does nothing, one of one rule and the whole pack, in turn on the same program.

    python -m benchmarks.policy [--resources 1000] [--rounds 3] [--program vpc|mixed]

The program makes a component for every nine resources. `vpc` holds VPCs alone, as the measured baselines do; `mixed` holds what a
training platform is made of, so that most rules have something to judge. Checkpoints are skipped, as `make preview` does. The
minimum of the rounds counts. Goals: the whole pack at most 1.05 of one rule, and at most 1.20 of no pack. The empty pack reads no
message and imports gRPC alone, so no pack in Python can cost less.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from local.paths import REPOSITORY
from local.progress import Progress
from local.toolchain.engine import engine_environment
from local.toolchain.tools import ENGINE, ensure

_PROGRAM = """
import json, pathlib, pulumi
settings = json.loads((pathlib.Path(__file__).parent / "program.json").read_text())
class Group(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("bench:index:Group", name)
        # Kubernetes objects have a name of their own in each group, as in any program.
        resources = json.loads(json.dumps(settings["resources"]).replace("GROUP", name))
        for index, (kind, properties) in enumerate(resources):
            pulumi.CustomResource(kind, f"{name}-{index}", properties, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
for index in range(settings["groups"]):
    Group(f"g{index}")
"""
_ONE_RULE = """
import sys
sys.path.insert(0, {policy!r})
from guardrails.server import serve
from guardrails.service import Service
from guardrails import RULES
serve(Service(RULES[:1]))
"""
_SDK_RULE = """
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy
def nothing(args, report_violation):
    if args.resource_type == "aws:fsx/lustreFileSystem:LustreFileSystem" and args.props.get("storageCapacity") == 1:
        report_violation("no")
PolicyPack("one", [ResourceValidationPolicy("one-rule", "One rule of one line", nothing, EnforcementLevel.MANDATORY)])
"""
_EMPTY = """
import signal, sys, threading
from concurrent import futures
import grpc
class Nothing(grpc.GenericRpcHandler):
    def service(self, _details):
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")
server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
server.add_generic_rpc_handlers((Nothing(),))
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
done = threading.Event()
signal.signal(signal.SIGINT, lambda *_: done.set())
signal.signal(signal.SIGTERM, lambda *_: done.set())
done.wait()
server.stop(grace=None)
"""
_VPC = ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True, "tags": {"Name": "bench", "team": "training"}})
_WITH_LEVELS = ("one", "whole")
_GROUP = 10
"""Resources of a component, itself counted."""


def mixed() -> list[tuple[str, Mapping[str, object]]]:
    """One of each thing that a training platform has, as the tests of the rules build them."""
    sys.path.insert(0, str(REPOSITORY / "policy"))
    from tests.unit.policy import builders as b

    group = b.efa_group(ingress=[_SELF], egress=[_SELF])
    name = {"metadata/name": "GROUP"}
    things = (
        b.lustre(deploymentType="SCRATCH_2", storageCapacity=1200),
        group,
        b.node_pool({**name, "spec/template/spec/nodeClassRef/name": "GROUP"}),
        b.node_class(name),
        b.mpi_job(name),
        b.volcano_job(name),
    )
    made = [(thing.type, _object(thing.type, thing.properties)) for thing in things]
    return [*made, _VPC, ("aws:s3/bucket:Bucket", {"tags": {"team": "training"}}), ("kubernetes:core/v1:ConfigMap", _CONFIG_MAP)]


_SELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"config.json": '{"steps": 100}'}}


def _object(kind: str, properties: Mapping[str, object]) -> Mapping[str, object]:
    if not kind.startswith("kubernetes:"):
        return properties
    version, _, name = kind.removeprefix("kubernetes:").rpartition(":")
    return {"apiVersion": version, "kind": name, **properties}


class Bench:
    """A project in a folder of its own, with the stub in the place of every plug-in."""

    def __init__(self, folder: Path, *, resources: int, program: str) -> None:
        self.folder = folder
        os.environ["TRAINYARD_STATE"] = str(folder / "state")
        ensure([ENGINE], Progress(folder / "build.log", total=1))
        self.environment = {**engine_environment(), "PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}
        plugins = Path(self.environment["PULUMI_HOME"]) / "plugins"
        for place in plugins.glob("resource-*/pulumi-resource-*"):
            place.unlink()
            place.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {REPOSITORY / "benchmarks/stub_plugin.py"} "$@"\n')
            place.chmod(0o755)
        runtime = {"name": "python", "options": {"virtualenv": sys.prefix}}
        self._write("Pulumi.yaml", {"name": "bench", "runtime": runtime})
        # What the builders make is valid to one rule each, and a refusal would end the preview.
        self._write("levels.json", {"all": "advisory"})
        members = [_VPC] * (_GROUP - 1) if program == "vpc" else mixed()
        self._write("program.json", {"groups": resources // _GROUP, "resources": members})
        (folder / "__main__.py").write_text(_PROGRAM)
        packs = {"empty": _EMPTY, "sdk": _SDK_RULE, "one": _ONE_RULE.format(policy=str(REPOSITORY / "policy"))}
        for name, text in packs.items():
            self._write(f"{name}/PulumiPolicy.yaml", {"description": f"for comparison: {name}", "runtime": runtime})
            (folder / name / "__main__.py").write_text(text)
        self.packs = {"none": None, **{name: folder / name for name in packs}, "whole": REPOSITORY / "policy"}
        self._pulumi("stack", "init", "bench")

    def preview(self, pack: str) -> float:
        """Wall seconds of a preview with that pack."""
        folder = self.packs[pack]
        started = time.monotonic()
        levels = ["--policy-pack-config", "levels.json"] if pack in _WITH_LEVELS else []
        self._pulumi("preview", *(["--policy-pack", str(folder)] if folder else []), *levels)
        return time.monotonic() - started

    def _write(self, name: str, value: object) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value))

    def _pulumi(self, *words: str) -> None:
        done = subprocess.run(
            ["pulumi", *words, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"pulumi {words[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def measure(bench: Bench, rounds: int) -> dict[str, list[float]]:
    """Seconds of each round for each pack, the packs in turn."""
    seconds: dict[str, list[float]] = {pack: [] for pack in bench.packs}
    for _ in range(rounds):
        for pack, taken in seconds.items():
            taken.append(bench.preview(pack))
            print(f"{pack:6} {taken[-1]:6.2f} s", flush=True)
    return seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the figures and the two ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resources", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", choices=("vpc", "mixed"), default="vpc")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="trainyard-policy-") as folder:
        bench = Bench(Path(folder), resources=options.resources, program=options.program)
        best = {pack: min(taken) for pack, taken in measure(bench, options.rounds).items()}
    print(
        json.dumps(
            {"program": options.program, "resources": options.resources, "minimum_seconds": {k: round(v, 2) for k, v in best.items()}}
        )
    )
    print(f"whole / one rule: {best['whole'] / best['one']:.3f} (goal 1.05); of the SDK's service: {best['whole'] / best['sdk']:.3f}")
    print(f"whole / no pack:  {best['whole'] / best['none']:.3f} (goal 1.20); an empty pack makes {best['empty'] / best['none']:.3f}")


if __name__ == "__main__":
    main()
