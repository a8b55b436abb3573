"""What Karpenter's controller may do: look anything up in EC2, and change only what carries the cluster's tag."""

from infra.iam.documents import Document, document, partition, statement

_LOOK_UPS = (
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
)
_LAUNCH = ("ec2:RunInstances", "ec2:CreateFleet")
_NODE_POOL_TAG = "karpenter.sh/nodepool"


def karpenter_controller(*, region: str, cluster_name: str, queue_arn: str, node_role_arn: str, cluster_arn: str) -> Document:
    """Return the policy of Karpenter's controller for one cluster.

    Instances, fleets, volumes, interfaces and launch templates can only be made with the cluster's ownership tag, and only what carries it
    can be tagged or deleted. The node role can be passed to EC2 and nowhere else; instance profiles are only read, since ours are made
    beforehand.
    """
    ec2 = f"arn:{partition(region)}:ec2:{region}"
    owned = f"kubernetes.io/cluster/{cluster_name}"
    makes = [
        f"{ec2}:*:{kind}/*" for kind in ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
    ]
    parts = ("security-group", "subnet", "capacity-reservation", "placement-group")
    takes = [f"{ec2}::image/*", f"{ec2}::snapshot/*", *(f"{ec2}:*:{kind}/*" for kind in parts)]
    requested = {"StringEquals": {f"aws:RequestTag/{owned}": "owned"}, "StringLike": {f"aws:RequestTag/{_NODE_POOL_TAG}": "*"}}
    existing = {"StringEquals": {f"aws:ResourceTag/{owned}": "owned"}, "StringLike": {f"aws:ResourceTag/{_NODE_POOL_TAG}": "*"}}
    tagging = {
        "StringEquals": {
            f"aws:RequestTag/{owned}": "owned",
            "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
        }
    }
    return document(
        statement("LookUp", _LOOK_UPS, ["*"], {"StringEquals": {"aws:RequestedRegion": region}}),
        statement("LookUpImages", ["ssm:GetParameter"], [f"arn:{partition(region)}:ssm:{region}::parameter/aws/service/*"]),
        statement("LookUpPrices", ["pricing:GetProducts"], ["*"]),
        statement("LookUpCluster", ["eks:DescribeCluster"], [cluster_arn]),
        statement("LookUpProfiles", ["iam:GetInstanceProfile", "iam:ListInstanceProfiles"], ["*"]),
        statement("UseParts", _LAUNCH, takes),
        statement("UseOwnTemplates", _LAUNCH, [f"{ec2}:*:launch-template/*"], existing),
        statement("Make", [*_LAUNCH, "ec2:CreateLaunchTemplate"], makes, requested),
        statement("TagAtCreation", ["ec2:CreateTags"], makes, tagging),
        statement("TagOwnInstances", ["ec2:CreateTags"], [f"{ec2}:*:instance/*"], existing),
        statement("Delete", ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"], [makes[1], makes[4]], existing),
        statement("Interruptions", ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueUrl"], [queue_arn]),
        statement("PassNodeRole", ["iam:PassRole"], [node_role_arn], {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}),
    )
