"""Karpenter's own validation rules."""

from tests.unit.policy import builders as b
from tests.unit.policy.case import invalid, valid

REFERENCE = "spec/template/spec/nodeClassRef"
KUBELET = "spec/kubelet"
INTERFACES = "spec/networkInterfaces"
RESERVATIONS = "spec/capacityReservationSelectorTerms"
PRIMARY = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
EFA = {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"}
VOLUMES = "spec/blockDeviceMappings"
SOFT = {"evictionSoft": {"memory.available": "5%"}, "evictionSoftGracePeriod": {"memory.available": "1m"}}

CASES = (
    valid("KUB02", b.node_pool()),
    valid("KUB02", b.node_class()),
    valid("KUB02", b.node_class({KUBELET: {"systemReserved": {"cpu": "100m"}, "evictionHard": {"nodefs.available": "5%"}}})),
    valid("KUB02", b.node_class({INTERFACES: [PRIMARY]})),
    valid("KUB02", b.node_class({RESERVATIONS: [{"id": "cr-0123"}, {"ownerID": "123456789012", "tags": {"a": "b"}}]})),
    valid("KUB02", b.node_class({KUBELET: SOFT, "spec/connectionTracking": {"udpTimeout": "30s"}})),
    valid("KUB02", b.node_class({VOLUMES: [{"ebs": {"snapshotID": "snap-1", "volumeInitializationRate": 100}}]})),
    valid("KUB02", b.node_class({KUBELET: {"imageGCHighThresholdPercent": 81, "imageGCLowThresholdPercent": 80}}), edge=True),
    invalid(
        "KUB02",
        b.node_class({KUBELET: {"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 80}}),
        says="more than imageGCLowThresholdPercent, which is 80",
        edge=True,
    ),
    invalid("KUB02", b.node_pool({f"{REFERENCE}/group": ""}), says="nodeClassRef.group is empty"),
    invalid("KUB02", b.node_pool({f"{REFERENCE}/kind": ""}), says="nodeClassRef.kind is empty"),
    invalid("KUB02", b.node_class({"spec/role": ""}), says="spec.role is empty"),
    invalid("KUB02", b.node_class({"spec/instanceProfile": ""}), says="spec.instanceProfile is empty"),
    invalid("KUB02", b.node_class({"spec/subnetSelectorTerms": [{"tags": {"a": ""}}]}), says="tags with key and value"),
    invalid("KUB02", b.node_class({RESERVATIONS: [{"id": "cr-0123", "tags": {"a": "b"}}]}), says="is id with tags; allowed: id alone"),
    invalid("KUB02", b.node_class({RESERVATIONS: [{"ownerID": "123456789012"}]}), says="without any of them"),
    invalid("KUB02", b.node_class({INTERFACES: [{**PRIMARY, "interfaceType": "efa-only"}]}), says="without a primary interface"),
    invalid("KUB02", b.node_class({INTERFACES: [{**PRIMARY, "deviceIndex": 1}]}), says="without a primary interface"),
    invalid("KUB02", b.node_class({VOLUMES: [{"ebs": {"volumeInitializationRate": 100}}]}), says="with snapshotID alone"),
    invalid("KUB02", b.node_class({"spec/connectionTracking": {}}), says="without a timeout"),
    invalid("KUB02", b.node_class({KUBELET: {"evictionSoft": {"memory.available": "5%"}}}), says="the same signals"),
    invalid("KUB02", b.node_class({KUBELET: {**SOFT, "evictionSoft": {}}}), says="the same signals"),
    invalid("KUB02", b.node_class({KUBELET: {"evictionHard": {"memory": "5%"}}}), says="evictionHard.memory is memory"),
    invalid("KUB02", b.node_class({KUBELET: {"kubeReserved": {"gpu": "1"}}}), says="one of cpu, memory"),
    invalid("KUB02", b.node_class({KUBELET: {"systemReserved": {"cpu": "-1"}}}), says="not negative"),
    valid("KUB02", b.node_class({RESERVATIONS: [{"instanceMatchCriteria": "open"}]})),
    valid("KUB02", b.node_class({INTERFACES: [PRIMARY, EFA, {**EFA, "networkCardIndex": 1}, {**PRIMARY, "deviceIndex": 2}]}), edge=True),
    invalid("KUB02", b.node_pool({f"{REFERENCE}/name": ""}), says="nodeClassRef.name is empty"),
    invalid("KUB02", b.node_class({"spec/subnetSelectorTerms": [{"tags": {"": "ml"}}]}), says="tags with key and value"),
    invalid(
        "KUB02",
        b.node_class({RESERVATIONS: [{"id": "cr-0123", "ownerID": "123456789012", "instanceMatchCriteria": "open"}]}),
        says="is id with ownerID, instanceMatchCriteria; allowed: id alone",
    ),
    invalid("KUB02", b.node_class({INTERFACES: [PRIMARY, {**EFA, "deviceIndex": 0}]}), says="[1] is card 0, device 0 again"),
    invalid("KUB02", b.node_class({INTERFACES: [PRIMARY, EFA, {**EFA, "deviceIndex": 2}]}), says="card 0, device 2 again", edge=True),
    invalid(
        "KUB02",
        b.node_class({KUBELET: {"evictionSoft": {"memory": "5%"}, "evictionSoftGracePeriod": {"memory": "1m"}}}),
        says="evictionSoftGracePeriod.memory is memory",
    ),
)
