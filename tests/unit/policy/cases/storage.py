"""Lustre shapes."""

from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid

CASES = (
    valid("FSX02", b.lustre(deploymentType="SCRATCH_2", storageCapacity=1200)),
    valid("FSX02", b.lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=250)),
    valid("FSX02", b.storage_class(deploymentType="SCRATCH_1")),
    valid("FSX02", b.storage_class(deploymentType="PERSISTENT_1", perUnitStorageThroughput="100")),
    invalid(
        "FSX02", b.lustre(deploymentType="SCRATCH_2", perUnitStorageThroughput=200), says="perUnitStorageThroughput is 200; allowed: unset"
    ),
    invalid("FSX02", b.lustre(perUnitStorageThroughput=50), says="deploymentType is SCRATCH_1"),
    invalid(
        "FSX02",
        b.storage_class(deploymentType="SCRATCH_1", perUnitStorageThroughput="200"),
        says="parameters.perUnitStorageThroughput is 200",
    ),
    invalid("FSX02", b.lustre(deploymentType="SCRATCH_2", perUnitStorageThroughput=UNKNOWN), says="(known after up)"),
    valid("FSX03", b.lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput=200)),
    valid("FSX03", b.lustre(deploymentType="PERSISTENT_1", storageType="HDD", perUnitStorageThroughput=12)),
    valid("FSX03", b.lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=1000)),
    valid("FSX03", b.lustre(deploymentType="PERSISTENT_2", storageType="INTELLIGENT_TIERING", throughputCapacity=4000)),
    valid("FSX03", Thing(type=b.storage_class().type, properties={"provisioner": "ebs.csi.aws.com", "parameters": {"type": "gp3"}})),
    invalid("FSX03", b.lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=200), says="125, 250, 500, 1000"),
    invalid("FSX03", b.lustre(deploymentType="PERSISTENT_2", storageCapacity=1200), says="perUnitStorageThroughput is unset"),
    invalid("FSX03", b.lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput=125), says="50, 100, 200"),
    invalid("FSX03", b.lustre(deploymentType="PERSISTENT_1", storageType="HDD", perUnitStorageThroughput=50), says="12, 40"),
    invalid(
        "FSX03",
        b.lustre(deploymentType="PERSISTENT_2", storageType="INTELLIGENT_TIERING", perUnitStorageThroughput=250),
        says="throughputCapacity",
    ),
    invalid("FSX03", b.storage_class(deploymentType="PERSISTENT_1", perUnitStorageThroughput="fast"), says="fast"),
)
