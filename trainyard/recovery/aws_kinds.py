"""How each type of AWS resource is looked for: by the call that lists it, and by what tells one from another."""

from collections.abc import Callable, Iterator, Mapping

from local.aws.inventory import Account
from trainyard.recovery import ec2_kinds
from trainyard.recovery.tagging import bucket_tags, tags_of
from trainyard.recovery.wanted import Found, Wanted

Kind = Callable[[Account, Wanted], Iterator[Found]]


def _role(account: Account, wanted: Wanted) -> Iterator[Found]:
    for role in account.every("iam", "list_roles", "Roles"):
        if wanted.is_named("name", name := role["RoleName"]):
            yield Found(id=name, inputs={"name": name}, tags=tags_of(account.client("iam").list_role_tags(RoleName=name)["Tags"]))


def _policy(account: Account, wanted: Wanted) -> Iterator[Found]:
    for policy in account.every("iam", "list_policies", "Policies", Scope="Local"):
        if wanted.is_named("name", name := policy["PolicyName"]):
            tags = account.client("iam").list_policy_tags(PolicyArn=policy["Arn"])["Tags"]
            yield Found(id=policy["Arn"], inputs={"name": name}, tags=tags_of(tags))


def _instance_profile(account: Account, wanted: Wanted) -> Iterator[Found]:
    for profile in account.every("iam", "list_instance_profiles", "InstanceProfiles"):
        if wanted.is_named("name", name := profile["InstanceProfileName"]):
            tags = account.client("iam").list_instance_profile_tags(InstanceProfileName=name)["Tags"]
            yield Found(id=name, inputs={"name": name}, tags=tags_of(tags))


def _role_policy(account: Account, wanted: Wanted) -> Iterator[Found]:
    if role := wanted.known("role"):
        for name in account.every("iam", "list_role_policies", "PolicyNames", RoleName=role):
            if wanted.is_named("name", name):
                yield Found(id=f"{role}:{name}", inputs={"name": name})


def _cluster(account: Account, wanted: Wanted) -> Iterator[Found]:
    for name in account.every("eks", "list_clusters", "clusters"):
        if wanted.is_named("name", name):
            cluster = account.client("eks").describe_cluster(name=name)["cluster"]
            yield Found(id=name, inputs={"name": name}, tags=tags_of(cluster.get("tags")), condition=cluster.get("status", ""))


def _node_group(account: Account, wanted: Wanted) -> Iterator[Found]:
    if cluster := wanted.known("clusterName"):
        for name in account.every("eks", "list_nodegroups", "nodegroups", clusterName=cluster):
            if wanted.is_named("nodeGroupName", name):
                group = account.client("eks").describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"]
                condition = "failed" if group.get("status") == "DEGRADED" else group.get("status", "")
                yield Found(id=f"{cluster}:{name}", inputs={"nodeGroupName": name}, tags=tags_of(group.get("tags")), condition=condition)


def _addon(account: Account, wanted: Wanted) -> Iterator[Found]:
    cluster, name = wanted.known("clusterName"), wanted.known("addonName")
    if cluster and name:
        addon = account.client("eks").describe_addon(clusterName=cluster, addonName=name)["addon"]
        # A degraded one may be so because nothing it runs on is there yet: an update can put it right.
        yield Found(id=f"{cluster}:{name}", tags=tags_of(addon.get("tags")), condition=addon.get("status", ""))


def _access_entry(account: Account, wanted: Wanted) -> Iterator[Found]:
    cluster, principal = wanted.known("clusterName"), wanted.known("principalArn")
    if cluster and principal:
        entry = account.client("eks").describe_access_entry(clusterName=cluster, principalArn=principal)["accessEntry"]
        yield Found(id=f"{cluster}:{principal}", tags=tags_of(entry.get("tags")))


def _pod_identity_association(account: Account, wanted: Wanted) -> Iterator[Found]:
    cluster, namespace, service_account = (wanted.known(prop) for prop in ("clusterName", "namespace", "serviceAccount"))
    if cluster and namespace and service_account:
        whose = {"clusterName": cluster, "namespace": namespace, "serviceAccount": service_account}
        for each in account.every("eks", "list_pod_identity_associations", "associations", **whose):
            described = account.client("eks").describe_pod_identity_association(clusterName=cluster, associationId=each["associationId"])
            yield Found(id=each["associationId"], tags=tags_of(described["association"].get("tags")))


def _queue(account: Account, wanted: Wanted) -> Iterator[Found]:
    for url in account.every("sqs", "list_queues", "QueueUrls"):
        if wanted.is_named("name", name := url.rpartition("/")[2]):
            yield Found(id=url, inputs={"name": name}, tags=tags_of(account.client("sqs").list_queue_tags(QueueUrl=url).get("Tags")))


