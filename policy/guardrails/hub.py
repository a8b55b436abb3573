"""JupyterHub: who may start a server, on what, and at which price."""

import re

from guardrails.chart import CHART_TYPES, chart_name
from guardrails.facts import instance_types
from guardrails.node import Node
from guardrails.pool import INSTANCE_TYPE
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU
from guardrails.tokens import RELEASE

_OPEN_AUTHENTICATORS = frozenset({"", "dummy", "dummyauthenticator.DummyAuthenticator", "jupyterhub.auth.DummyAuthenticator", "null"})
_ALLOWED = ("allowed_users", "allowed_groups", "allow_existing_users", "allowed_organizations", "allowed_google_groups", "admin_users")
_ACCELERATOR = re.compile(
    r"\b(?:[0-9]+\s*[x×]?\s*)?(?:NVIDIA\s+)?(A100|A10G|H100|H200|B200|B300|L40S|L4|T4|V100|Trainium2?|Inferentia2?)\b", re.IGNORECASE
)
_COUNT = re.compile(r"\b([0-9]{1,3})\s*[x×]")


def _access(release: Resource, report: Report) -> None:
    if chart_name(release) != "jupyterhub":
        return
    config = release.at("values", "hub", "config")
    with report.part():
        _authenticator(release, config, report)
    with report.part():
        _allowed(release, config, report)
    with report.part():
        _proxy(release, report)


def _authenticator(release: Resource, config: Node, report: Report) -> None:
    chosen = config.at("JupyterHub", "authenticator_class")
    if chosen.text() in _OPEN_AUTHENTICATORS:
        found = "unset, so dummy" if not chosen.present else chosen.raw
        report.refuse(release, chosen, allowed="a real authenticator, such as generic-oauth", found=found)


def _allowed(release: Resource, config: Node, report: Report) -> None:
    for _, section in config.entries():
        if section.at("allow_all").value is True:
            report.refuse(
                release, section.at("allow_all"), allowed="allowed_users or allowed_groups; everybody at the provider is not the team"
            )
            return
        if any(section.at(name).value for name in _ALLOWED):
            return
    report.refuse(
        release, config, allowed="allowed_users or allowed_groups under the authenticator", found="without allowed users or groups"
    )


def _proxy(release: Resource, report: Report) -> None:
    proxy = release.at("values", "proxy")
    kind, secure = proxy.at("service", "type"), proxy.at("https", "enabled")
    if kind.text() in ("", "LoadBalancer") and secure.value is not True:
        found = "LoadBalancer (the default), without TLS" if not kind.present else f"{kind.text()}, without TLS"
        report.refuse(release, kind, allowed="ClusterIP behind an ingress with TLS, or proxy.https.enabled", found=found)


def _profiles(release: Resource, report: Report) -> None:
    if chart_name(release) != "jupyterhub":
        return
    user = release.at("values", "singleuser")
    for profile in user.at("profileList").elements():
        with report.part():
            _profile(release, profile, report)
    for check in (_metadata_service, _culling, _limits):
        with report.part():
            check(release, user, report)


def _profile(release: Resource, profile: Node, report: Report) -> None:
    override = profile.at("kubespawner_override")
    instance = instance_types().get(override.at("node_selector", INSTANCE_TYPE).text())
    if instance is None:
        return
    shown = profile.at("display_name")
    named = _ACCELERATOR.search(shown.text())
    if named and named[1].lower() != instance.accelerator.lower():
        report.refuse(release, shown, allowed=f"{instance.count}x {instance.accelerator}, what {instance.name} has")
    asked = override.at("extra_resource_limits", GPU)
    count = _COUNT.search(shown.text())
    if (asked.integer() or 0) > instance.count:
        report.refuse(release, asked, allowed=f"at most {instance.count}, the GPUs of {instance.name}")
    elif named and count and asked.present and int(count[1]) != asked.integer():
        report.refuse(release, shown, allowed=f"{asked.text()}x, the GPUs that the profile asks for")


def _metadata_service(release: Resource, user: Node, report: Report) -> None:
    blocked = user.at("cloudMetadata", "blockWithIptables")
    if blocked.value is False:
        report.refuse(release, blocked, allowed="true: a notebook must not get the node's role")


def _culling(release: Resource, user: Node, report: Report) -> None:
    del user
    enabled = release.at("values", "cull", "enabled")
    if enabled.value is False:
        report.refuse(release, enabled, allowed="true: an idle notebook holds its GPU node")


def _limits(release: Resource, user: Node, report: Report) -> None:
    limit = user.at("memory", "limit")
    if not limit.present:
        report.advise(release, limit, allowed="a limit for each user, such as 16G")
    if user.at("storage", "type").text() == "none":
        report.advise(release, user.at("storage", "type"), allowed="dynamic or static: a user's files outlive the server")


def _hub(values: dict[str, object]) -> Example:
    return Example(RELEASE, {"chart": "jupyterhub", "version": "4.3.1", "values": values})


_OAUTH: dict[str, object] = {
    "JupyterHub": {"authenticator_class": "generic-oauth"},
    "GenericOAuthenticator": {"allowed_groups": ["research"]},
}


def _choice(name: str) -> Example:
    override = {"node_selector": {INSTANCE_TYPE: "g5.xlarge"}, "extra_resource_limits": {GPU: 1}}
    profiles = [{"display_name": name, "kubespawner_override": override}]
    return _hub({"singleuser": {"profileList": profiles, "memory": {"limit": "16G"}}})


RULES = (
    Rule(
        id="JUP01",
        name="jupyterhub-require-known-users",
        title="Only known users get a server, over TLS",
        types=CHART_TYPES,
        check=_access,
        why="the chart's default takes any name and password, behind a public load balancer: anybody gets a shell on a GPU.",
        fix="set hub.config.JupyterHub.authenticator_class, who is allowed, and proxy.service.type ClusterIP or TLS.",
        source="Zero to JupyterHub chart 4: values",
        valid=(_hub({"hub": {"config": _OAUTH}, "proxy": {"service": {"type": "ClusterIP"}}}),),
        invalid=(_hub({}),),
    ),
    Rule(
        id="JUP02",
        name="jupyterhub-require-honest-profiles",
        title="A profile is the hardware it says, and idle servers end",
        types=CHART_TYPES,
        check=_profiles,
        why="users size models for a GPU they don't get, servers stay Pending, or idle notebooks hold GPU nodes for weeks.",
        fix="name the accelerator of the instance type, keep culling and the metadata block on, and limit memory.",
        source="Zero to JupyterHub chart 4: values; Karpenter 1.14.1 instance-type reference",
        valid=(_choice("1x A10G"),),
        invalid=(_choice("1x A100"),),
    ),
)
