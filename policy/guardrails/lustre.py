"""The settings of a Lustre file system, whether asked for directly, as an object of ACK or through a class of the FSx CSI driver."""

from dataclasses import dataclass

from guardrails.facts import load
from guardrails.node import Node
from guardrails.rule import Resource
from guardrails.tokens import LUSTRE, LUSTRE_OBJECTS

LUSTRE_TYPES = (LUSTRE, *LUSTRE_OBJECTS)
"""Whatever is a file system of its own, where an object of ACK may also be one of another kind."""
LUSTRE_DRIVER = "fsx.csi.aws.com"
SCRATCH = frozenset({"SCRATCH_1", "SCRATCH_2"})
TIERING = "INTELLIGENT_TIERING"
# What Go reads as a truth value, which provider and driver are written in.
_TRUTH = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
# API, provider and driver all fall back to these.
DEFAULT_DEPLOYMENT = "SCRATCH_1"
DEFAULT_STORAGE = "SSD"

_CLASS_KEYS = {
    "importPath": "s3ImportPath",
    "exportPath": "s3ExportPath",
    "metadataMode": "metadataConfigurationMode",
}
# Those that ACK has beside what is Lustre's alone, where the names differ: first the plain one, then the reference in its place.
_OBJECT_KEYS = {
    "storageCapacity": ("storageCapacity",),
    "storageType": ("storageType",),
    "fileSystemTypeVersion": ("fileSystemTypeVersion",),
    "kmsKeyId": ("kmsKeyID", "kmsKeyRef"),
    "subnetIds": ("subnetIDs", "subnetRefs"),
    "securityGroupIds": ("securityGroupIDs", "securityGroupRefs"),
}
_ADOPTION, _READ_ONLY = "services.k8s.aws/adoption-policy", "services.k8s.aws/read-only"


@dataclass(frozen=True)
class Shape:
    """A reader of one file system's settings by the names of the API."""

    resource: Resource
    settings: Node
    dynamic: bool = False
    """It is made by the CSI driver, for each claim; its settings are text."""
    is_object: bool = False
    """It is an object of ACK, in which most settings stand one level deeper."""

    def at(self, key: str) -> Node:
        """The setting `key`."""
        if self.is_object:
            return self._of_object(key)
        return self.settings.at(_CLASS_KEYS.get(key, key) if self.dynamic else key)

    def _of_object(self, key: str) -> Node:
        places = [self.settings.at(own) for own in _OBJECT_KEYS.get(key, ())]
        if not places:
            return self.settings.at("lustreConfiguration", key)
        return next((place for place in places if place.present), places[0])

    @property
    def source(self) -> str | None:
        """The property of the resource that everything of it comes from; None where each setting is a property of its own."""
        return "spec" if self.is_object else None

    @property
    def deployment(self) -> str:
        """Deployment type, the default where there is none."""
        return self.at("deploymentType").text() or DEFAULT_DEPLOYMENT

    @property
    def deployment_words(self) -> str:
        """The deployment type as messages name it, for a reader who may not find it written."""
        return self.deployment if self.at("deploymentType").text() else f"{DEFAULT_DEPLOYMENT}, the default"

    @property
    def storage(self) -> str:
        """Storage type, the default where there is none."""
        return self.at("storageType").text() or DEFAULT_STORAGE

    @property
    def kind(self) -> str:
        """Deployment and storage type as the facts name them."""
        return f"{self.deployment}/{self.storage}"

    @property
    def metadata(self) -> Node:
        """Whatever says that there is a metadata configuration; missing where there is none."""
        return self.at("metadataMode") if self.dynamic else self.at("metadataConfiguration")

    @property
    def metadata_mode(self) -> Node:
        """AUTOMATIC or USER_PROVISIONED."""
        return self.metadata if self.dynamic else self.metadata.at("mode")

    @property
    def metadata_iops(self) -> Node:
        """Metadata operations a second."""
        return self.at("metadataIops") if self.dynamic else self.metadata.at("iops")

    @property
    def read_cache_size(self) -> Node:
        """How large the read cache of tiering is to be."""
        return self.at("dataReadCacheConfiguration").at("sizeGiB" if self.is_object else "size")

    @property
    def version(self) -> str | None:
        """Lustre version, with the default that the API gives this kind; None where it is that of a backup."""
        given = self.at("fileSystemTypeVersion").text()
        if given:
            return given
        if self.at("backupId").present:
            return None
        if self.deployment != "PERSISTENT_2":
            return "2.10"
        return "2.15" if self.metadata.present else "2.12"


def flag(node: Node) -> bool | None:
    """A truth value, also as text; None where it is missing or neither. Raises `Undecided`."""
    value = node.value
    if isinstance(value, bool):
        return value
    return _TRUTH.get(value) if isinstance(value, str) else None


def file_system(resource: Resource) -> Shape:
    """The shape of a LustreFileSystem."""
    assert resource.type == LUSTRE
    return Shape(resource, resource.properties)


def shape_of(resource: Resource) -> Shape | None:
    """The shape of what is a file system of its own; None for an object that makes none, or another one than Lustre."""
    if resource.type == LUSTRE:
        return file_system(resource)
    notes = resource.at("metadata", "annotations")
    if notes.at(_ADOPTION).text() == "adopt" or flag(notes.at(_READ_ONLY)) is True:
        # It was made by somebody else, who need not have written its settings here.
        return None
    spec = resource.at("spec")
    return Shape(resource, spec, is_object=True) if spec.at("fileSystemType").text() == "LUSTRE" else None


def storage_class(resource: Resource) -> Shape | None:
    """The shape of what a StorageClass makes; None where another driver makes it."""
    if resource.at("provisioner").text() != LUSTRE_DRIVER:
        return None
    return Shape(resource, resource.at("parameters"), dynamic=True)


def on_grid(size: int, grid: dict) -> bool:
    """Whether a size is one of the single ones or a positive multiple of the step."""
    return size in grid["single"] or (size > 0 and size % grid["step"] == 0)


def grid_words(grid: dict) -> str:
    """The sizes of a grid as people say them: 1200, or a multiple of 2400."""
    single = ", ".join(str(size) for size in grid["single"])
    return f"{single}, or a multiple of {grid['step']}" if single else f"a multiple of {grid['step']}"


def capacity_grid(shape: Shape) -> dict | None:
    """The capacities in GiB that this kind takes; None where the kind itself is wrong, or takes no capacity."""
    grids = load("lustre")["capacity"]
    if shape.storage == "HDD":
        return grids.get(f"{shape.kind}/{shape.at('perUnitStorageThroughput').integer()}")
    return grids.get(shape.kind)
