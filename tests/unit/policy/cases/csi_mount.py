"""Who mounts a volume of a CSI driver, and how."""

from dataclasses import replace
from typing import Any

from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.csi import annotated, block, claim, efs, lustre, named, volume

DISK = named(block("WaitForFirstConsumer"))
ONCE = claim(changes={"spec/accessModes": ["ReadWriteOnce"]})
FILES = "fs-0123456789abcdef0"
ACCESS = "fsap-0fedcba9876543210"


def of_efs(changes: dict[str, Any] | None = None) -> Thing:
    """A volume of an EFS file system that exists."""
    source = {"driver": "efs.csi.aws.com", "volumeHandle": FILES}
    return volume({"spec/csi": source, "spec/mountOptions": [], **(changes or {})})


def by_handle(handle: str, *options: str) -> Thing:
    return of_efs({"spec/csi/volumeHandle": handle, "spec/mountOptions": list(options)})


def encrypted(value: str, *options: str) -> Thing:
    return of_efs({"spec/csi/volumeAttributes": {"encryptInTransit": value}, "spec/mountOptions": list(options)})


def gang(**changes: Any) -> Thing:
    """A gang whose pods mount the claim `data`."""
    place = "spec/tasks/0/template/spec/volumes"
    return b.volcano_job({place: [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}], **changes})


def small(gpus: int, instance: str) -> dict[str, Any]:
    pod = "spec/tasks/0/template/spec"
    resources = {"limits": {GPU: gpus}}
    return {f"{b.TASK_CONTAINER}/resources": resources, f"{pod}/nodeSelector": {"node.kubernetes.io/instance-type": instance}}


