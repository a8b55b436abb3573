"""SQS queues and their policies."""

from typing import Any

from local.plugins.aws.row import Call, Described, Name, Prop, Row, Tags, plain
from local.plugins.aws.run import Run

_URL = {"QueueUrl": "$id"}
_READ = Call(op="GetQueueAttributes", by={**_URL, "AttributeNames": ["All"]}, result="Attributes")
_ATTRIBUTES = {
    "delaySeconds": "DelaySeconds",
    "maxMessageSize": "MaximumMessageSize",
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "kmsDataKeyReusePeriodSeconds": "KmsDataKeyReusePeriodSeconds",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "deduplicationScope": "DeduplicationScope",
    "fifoThroughputLimit": "FifoThroughputLimit",
    "contentBasedDeduplication": "ContentBasedDeduplication",
    "policy": "Policy",
    "redrivePolicy": "RedrivePolicy",
    "redriveAllowPolicy": "RedriveAllowPolicy",
}
_DEFAULTS = {"delaySeconds": 0, "messageRetentionSeconds": 345600, "receiveWaitTimeSeconds": 0, "visibilityTimeoutSeconds": 30}
_JSON = ("policy", "redrivePolicy", "redriveAllowPolicy")


def _attribute(name: str, attribute: str) -> Prop:
    # A queue policy may be a resource of its own, so its absence here is no wish to remove it.
    computed = name not in _DEFAULTS and name != "kmsMasterKeyId"
    return Prop(param=f"Attributes.{attribute}", read=attribute, default=_DEFAULTS.get(name), computed=computed, json=name in _JSON)


def _name(attributes: Described, declared: Any) -> str:
    return attributes["QueueArn"].rpartition(":")[2]


QUEUE = Row(
    token="aws:sqs/queue:Queue",
    service="sqs",
    create=Call(op="CreateQueue"),
    id="QueueUrl",
    read=_READ,
    delete=Call(op="DeleteQueue", by=_URL),
    retry_create=("AWS.SimpleQueueService.QueueDeletedRecently",),
    props={
        "name": Prop(param="QueueName", replace=True, read=_name),
        "namePrefix": Prop(write_only=True, replace=True),
        "fifoQueue": Prop(param="Attributes.FifoQueue", read="FifoQueue", replace=True),
        **{name: _attribute(name, attribute) for name, attribute in _ATTRIBUTES.items()},
    },
    updates=[Call(op="SetQueueAttributes", by=_URL, takes=tuple(_ATTRIBUTES))],
    outputs={"arn": "QueueArn", "url": "{id}"},
    tags=Tags(
        create="tags",
        form="map",
        add=Call(op="TagQueue", by=_URL),
        remove=Call(op="UntagQueue", by=_URL),
        read=Call(op="ListQueueTags", by=_URL),
    ),
    name=Name(longest=80),
)


def _policy(run: Run) -> dict[str, Any] | None:
    attributes = run.call("GetQueueAttributes", {"QueueUrl": run.resource_id, "AttributeNames": ["Policy"]}).get("Attributes") or {}
    return {"QueueUrl": run.resource_id, **attributes} if attributes.get("Policy") else None


QUEUE_POLICY = Row(
    token="aws:sqs/queuePolicy:QueuePolicy",
    service="sqs",
    create=Call(op="SetQueueAttributes"),
    id="{queueUrl}",
    read=_policy,
    delete=Call(op="SetQueueAttributes", by={**_URL, "Attributes": {"Policy": ""}}),
    props={
        **plain("queueUrl", replace=True),
        "policy": Prop(param="Attributes.Policy", read="Policy", json=True),
    },
    updates=[Call(op="SetQueueAttributes", by=_URL, takes=("policy",))],
    delete_before_replace=True,
)

ROWS = (QUEUE, QUEUE_POLICY)
