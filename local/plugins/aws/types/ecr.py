"""Container image repositories."""

from local.plugins.aws.row import Call, Name, Prop, Row, Tags, fixed

_BY = {"repositoryName": "$id"}

REPOSITORY = Row(
    token="aws:ecr/repository:Repository",
    service="ecr",
    create=Call(op="CreateRepository", result="repository"),
    id="{name}",
    read=Call(op="DescribeRepositories", by={"repositoryNames": ["$id"]}, result="repositories[0]"),
    delete=Call(op="DeleteRepository", by={**_BY, "force": "$forceDelete"}),
    props={
        **fixed("name", param="repositoryName"),
        "encryptionConfigurations": Prop(param="encryptionConfiguration", replace=True, computed=True, send=lambda value: value[0]),
        "imageScanningConfiguration": Prop(),
        "imageTagMutability": Prop(default="MUTABLE"),
        "imageTagMutabilityExclusionFilters": Prop(),
        "forceDelete": Prop(write_only=True),
    },
    updates=[
        Call(op="PutImageScanningConfiguration", by=_BY, takes=("imageScanningConfiguration",)),
        Call(
            op="PutImageTagMutability",
            by=_BY,
            takes=("imageTagMutability", "imageTagMutabilityExclusionFilters"),
            all=True,
        ),
    ],
    outputs={"arn": "repositoryArn", "registryId": "registryId", "repositoryUrl": "repositoryUri"},
    tags=Tags(
        create="tags",
        add=Call(op="TagResource", by={"resourceArn": "$arn"}),
        add_as="tags",
        remove=Call(op="UntagResource", by={"resourceArn": "$arn"}),
        remove_as="tagKeys",
        read=Call(op="ListTagsForResource", by={"resourceArn": "arn:{partition}:ecr:{region}:{account}:repository/{name}"}),
        at="tags",
    ),
    name=Name(longest=256, lower=True, prefix_prop=""),
)

ROWS = (REPOSITORY,)
