"""Launch templates."""

from typing import Any

from local.plugins.aws.row import Call, Described, Name, Prop, Row, Update, fixed, plain
from local.plugins.aws.run import Run
from local.plugins.aws.types.ec2 import ARN, ec2_tags, first

_DATA = "LaunchTemplateData"
_DATA_PROPS = {
    **plain(
        "blockDeviceMappings",
        "capacityReservationSpecification",
        "cpuOptions",
        "creditSpecification",
        "disableApiStop",
        "disableApiTermination",
        "ebsOptimized",
        "enclaveOptions",
        "hibernationOptions",
        "iamInstanceProfile",
        "imageId",
        "instanceInitiatedShutdownBehavior",
        "instanceType",
        "kernelId",
        "keyName",
        "licenseSpecifications",
        "maintenanceOptions",
        "metadataOptions",
        "monitoring",
        "placement",
        "privateDnsNameOptions",
        "ramDiskId",
        "tagSpecifications",
        "userData",
    ),
    "instanceMarketOptions": Prop(),
    "networkInterfaces": Prop(
        names={
            "securityGroups": "Groups",
            "ipv4Addresses": "PrivateIpAddresses",
            "ipv4AddressCount": "SecondaryPrivateIpAddressCount",
        }
    ),
    "vpcSecurityGroupIds": Prop(param=f"{_DATA}.SecurityGroupIds"),
    "securityGroupNames": Prop(param=f"{_DATA}.SecurityGroups"),
}


def _describe(run: Run) -> dict[str, Any] | None:
    template = first(run, "DescribeLaunchTemplates", "LaunchTemplates", LaunchTemplateIds=[run.resource_id])
    if template is None:
        return None
    newest = first(run, "DescribeLaunchTemplateVersions", "LaunchTemplateVersions", LaunchTemplateId=run.resource_id, Versions=["$Latest"])
    return {**(newest or {}), **template}


def _new_version(run: Run) -> None:
    """A version is never changed: any change makes a new one, with everything in it."""
    call = Call(op="CreateLaunchTemplateVersion", by={"LaunchTemplateId": "$id"}, inside=_DATA, token="ClientToken")
    given = [name for name in (*_DATA_PROPS, "description") if run.inputs.get(name) is not None]
    params, sources = run.params(call, only=given)
    made = run.call(call.op, {_DATA: {}, **params}, sources)["LaunchTemplateVersion"]
    if run.inputs.get("updateDefaultVersion"):
        run.call("ModifyLaunchTemplate", {"LaunchTemplateId": run.resource_id, "DefaultVersion": str(made["VersionNumber"])})


def _set_default(run: Run) -> None:
    if run.inputs.get("defaultVersion") is not None:
        params = {"LaunchTemplateId": run.resource_id, "DefaultVersion": str(run.inputs["defaultVersion"])}
        run.call("ModifyLaunchTemplate", params, {"DefaultVersion": "defaultVersion"})


def _tag_specifications(template: Described, declared: Any) -> list[dict[str, Any]]:
    """Tags for what is launched. The emulator lists the template's own among them."""
    found = (template.get(_DATA) or {}).get("TagSpecifications") or ()
    return [one for one in found if one.get("ResourceType") != "launch-template"]


_CREATE = Call(op="CreateLaunchTemplate", inside=_DATA, token="ClientToken")


def _create(run: Run) -> dict[str, Any]:
    params, sources = run.params(_CREATE, creating=True)
    return run.call(_CREATE.op, {_DATA: {}, **params}, sources)["LaunchTemplate"]


LAUNCH_TEMPLATE = Row(
    token="aws:ec2/launchTemplate:LaunchTemplate",
    service="ec2",
    create=_create,
    form=_CREATE,
    id="LaunchTemplateId",
    read=_describe,
    delete=Call(op="DeleteLaunchTemplate", by={"LaunchTemplateId": "$id"}),
    props={
        **fixed("name", param="LaunchTemplateName"),
        "namePrefix": Prop(write_only=True, replace=True),
        "description": Prop(param="VersionDescription"),
        "updateDefaultVersion": Prop(write_only=True),
        "defaultVersion": Prop(param="", computed=True, read="DefaultVersionNumber"),
        **{
            name: prop if prop.read or prop.param else Prop(names=prop.names, read=f"{_DATA}.{name[0].upper()}{name[1:]}")
            for name, prop in _DATA_PROPS.items()
            if not prop.param
        },
        "tagSpecifications": Prop(read=_tag_specifications),
        "vpcSecurityGroupIds": Prop(param=f"{_DATA}.SecurityGroupIds", read=f"{_DATA}.SecurityGroupIds"),
        "securityGroupNames": Prop(param=f"{_DATA}.SecurityGroups", read=f"{_DATA}.SecurityGroups"),
    },
    updates=[
        Update(takes=(*_DATA_PROPS, "description"), run=_new_version),
        Update(takes=("defaultVersion",), run=_set_default),
    ],
    outputs={"arn": ARN + "launch-template/{id}", "latestVersion": "LatestVersionNumber"},
    volatile=("latestVersion", "defaultVersion"),
    tags=ec2_tags("launch-template"),
    name=Name(longest=125),
)

ROWS = (LAUNCH_TEMPLATE,)
