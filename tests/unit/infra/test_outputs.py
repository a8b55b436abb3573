"""The contract between the platform and the programs on it: what one end writes the other reads, and nothing else passes."""

from typing import Any

import pulumi
import pytest
from pulumi.runtime import rpc

from infra.outputs import CONTRACT_VERSION, ContractError, PlatformOutputs, PoolOutput
from infra.pool_outputs import pool_outputs
from tests.recording import record
from tests.unit.infra.builders import settings

pytestmark = pytest.mark.unit

STACK = "organization/trainyard/dev"
POOL: dict[str, Any] = {
    "name": "p5",
    "instance_type": "p5.48xlarge",
    "zone": "us-east-1a",
    "capacity_type": "on-demand",
    "efa": True,
    "labels": {"trainyard.dev/pool": "p5"},
    "taints": [{"key": "trainyard.dev/training", "value": "true", "effect": "NoSchedule"}],
    "max_nodes": 4,
}
WRITTEN: dict[str, Any] = {
    "contract_version": CONTRACT_VERSION,
    "cluster_name": "yard",
    "region": "us-east-1",
    "kubeconfig": "{}",
    "namespace": "training",
    "service_account": "trainer",
    "queue": "training",
    "pools": {"p5": POOL},
    "claims": {"checkpoints": "checkpoints"},
    "file_systems": {"lustre": "fs-1"},
    "bucket": "b",
}


def read(outputs: dict[str, Any], *, preview: bool = True) -> dict[str, Any]:
    """Read the contract from a stack with these outputs and return what a program gets, by field."""
    got: dict[str, Any] = {}

    def program() -> None:
        platform = PlatformOutputs.from_stack(STACK)
        for key in ("cluster_name", "kubeconfig", "pools", "claims", "bucket"):
            value: pulumi.Output[Any] = getattr(platform, key)
            value.apply(lambda known, key=key: got.update({key: known}))

    record(program, resolved=not preview, stack_outputs=outputs, project="trainyard-workloads")
    return got


def test_a_reader_gets_what_the_platform_wrote():
    got = read(WRITTEN)
    assert got["pools"] == {"p5": PoolOutput.from_mapping(POOL, stack=STACK, key="pools")}
    assert (got["cluster_name"], got["claims"]) == ("yard", {"checkpoints": "checkpoints"})


def test_numbers_come_back_whole():
    pool = read({**WRITTEN, "pools": {"p5": {**POOL, "max_nodes": 4.0, "termination_grace_seconds": 3600.0}}})["pools"]["p5"]
    assert [repr(number) for number in (pool.max_nodes, pool.termination_grace_seconds)] == ["4", "3600"]


def test_a_platform_from_before_pools_said_their_grace_is_read():
    assert "termination_grace_seconds" not in POOL
    assert read(WRITTEN)["pools"]["p5"].termination_grace_seconds is None


@pytest.mark.parametrize(("duration", "seconds"), [("1h", 3600), ("90m", 5400), ("1h30m", 5400), ("45s", 45), ("1h1m1s", 3661)])
def test_a_pool_says_how_long_its_nodes_drain(duration, seconds):
    known = settings(lambda raw: raw["pools"][0].update(terminationGracePeriod=duration))
    written = pool_outputs(known)
    assert written["p5"].termination_grace_seconds == seconds
    assert written["system"].termination_grace_seconds is None, "a node group has no such limit"


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("key", sorted(set(WRITTEN) - {"bucket", "contract_version"}))
def test_a_missing_key_is_an_error_that_names_stack_and_key(key, preview):
    with pytest.raises(ContractError, match=rf"'{STACK}' has no output '{key}'"):
        read({name: value for name, value in WRITTEN.items() if name != key}, preview=preview)


def test_a_newer_contract_is_an_error_that_names_both_versions():
    with pytest.raises(ContractError, match=rf"'{STACK}'.*'contract_version' is 2.*up to {CONTRACT_VERSION}"):
        read({**WRITTEN, "contract_version": 2})


def test_a_stack_of_something_else_is_an_error():
    with pytest.raises(ContractError, match="not a Trainyard platform stack"):
        read({"url": "https://example"})


def test_a_pool_that_lacks_a_field_is_an_error_that_names_it():
    pools = {"p5": {key: value for key, value in POOL.items() if key != "efa"}}
    with pytest.raises(ContractError, match=r"'pools\.p5' lacks efa"):
        read({**WRITTEN, "pools": pools})


def test_a_platform_without_bucket_says_so():
    assert read({**WRITTEN, "bucket": None})["bucket"] is None


def test_the_error_ends_the_program_without_a_traceback():
    assert issubclass(ContractError, pulumi.RunError)


def test_the_kubeconfig_stays_secret():
    secrets: dict[str, bool] = {}

    async def note(platform: PlatformOutputs) -> None:
        secrets["kubeconfig"] = await platform.kubeconfig.is_secret()

    def program() -> None:
        reference = PlatformOutputs.from_stack(STACK)
        pulumi.Output.from_input(note(reference))
        pulumi.export("again", reference.kubeconfig)

    secret = {rpc._special_sig_key: rpc._special_secret_sig, "value": "{}"}
    outputs = {**WRITTEN, "kubeconfig": secret}
    recording = record(program, stack_outputs=outputs, project="trainyard-workloads")
    assert recording.exports["again"] == {"secret": "{}"}
    assert secrets == {"kubeconfig": True}