CASES = (
    valid("CSI08", DISK, ONCE),
    valid("CSI08", efs(), claim(), gang()),
    valid("CSI08", lustre(deploymentType="SCRATCH_2"), claim(), gang()),
    valid("CSI08", volume()),
    valid("CSI08", of_efs()),
    # A file system on a disk is mounted on one node.
    invalid("CSI08", DISK, claim(), says="accessModes[0] is ReadWriteMany; allowed: ReadWriteOnce, or a class of Lustre or EFS"),
    invalid("CSI08", DISK, claim(changes={"spec/accessModes": ["ReadOnlyMany"]}), says="accessModes[0] is ReadOnlyMany"),
    invalid("CSI08", named(block("WaitForFirstConsumer", "ebs.csi.eks.amazonaws.com")), claim(), says="is ReadWriteMany"),
    valid("CSI08", DISK, claim(changes={"spec/volumeMode": "Block"}), edge=True),
    valid("CSI08", DISK, claim(changes={"spec/storageClassName": "elsewhere"}), edge=True),
    valid("CSI08", DISK, claim(changes={"spec/accessModes": ["ReadWriteOncePod"]}), edge=True),
    # Several pods on one disk.
    invalid("CSI08", DISK, ONCE, gang(), says="claimName is data, on EBS, in 4 pods"),
    valid("CSI08", DISK, claim(changes={"spec/volumeMode": "Block"}), gang(), edge=True),
    valid("CSI08", DISK, ONCE, gang(**{"spec/tasks/0/replicas": 1}), edge=True),
    invalid("CSI08", DISK, ONCE, gang(**small(4, "p5.48xlarge")), says="unless all are on that node", edge=True),
    invalid("CSI08", DISK, ONCE, gang(**small(5, "p5.48xlarge")), says="and the other pods wait for it", edge=True),
    valid("CSI08", DISK, claim(changes={"metadata/name": "other", "spec/accessModes": ["ReadWriteOnce"]}), gang(), edge=True),
    invalid("CSI08", DISK, claim(changes={"spec/storageClassName": b.DELETE, **annotated("shared")}), says="is ReadWriteMany"),
    valid("CSI08", DISK, claim(changes=annotated("elsewhere")), edge=True),
    # Options of another file system.
    invalid(
        "CSI08", of_efs({"spec/mountOptions": ["dir_mode=0777"]}), says="mountOptions[0] is dir_mode=0777; allowed: an option of NFS 4.1"
    ),
    invalid("CSI08", of_efs({"spec/mountOptions": ["tls", "uid=1000"]}), says="mountOptions[1] is uid=1000"),
    valid("CSI08", of_efs({"spec/mountOptions": ["tls", "iam", "nfsvers=4.1", "noresvport"]}), edge=True),
    invalid("CSI08", named(efs(), mountOptions=["file_mode=0777"]), says="mountOptions[0] is file_mode=0777"),
    invalid("CSI08", volume({"spec/mountOptions": ["nfsvers=4.1"]}), says="is nfsvers=4.1; allowed: an option of Lustre"),
    valid("CSI08", volume({"spec/mountOptions": ["flock", "noatime"]}), edge=True),
    # What the driver of EFS takes.
    invalid("CSI08", encrypted("false", "tls"), says="encryptInTransit is false"),
    valid("CSI08", encrypted("true", "tls"), edge=True),
    valid("CSI08", encrypted("false"), edge=True),
    invalid("CSI08", encrypted("no"), says='encryptInTransit is no; allowed: "true" or "false"'),
    invalid("CSI08", of_efs({"spec/accessModes": ["ReadOnlyMany"]}), says="is ReadOnlyMany; allowed: ReadWriteMany, with readOnly"),
    valid("CSI08", of_efs({"spec/accessModes": ["ReadWriteMany", "ReadOnlyMany"]}), edge=True),
    # Handles of EFS: file system, folder and access point, and the type of the first before them.
    *(
        valid("CSI08", by_handle(handle), edge=True)
        for handle in (
            *(
                f"{kind}{FILES}{rest}"
                for kind in ("", "efs:", "s3files:")
                for rest in ("", ":", "::", ":/team", f"::{ACCESS}", f":team:{ACCESS}")
            ),
            "fs-01234567",
            f"fs-{40 * 'a'}::fsap-{40 * 'f'}",
            f"{FILES}:fsap",
            f"{FILES}:fsap-team",
        )
    ),
    *(
        invalid(
            "CSI08", by_handle(handle), says=f"volumeHandle is {handle}; allowed: fs-..., fs-...:/folder, fs-...::fsap-... or", edge=True
        )
        for handle in (
            "0123456789abcdef0",
            ACCESS,
            "efs",
            f"EFS:{FILES}",
            f"efs:efs:{FILES}",
            f"{FILES}/team",
            f"{FILES}.efs.us-east-1.amazonaws.com",
            f"{FILES}::/team",
            f"{FILES}:{ACCESS}:/team",
            f"{FILES}:/team:{ACCESS}:",
            f"efs:{FILES}::{ACCESS}:",
            f"{FILES}::{FILES}",
            f"{FILES}::fsap-0123456",
            f"{FILES}::{ACCESS.upper()}",
            f"fs-{41 * 'a'}",
            "fs-home",
        )
    ),
    invalid("CSI08", of_efs({"spec/csi/volumeHandle": b.DELETE}), says="volumeHandle is unset; allowed: fs-..."),
    invalid("CSI08", by_handle(f"{FILES}:{ACCESS}"), says=f"allowed: {FILES}::{ACCESS}: after one colon it is a folder"),
    invalid("CSI08", by_handle(f"s3files:{FILES}:{ACCESS}:"), says=f"allowed: s3files:{FILES}::{ACCESS}: after one colon"),
    valid(
        "CSI08",
        volume({"spec/csi": {"driver": "efs.csi.aws.com", "volumeHandle": UNKNOWN}, "spec/mountOptions": []}, {"spec": ["home"]}),
        edge=True,
    ),
    valid("CSI08", replace(by_handle("home-id::team-id"), sources={"spec": ["home"]}), edge=True),
    valid("CSI08", volume({"spec/csi": {"driver": "nfs.csi.k8s.io", "volumeHandle": "home"}})),
    valid("CSI08", by_handle(f"{FILES}::{ACCESS}", "tls", f"accesspoint={ACCESS}"), edge=True),
    valid("CSI08", by_handle(FILES, "tls", f"accesspoint={ACCESS}"), edge=True),
    invalid(
        "CSI08",
        by_handle(f"{FILES}::{ACCESS}", "tls", "accesspoint=fsap-00000000000000000"),
        says=f"mountOptions[1] is accesspoint=fsap-00000000000000000; allowed: unset, or {ACCESS}, the access point of the volumeHandle",
    ),
)
