"""What a managed node group takes of a launch template: EKS sets the rest itself, and refuses a template that says it too."""

import re

from guardrails.launch import BASE64, user_data
from guardrails.lustre import flag
from guardrails.rule import Report, Resource
from guardrails.tokens import LAUNCH_TEMPLATE

_MULTIPART = re.compile(r"\s*(mime-version:|content-type:\s*multipart/)", re.IGNORECASE)
_MERGED = ("AL2_", "AL2023_")
"""Images whose user data EKS puts together with its own."""
_DEFAULT_AMI = "AL2023_x86_64_STANDARD"


def template_suits_group(group: Resource, template: Resource | None, report: Report) -> None:
    """EKS08, on the group's template: nothing that is for EKS to say, and user data that it can add to."""
    if template is None:
        return
    for check in (_left_to_eks, _market, _subnets, _user_data):
        with report.part():
            check(group, template, report)


def encoded(template: Resource, report: Report) -> None:
    """EKS08: user data of a launch template is base64, whoever uses it."""
    data = template.at("userData")
    if template.type == LAUNCH_TEMPLATE and data.text() and not BASE64.fullmatch(data.text()):
        report.refuse(template, data, allowed="the user data in base64: EC2 refuses plain text", found="plain text")


def _left_to_eks(group: Resource, template: Resource, report: Report) -> None:
    profile, shutdown = template.at("iamInstanceProfile"), template.at("instanceInitiatedShutdownBehavior")
    sleeping = template.at("hibernationOptions", "configured")
    if any(profile.at(key).present for key in ("name", "arn")):
        report.refuse(template, profile, allowed=f"unset: EKS makes the profile, of the role of group {group.name}")
    if shutdown.raw not in (None, ""):
        report.refuse(template, shutdown, allowed=f"unset: EKS ends the nodes of group {group.name}")
    if flag(sleeping) is True:
        report.refuse(template, sleeping, allowed=f"false: nodes of group {group.name} can't hibernate")


def _market(group: Resource, template: Resource, report: Report) -> None:
    market = template.at("instanceMarketOptions", "marketType")
    if market.text() == "spot":
        report.refuse(template, market, allowed=f"unset, and capacityType SPOT in group {group.name}")


def _subnets(group: Resource, template: Resource, report: Report) -> None:
    for interface in template.at("networkInterfaces").elements():
        subnet = interface.at("subnetId")
        if subnet.raw not in (None, ""):
            report.refuse(template, subnet, allowed=f"unset: the subnets are those of group {group.name}")


def _user_data(group: Resource, template: Resource, report: Report) -> None:
    data, image = template.at("userData"), template.at("imageId")
    if image.raw not in (None, ""):
        # An image may have all that a node needs to join baked into it.
        if not data.present:
            report.advise(template, data, allowed="what lets a node join: EKS adds nothing to the user data of an image of one's own")
        return
    family = group.at("amiType").text() or _DEFAULT_AMI
    text = user_data(template).strip()
    readable = bool(text) and "\ufffd" not in text
    if readable and family.startswith(_MERGED) and not _MULTIPART.match(text):
        report.refuse(
            template, data, allowed=f"a MIME multi-part document, to which EKS adds its own part on {family}", found="another text"
        )
