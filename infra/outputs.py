"""The contract between the platform and the programs that run on it: one dataclass writes the stack's outputs and reads them back.

Version 1 of the contract has the fields of `PlatformOutputs`. A reader refuses a stack that lacks one of them or that speaks a newer
version, at preview, with an error that names the stack and the key. What was added since has a default, which stands for a platform that
does not say it. Secrets stay secret on both ends.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import pulumi

CONTRACT_VERSION = 1
VERSION_KEY = "contract_version"
SECRET_KEYS = frozenset({"kubeconfig"})


class ContractError(pulumi.RunError):
    """The outputs of a platform stack are not those this program was written for."""


@dataclass(frozen=True, kw_only=True)
class PoolOutput:
    """What a job has to know of a node pool to be placed on it."""

    name: str
    """Name of the pool, also the value of the `labels.POOL` label of its nodes."""
    instance_type: str
    """The pool's one EC2 instance type; the catalogue tells what a node of it carries."""
    zone: str | None
    """The availability zone the pool is pinned to, or None where it may use several."""
    capacity_type: str
    """`on-demand`, `reserved` or `spot`."""
    efa: bool
    """Whether the pool's nodes have EFA interfaces."""
    labels: Mapping[str, str]
    """Node labels a pod selects the pool by."""
    taints: tuple[Mapping[str, str], ...]
    """Taints of the pool's nodes, each with key, value and effect."""
    max_nodes: int | None
    """Most nodes the pool may have, or None where it has no such limit."""
    termination_grace_seconds: int | None = None
    """Longest drain of a node, after which its pods are killed; None where there is no limit, or where the platform does not say it."""

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any], *, stack: str, key: str) -> "PoolOutput":
        """Rebuild a pool from a stack output; raises ContractError naming `stack` and the missing part of `key`."""
        # The engine leaves out what is None.
        raw = {"zone": None, "max_nodes": None, "termination_grace_seconds": None, **raw}
        missing = [field.name for field in fields(cls) if field.name not in raw]
        if missing:
            raise ContractError(
                f"stack {stack!r}: output {key!r} lacks {', '.join(missing)}; bring the platform stack up with this release"
            )
        values: dict[str, Any] = {field.name: raw[field.name] for field in fields(cls)}
        values["taints"] = tuple(dict(taint) for taint in values["taints"])
        for number in ("max_nodes", "termination_grace_seconds"):
            values[number] = None if values[number] is None else int(values[number])
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class PlatformOutputs:
    """Everything a jobs program gets from a platform stack."""

    cluster_name: pulumi.Output[str]
    """Name of the EKS cluster."""
    region: pulumi.Output[str]
    """AWS region of the platform."""
    kubeconfig: pulumi.Output[str]
    """Kubeconfig (JSON or YAML text) of the cluster; secret."""
    namespace: pulumi.Output[str]
    """Namespace that training jobs run in."""
    service_account: pulumi.Output[str]
    """Service account, in `namespace`, that training pods run as."""
    queue: pulumi.Output[str]
    """Volcano queue that training jobs are admitted through."""
    pools: pulumi.Output[Mapping[str, PoolOutput]]
    """Node pools by name."""
    claims: pulumi.Output[Mapping[str, str]]
    """Names of PersistentVolumeClaims in `namespace` by purpose: `checkpoints`, `home`, ..."""
    file_systems: pulumi.Output[Mapping[str, str]]
    """Ids of the file systems by kind: `lustre`, `efs`."""
    bucket: pulumi.Output[str | None]
    """Name of the checkpoint bucket, or None where the platform has none."""

    def export(self) -> None:
        """Write the contract to the outputs of the current stack."""
        pulumi.export(VERSION_KEY, CONTRACT_VERSION)
        for field in fields(self):
            value: pulumi.Output[Any] = getattr(self, field.name)
            if field.name == "pools":
                value = self.pools.apply(lambda pools: {name: asdict(pool) for name, pool in pools.items()})
            pulumi.export(field.name, pulumi.Output.secret(value) if field.name in SECRET_KEYS else value)

    @classmethod
    def from_stack(cls, name: str) -> "PlatformOutputs":
        """Read the contract of the platform stack called `name` (`organization/project/stack`).

        Reading fails with ContractError, at preview as at update, where the stack lacks a key or speaks a newer version of the contract.
        """
        reference = pulumi.StackReference(name)
        values = {field.name: _read(reference, name, field.name) for field in fields(cls)}
        values["pools"] = values["pools"].apply(lambda raw: _pools(raw, name))
        return cls(**values)


def _read(reference: pulumi.StackReference, stack: str, key: str) -> pulumi.Output[Any]:
    """Return one output of the stack, its contract checked first; a secret output stays secret."""
    version = reference.get_output(VERSION_KEY)
    value = reference.get_output(key)
    return pulumi.Output.all(version=version, value=value).apply(lambda got: check(stack, key, got["version"], got["value"]))


def check(stack: str, key: str, version: object, value: object) -> Any:
    """Return `value` if the stack's contract `version` is one this program reads and the value is there.

    Raises ContractError naming the stack, the key, what was found and what to do.
    """
    if version is None:
        raise ContractError(
            f"stack {stack!r} has no output {VERSION_KEY!r}: it is not a Trainyard platform stack, or it has not been brought up"
        )
    if not isinstance(version, (int, float)) or int(version) > CONTRACT_VERSION:
        raise ContractError(
            f"stack {stack!r}: output {VERSION_KEY!r} is {version!r}, but this program reads up to {CONTRACT_VERSION}; "
            "update this program's copy of Trainyard"
        )
    if value is None and key != "bucket":
        raise ContractError(
            f"stack {stack!r} has no output {key!r}, which contract version {CONTRACT_VERSION} requires; bring that stack up again"
        )
    return value


def _pools(raw: Mapping[str, Any], stack: str) -> dict[str, PoolOutput]:
    return {name: PoolOutput.from_mapping(pool, stack=stack, key=f"pools.{name}") for name, pool in raw.items()}