def _event_rule(account: Account, wanted: Wanted) -> Iterator[Found]:
    for rule in account.every("events", "list_rules", "Rules"):
        if wanted.is_named("name", name := rule["Name"]):
            tags = account.client("events").list_tags_for_resource(ResourceARN=rule["Arn"])["Tags"]
            yield Found(id=name, inputs={"name": name}, tags=tags_of(tags))


def _event_target(account: Account, wanted: Wanted) -> Iterator[Found]:
    rule, arn = wanted.known("rule"), wanted.known("arn")
    if rule and arn:
        for target in account.every("events", "list_targets_by_rule", "Targets", Rule=rule):
            if target["Arn"] == arn:
                yield Found(id=f"{rule}-{target['Id']}", outputs={"targetId": target["Id"]})


def _bucket(account: Account, wanted: Wanted) -> Iterator[Found]:
    for bucket in account.client("s3").list_buckets()["Buckets"]:
        if wanted.is_named("bucket", name := bucket["Name"]):
            tags = bucket_tags(account, name)
            # Tags are set by a second call. A bucket without any is ours where its name is one that only this creation can have made.
            ours = not tags and (wanted.pending or wanted.has_made_up("bucket"))
            yield Found(id=name, inputs={"bucket": name}, tags=None if ours else tags)


def _lustre(account: Account, wanted: Wanted) -> Iterator[Found]:
    for item in account.every("fsx", "describe_file_systems", "FileSystems"):
        if item["FileSystemType"] == "LUSTRE" and item["Lifecycle"] != "DELETING":
            # Lustre has one subnet; the plug-in's property is a single id in spite of its name.
            same = {"subnetIds": item["SubnetIds"][0]}
            yield Found(id=item["FileSystemId"], inputs=same, tags=tags_of(item.get("Tags")), condition=item["Lifecycle"])


def _association(account: Account, wanted: Wanted) -> Iterator[Found]:
    for item in account.every("fsx", "describe_data_repository_associations", "Associations"):
        if item["Lifecycle"] != "DELETING":
            same = {"fileSystemId": item.get("FileSystemId"), "fileSystemPath": item.get("FileSystemPath")}
            yield Found(id=item["AssociationId"], inputs=same, tags=tags_of(item.get("Tags")), condition=item["Lifecycle"])


def _efs(account: Account, wanted: Wanted) -> Iterator[Found]:
    for item in account.every("efs", "describe_file_systems", "FileSystems"):
        if item["LifeCycleState"] not in ("deleting", "deleted"):
            yield Found(id=item["FileSystemId"], tags=tags_of(item.get("Tags")), condition=item["LifeCycleState"])


def _mount_target(account: Account, wanted: Wanted) -> Iterator[Found]:
    if file_system := wanted.known("fileSystemId"):
        for item in account.client("efs").describe_mount_targets(FileSystemId=file_system)["MountTargets"]:
            if item["SubnetId"] == wanted.known("subnetId") and item["LifeCycleState"] not in ("deleting", "deleted"):
                yield Found(id=item["MountTargetId"], condition=item["LifeCycleState"])


def _access_point(account: Account, wanted: Wanted) -> Iterator[Found]:
    if file_system := wanted.known("fileSystemId"):
        for item in account.every("efs", "describe_access_points", "AccessPoints", FileSystemId=file_system):
            if item["LifeCycleState"] not in ("deleting", "deleted"):
                yield Found(id=item["AccessPointId"], tags=tags_of(item.get("Tags")), condition=item["LifeCycleState"])


KINDS: Mapping[str, Kind] = {
    **ec2_kinds.KINDS,
    "aws:iam/role:Role": _role,
    "aws:iam/policy:Policy": _policy,
    "aws:iam/instanceProfile:InstanceProfile": _instance_profile,
    "aws:iam/rolePolicy:RolePolicy": _role_policy,
    "aws:eks/cluster:Cluster": _cluster,
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws:eks/addon:Addon": _addon,
    "aws:eks/accessEntry:AccessEntry": _access_entry,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _pod_identity_association,
    "aws:sqs/queue:Queue": _queue,
    "aws:cloudwatch/eventRule:EventRule": _event_rule,
    "aws:cloudwatch/eventTarget:EventTarget": _event_target,
    "aws:s3/bucket:Bucket": _bucket,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre,
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": _association,
    "aws:efs/fileSystem:FileSystem": _efs,
    "aws:efs/mountTarget:MountTarget": _mount_target,
    "aws:efs/accessPoint:AccessPoint": _access_point,
}
"""Type token -> function that yields what may be a wanted resource."""

# Their creation sets something of another resource: doing it again changes nothing, and it goes with that resource.
REPEATABLE = frozenset(
    {
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
        "aws:sqs/queuePolicy:QueuePolicy",
        "aws:s3/bucketPolicy:BucketPolicy",
        "aws:s3/bucketVersioning:BucketVersioning",
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        "aws:efs/backupPolicy:BackupPolicy",
        "aws:efs/fileSystemPolicy:FileSystemPolicy",
    }
)
