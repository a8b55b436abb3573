"""The queue and the EventBridge rules by which AWS warns Karpenter of instances about to go."""

from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from infra.component import child_options, token
from infra.iam import documents

EVENT_PATTERNS: dict[str, dict[str, Any]] = {
    "health": {"source": ["aws.health"], "detail-type": ["AWS Health Event"]},
    "spot-interruption": {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]},
    "rebalance": {"source": ["aws.ec2"], "detail-type": ["EC2 Instance Rebalance Recommendation"]},
    "state-change": {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"]},
}

# A warning is worth nothing after the instance is gone.
_RETENTION_SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class KarpenterEventsArgs:
    """What KarpenterEvents needs to know."""

    cluster_name: str
    """Name of the cluster; the queue is named after it."""


class KarpenterEvents(pulumi.ComponentResource):
    """An SQS queue that four EventBridge rules write to."""

    queue_name: pulumi.Output[str]
    queue_arn: pulumi.Output[str]

    def __init__(self, name: str, args: KarpenterEventsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("compute", "KarpenterEvents"), name, {"rules": list(EVENT_PATTERNS)}, opts)
        child = child_options(self)
        queue = aws.sqs.Queue(
            name, message_retention_seconds=_RETENTION_SECONDS, sqs_managed_sse_enabled=True, tags={"Name": args.cluster_name}, opts=child
        )
        self.queue_name, self.queue_arn = queue.name, queue.arn
        policy = pulumi.Output.json_dumps(queue.arn.apply(documents.interruption_queue))
        aws.sqs.QueuePolicy(name, queue_url=queue.url, policy=policy, opts=child)
        for key, pattern in EVENT_PATTERNS.items():
            rule = aws.cloudwatch.EventRule(f"{name}-{key}", event_pattern=pulumi.Output.json_dumps(pattern), opts=child)
            aws.cloudwatch.EventTarget(f"{name}-{key}", rule=rule.name, arn=queue.arn, opts=child)
        self.register_outputs({"queue_name": self.queue_name, "queue_arn": self.queue_arn})
