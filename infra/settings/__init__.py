"""Settings of a platform stack: the only reader of Pulumi configuration.

`load()` reads every `trainyard:*` key of the stack into validated models. A wrong or unknown key is a SettingsError that lists every fault
with its path, the value and what is allowed, before anything is created. The models are also the shape part of the components' arguments.
"""

from infra.settings.addons import AddonSettings, AddonsSettings, ChartSettings, ManifestSettings, VolcanoSettings
from infra.settings.cluster import AdminSettings, ClusterSettings, EndpointSettings, SystemNodesSettings
from infra.settings.errors import Fault, SettingsError
from infra.settings.jobs import JobsSettings
from infra.settings.load import load, parse
from infra.settings.model import AwsSettings, KubernetesSettings, PlatformSettings
from infra.settings.network import NetworkSettings
from infra.settings.pools import (
    AliasImage,
    DisruptionWindow,
    GroupPlacement,
    IdImage,
    NewReservationPlacement,
    PoolSettings,
    ReservationPlacement,
)
from infra.settings.storage import (
    AccessPointSettings,
    BucketSettings,
    EfsSettings,
    LustreSettings,
    Persistent1Settings,
    Persistent2Settings,
    RepositorySettings,
    Scratch2Settings,
    StorageSettings,
)

__all__ = [
    "AccessPointSettings",
    "AddonSettings",
    "AddonsSettings",
    "AdminSettings",
    "AliasImage",
    "AwsSettings",
    "BucketSettings",
    "ChartSettings",
    "ClusterSettings",
    "DisruptionWindow",
    "EfsSettings",
    "EndpointSettings",
    "Fault",
    "GroupPlacement",
    "IdImage",
    "JobsSettings",
    "KubernetesSettings",
    "LustreSettings",
    "ManifestSettings",
    "NetworkSettings",
    "NewReservationPlacement",
    "Persistent1Settings",
    "Persistent2Settings",
    "PlatformSettings",
    "PoolSettings",
    "RepositorySettings",
    "ReservationPlacement",
    "Scratch2Settings",
    "SettingsError",
    "StorageSettings",
    "SystemNodesSettings",
    "VolcanoSettings",
    "load",
    "parse",
]
