"""Every kind of resource that the platform, or a controller in its cluster, makes: how to list it, its id, name and tags."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from local.aws.inventory import Account, Leftover


def _pairs(tags: Any) -> dict[str, str]:
    """Tags as a mapping, from either form that AWS has."""
    if isinstance(tags, Mapping):
        return dict(tags)
    return {str(tag.get("Key", tag.get("TagKey"))): str(tag.get("Value", tag.get("TagValue", ""))) for tag in tags or []}


def _ec2(account: Account, noun: str, operation: str, member: str, identity: str, **given: Any) -> Iterator[tuple[Leftover, Any]]:
    for item in account.every("ec2", operation, member, **given):
        tags = _pairs(item.get("Tags"))
        yield Leftover(kind=f"ec2 {noun}", id=item[identity], name=tags.get("Name", ""), tags=tags), item


def _default_vpcs(account: Account) -> set[str]:
    return {vpc["VpcId"] for vpc in account.every("ec2", "describe_vpcs", "Vpcs") if vpc.get("IsDefault")}


def network(account: Account) -> Iterator[Leftover]:
    """VPCs and their parts. Main route tables, default groups and default network ACLs go with their VPC."""
    default = _default_vpcs(account)
    parts: tuple[tuple[str, str, str, str, Callable[[Any], bool]], ...] = (
        ("vpc", "describe_vpcs", "Vpcs", "VpcId", lambda item: True),
        ("subnet", "describe_subnets", "Subnets", "SubnetId", lambda item: True),
        ("route table", "describe_route_tables", "RouteTables", "RouteTableId", lambda item: not _is_main(item)),
        ("security group", "describe_security_groups", "SecurityGroups", "GroupId", lambda item: item["GroupName"] != "default"),
        ("network acl", "describe_network_acls", "NetworkAcls", "NetworkAclId", lambda item: not item["IsDefault"]),
        ("network interface", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId", lambda item: True),
        ("vpc endpoint", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId", lambda item: item["State"].lower() not in GONE),
        ("nat gateway", "describe_nat_gateways", "NatGateways", "NatGatewayId", lambda item: item["State"] not in GONE),
    )
    for noun, operation, member, identity, counts in parts:
        for found, item in _ec2(account, noun, operation, member, identity):
            if item.get("VpcId") not in default and counts(item):
                yield found


GONE = ("deleted", "deleting", "terminated", "shutting-down", "cancelled", "expired")


def _is_main(table: Any) -> bool:
    return any(association.get("Main") for association in table.get("Associations", []))


def gateways_and_addresses(account: Account) -> Iterator[Leftover]:
    """Internet gateways, elastic addresses, flow logs."""
    default = _default_vpcs(account)
    for found, item in _ec2(account, "internet gateway", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"):
        if not default & {attachment["VpcId"] for attachment in item.get("Attachments", [])}:
            yield found
    for found, _ in _ec2(account, "address", "describe_addresses", "Addresses", "AllocationId"):
        yield found
    for found, _ in _ec2(account, "flow log", "describe_flow_logs", "FlowLogs", "FlowLogId"):
        yield found


def compute(account: Account) -> Iterator[Leftover]:
    """Instances, templates, volumes, placement groups, reservations."""
    for reservation in account.every("ec2", "describe_instances", "Reservations"):
        for instance in reservation["Instances"]:
            if instance["State"]["Name"] not in GONE:
                tags = _pairs(instance.get("Tags"))
                yield Leftover(kind="ec2 instance", id=instance["InstanceId"], name=tags.get("Name", ""), tags=tags)
    kinds = (
        ("launch template", "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
        ("volume", "describe_volumes", "Volumes", "VolumeId"),
        ("placement group", "describe_placement_groups", "PlacementGroups", "GroupId"),
        ("capacity reservation", "describe_capacity_reservations", "CapacityReservations", "CapacityReservationId"),
    )
    for noun, operation, member, identity in kinds:
        for found, item in _ec2(account, noun, operation, member, identity):
            if item.get("State") not in GONE:
                yield found


def load_balancers(account: Account) -> Iterator[Leftover]:
    """Load balancers of both generations, and target groups."""
    new = {item["LoadBalancerArn"]: item["LoadBalancerName"] for item in account.every("elbv2", "describe_load_balancers", "LoadBalancers")}
    groups = {item["TargetGroupArn"]: item["TargetGroupName"] for item in account.every("elbv2", "describe_target_groups", "TargetGroups")}
    for noun, named in (("load balancer", new), ("target group", groups)):
        for arn, name in named.items():
            described = account.client("elbv2").describe_tags(ResourceArns=[arn])["TagDescriptions"]
            yield Leftover(kind=f"elbv2 {noun}", id=arn, name=name, tags=_pairs(described[0]["Tags"] if described else []))
    for item in account.every("elb", "describe_load_balancers", "LoadBalancerDescriptions"):
        name = item["LoadBalancerName"]
        described = account.client("elb").describe_tags(LoadBalancerNames=[name])["TagDescriptions"]
        yield Leftover(kind="elb load balancer", id=name, tags=_pairs(described[0]["Tags"] if described else []))


def clusters(account: Account) -> Iterator[Leftover]:
    """EKS clusters, their node groups and add-ons: a child counts with its cluster's tags too."""
    eks = account.client("eks")
    for name in account.every("eks", "list_clusters", "clusters"):
        cluster = eks.describe_cluster(name=name)["cluster"]
        tags = _pairs(cluster.get("tags"))
        yield Leftover(kind="eks cluster", id=name, tags=tags)
        for group in account.every("eks", "list_nodegroups", "nodegroups", clusterName=name):
            own = eks.describe_nodegroup(clusterName=name, nodegroupName=group)["nodegroup"].get("tags")
            yield Leftover(kind="eks node group", id=f"{name}/{group}", tags=tags | _pairs(own))
        for addon in account.every("eks", "list_addons", "addons", clusterName=name):
            own = eks.describe_addon(clusterName=name, addonName=addon)["addon"].get("tags")
            yield Leftover(kind="eks addon", id=f"{name}/{addon}", tags=tags | _pairs(own))


def identities(account: Account) -> Iterator[Leftover]:
    """IAM roles, policies, instance profiles and OIDC providers. Service-linked roles belong to AWS."""
    iam = account.client("iam")
    for role in account.every("iam", "list_roles", "Roles"):
        if not role["Path"].startswith("/aws-service-role/"):
            tags = iam.list_role_tags(RoleName=role["RoleName"])["Tags"]
            yield Leftover(kind="iam role", id=role["RoleName"], tags=_pairs(tags))
    for policy in account.every("iam", "list_policies", "Policies", Scope="Local"):
        tags = iam.list_policy_tags(PolicyArn=policy["Arn"])["Tags"]
        yield Leftover(kind="iam policy", id=policy["Arn"], name=policy["PolicyName"], tags=_pairs(tags))
    for profile in account.every("iam", "list_instance_profiles", "InstanceProfiles"):
        tags = iam.list_instance_profile_tags(InstanceProfileName=profile["InstanceProfileName"])["Tags"]
        yield Leftover(kind="iam instance profile", id=profile["InstanceProfileName"], tags=_pairs(tags))
    for provider in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]:
        tags = iam.list_open_id_connect_provider_tags(OpenIDConnectProviderArn=provider["Arn"])["Tags"]
        yield Leftover(kind="iam oidc provider", id=provider["Arn"], tags=_pairs(tags))


def messages(account: Account) -> Iterator[Leftover]:
    """SQS queues and EventBridge rules."""
    sqs, events = account.client("sqs"), account.client("events")
    for url in account.every("sqs", "list_queues", "QueueUrls"):
        yield Leftover(kind="sqs queue", id=url, name=url.rpartition("/")[2], tags=_pairs(sqs.list_queue_tags(QueueUrl=url).get("Tags")))
    for rule in account.every("events", "list_rules", "Rules"):
        if not rule.get("ManagedBy"):
            yield Leftover(kind="events rule", id=rule["Name"], tags=_pairs(events.list_tags_for_resource(ResourceARN=rule["Arn"])["Tags"]))


def file_systems(account: Account) -> Iterator[Leftover]:
    """FSx file systems, associations and backups; EFS file systems and access points."""
    for item in account.every("fsx", "describe_file_systems", "FileSystems"):
        yield Leftover(kind="fsx file system", id=item["FileSystemId"], tags=_pairs(item.get("Tags")))
    for item in account.every("fsx", "describe_data_repository_associations", "Associations"):
        yield Leftover(kind="fsx data repository association", id=item["AssociationId"], tags=_pairs(item.get("Tags")))
    for item in account.every("fsx", "describe_backups", "Backups"):
        yield Leftover(kind="fsx backup", id=item["BackupId"], tags=_pairs(item.get("Tags")))
    for item in account.every("efs", "describe_file_systems", "FileSystems"):
        yield Leftover(kind="efs file system", id=item["FileSystemId"], name=item.get("Name", ""), tags=_pairs(item.get("Tags")))
    for item in account.every("efs", "describe_access_points", "AccessPoints"):
        yield Leftover(kind="efs access point", id=item["AccessPointId"], tags=_pairs(item.get("Tags")))


def buckets(account: Account) -> Iterator[Leftover]:
    """S3 buckets."""
    for item in account.client("s3").list_buckets()["Buckets"]:
        try:
            tags = _pairs(account.client("s3").get_bucket_tagging(Bucket=item["Name"])["TagSet"])
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("NoSuchTagSet", "NoSuchBucket", "AccessDenied", "PermanentRedirect"):
                raise
            tags = {}
        yield Leftover(kind="s3 bucket", id=item["Name"], tags=tags)


def keys(account: Account) -> Iterator[Leftover]:
    """KMS keys of the customer that are not on their way out."""
    kms = account.client("kms")
    for item in account.every("kms", "list_keys", "Keys"):
        key = kms.describe_key(KeyId=item["KeyId"])["KeyMetadata"]
        if key.get("KeyManager") == "CUSTOMER" and key["KeyState"] != "PendingDeletion":
            yield Leftover(kind="kms key", id=item["KeyId"], name=key.get("Description", ""), tags=_pairs(_key_tags(kms, item["KeyId"])))


def _key_tags(kms: Any, key: str) -> Any:
    try:
        return kms.list_resource_tags(KeyId=key)["Tags"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "AccessDeniedException":
            return []
        raise


def log_groups(account: Account) -> Iterator[Leftover]:
    """CloudWatch log groups."""
    logs = account.client("logs")
    for item in account.every("logs", "describe_log_groups", "logGroups"):
        arn = item["arn"].removesuffix(":*")
        yield Leftover(kind="logs log group", id=item["logGroupName"], tags=_pairs(logs.list_tags_for_resource(resourceArn=arn)["tags"]))


# The services each one asks, and the function.
COLLECTORS: tuple[tuple[tuple[str, ...], Callable[[Account], Iterator[Leftover]]], ...] = (
    (("ec2",), network),
    (("ec2",), gateways_and_addresses),
    (("ec2",), compute),
    (("elbv2", "elb"), load_balancers),
    (("eks",), clusters),
    (("iam",), identities),
    (("sqs", "events"), messages),
    (("fsx", "efs"), file_systems),
    (("s3",), buckets),
    (("kms",), keys),
    (("logs",), log_groups),
)
