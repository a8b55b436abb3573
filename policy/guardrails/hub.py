"""JupyterHub: who may start a server, on what, and at which price."""

import ast
import json
import re
from collections.abc import Iterator, Sequence

from guardrails.chart import CHART_TYPES, Chart, charts_of
from guardrails.facts import instance_types
from guardrails.node import Node
from guardrails.pool import INSTANCE_TYPE
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.secret import is_secret
from guardrails.template import GPU, NEURON, count
from guardrails.tokens import CONFIG_MAP, RELEASE

_OPEN_AUTHENTICATORS = frozenset({"", "dummy", "dummyauthenticator.DummyAuthenticator", "jupyterhub.auth.DummyAuthenticator", "null"})
_ORGANISATION = "hosted_domain"
_TENANT = "tenant_id"
_ANY_TENANT = frozenset({"", "common", "organizations", "consumers"})
_ALLOWED = re.compile(r"allowed_.+|admin_users|admin_(?:[a-z]+_)?groups")
"""Settings that let somebody in by name; administrators may sign in too, whether named or by a group."""
_ALSO_ALLOWED = frozenset({"allow_existing_users", _ORGANISATION})
_ACCELERATOR = re.compile(
    r"\b(?:[0-9]+\s*[x×]?\s*)?(?:NVIDIA\s+)?(A100|A10G|H100|H200|B200|B300|L40S|L4|T4|V100|Trainium2?|Inferentia2?)\b", re.IGNORECASE
)
_NEURON_ACCELERATORS = ("Trainium", "Inferentia")
_PROFILES = "c.KubeSpawner.profile_list"
"""What the hub's own configuration, a Python file, calls the profiles."""
_COUNT = re.compile(r"\b([0-9]{1,3})\s*[x×]")


def _hubs(resource: Resource) -> Iterator[Chart]:
    return (chart for chart in charts_of(resource) if chart.name == "jupyterhub" and not chart.is_folder)


def _access(resource: Resource, report: Report) -> None:
    for chart in _hubs(resource):
        for check in (_authenticator, _allowed, _proxy):
            with report.part():
                check(chart, report)


def _authenticator(chart: Chart, report: Report) -> None:
    chosen = chart.value("hub", "config", "JupyterHub", "authenticator_class")
    if chosen.text() in _OPEN_AUTHENTICATORS:
        found = "unset, so dummy" if not chosen.present else chosen.raw
        report.refuse(chart.resource, chosen, allowed="a real authenticator, such as generic-oauth", found=found)


def _allowed(chart: Chart, report: Report) -> None:
    sections = [section for config in chart.given("hub", "config") for _, section in config.entries()]
    for section in sections:
        everybody = section.at("allow_all")
        if everybody.value is True and not _is_of_organisation(section):
            report.refuse(chart.resource, everybody, allowed="allowed_users or allowed_groups; everybody at the provider is not the team")
            return
    if not any(_names_users(section) for section in sections):
        found, allowed = "without allowed users or groups", "allowed_users or allowed_groups under the authenticator"
        report.refuse(chart.resource, chart.value("hub", "config"), allowed=allowed, found=found)


def _is_of_organisation(section: Node) -> bool:
    """Whether the provider only lets in accounts of one organisation: Google's by its domain, Microsoft's by its tenant."""
    return bool(section.at(_ORGANISATION).value) or section.at(_TENANT).text() not in _ANY_TENANT


def _names_users(section: Node) -> bool:
    return any(value.value for name, value in section.entries() if _ALLOWED.fullmatch(name) or name in _ALSO_ALLOWED)


def _proxy(chart: Chart, report: Report) -> None:
    kind, secure = chart.value("proxy", "service", "type"), chart.value("proxy", "https", "enabled")
    if kind.text() in ("", "LoadBalancer") and secure.value is not True:
        found = "LoadBalancer (the default), without TLS" if not kind.present else f"{kind.text()}, without TLS"
        report.refuse(chart.resource, kind, allowed="ClusterIP behind an ingress with TLS, or proxy.https.enabled", found=found)


def _profiles(resource: Resource, report: Report) -> None:
    if resource.type == CONFIG_MAP:
        with report.part():
            _profiles_in_code(resource, [file for name, file in resource.at("data").entries() if name.endswith(".py")], report)
        return
    for chart in _hubs(resource):
        for keys in (("singleuser", "profileList"), ("hub", "config", "KubeSpawner", "profile_list")):
            with report.part():
                _each_profile(resource, chart.value(*keys), report)
        with report.part():
            _profiles_in_code(resource, [code for _, code in chart.value("hub", "extraConfig").entries()], report)
        for check in (_metadata_service, _network, _culling, _limits):
            with report.part():
                check(chart, report)


def _each_profile(resource: Resource, profiles: Node, report: Report) -> None:
    for profile in profiles.elements():
        with report.part():
            _profile(resource, profile, report)


def _profiles_in_code(resource: Resource, files: Sequence[Node], report: Report) -> None:
    for file in files:
        with report.part():
            # No message may show a part of a secret text.
            if isinstance(file.value, str) and _PROFILES in file.value and not is_secret(file.raw, resource.secrets):
                _each_profile(resource, Node(_assigned(file.value), file.path, file.owner), report)


def _assigned(code: str) -> object:
    """The profiles that the code assigns last, where they are written out; None where it computes them."""
    try:
        parsed = ast.parse(code).body
        given = [value for each in parsed if (value := _value_of(each, _PROFILES)) is not None]
        # Only what JSON has too: lists, mappings by text, and plain values.
        return json.loads(json.dumps(ast.literal_eval(given[-1]))) if given else None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _value_of(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement assigns to `name`, with or without an annotation; None where it does not."""
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    else:
        return None
    return statement.value if ast.unparse(target) == name else None


def _profile(release: Resource, profile: Node, report: Report) -> None:
    own = profile.at("kubespawner_override")
    with report.part():
        _hardware(release, profile.at("display_name"), [own], report)
    for _, option in profile.at("profile_options").entries():
        for _, choice in option.at("choices").entries():
            with report.part():
                _hardware(release, choice.at("display_name"), [choice.at("kubespawner_override"), own], report)


def _hardware(release: Resource, shown: Node, overrides: Sequence[Node], report: Report) -> None:
    """What a profile or a choice within it is called, against what the first of `overrides` that says so gives it."""
    instance = instance_types().get(_first(overrides, "node_selector", INSTANCE_TYPE).text())
    if instance is None:
        return
    named = _ACCELERATOR.search(shown.text())
    if named and named[1].lower() != instance.accelerator.lower():
        report.refuse(release, shown, allowed=f"{instance.count}x {instance.accelerator}, what {instance.name} has")
    is_neuron = instance.accelerator.startswith(_NEURON_ACCELERATORS)
    asked = _first(overrides, "extra_resource_limits", NEURON if is_neuron else GPU)
    counted = _COUNT.search(shown.text())
    if count(asked) > instance.count:
        kind = "devices" if is_neuron else "GPUs"
        report.refuse(release, asked, allowed=f"at most {instance.count}, the {kind} of {instance.name}")
    elif named and counted and asked.present and int(counted[1]) != count(asked):
        kind = "devices" if is_neuron else "GPUs"
        report.refuse(release, shown, allowed=f"{count(asked)}x, the {kind} that the profile asks for")


def _first(overrides: Sequence[Node], *keys: str) -> Node:
    """The value under `keys` of the first override that has one."""
    nodes = [override.at(*keys) for override in overrides]
    return next((node for node in nodes if node.present), nodes[0])


def _metadata_service(chart: Chart, report: Report) -> None:
    blocked = chart.value("singleuser", "cloudMetadata", "blockWithIptables")
    if blocked.value is False:
        report.refuse(chart.resource, blocked, allowed="true: a notebook must not get the node's role")


def _network(chart: Chart, report: Report) -> None:
    policy = chart.value("singleuser", "networkPolicy", "enabled")
    if policy.value is False:
        report.advise(chart.resource, policy, allowed="true, unless a policy of your own keeps users' servers apart")


def _culling(chart: Chart, report: Report) -> None:
    enabled = chart.value("cull", "enabled")
    if enabled.value is False:
        report.refuse(chart.resource, enabled, allowed="true: an idle notebook holds its GPU node")


def _limits(chart: Chart, report: Report) -> None:
    with report.part():
        limit = chart.value("singleuser", "memory", "limit")
        if not limit.present:
            report.advise(chart.resource, limit, allowed="a limit for each user, such as 16G")
    kind = chart.value("singleuser", "storage", "type")
    if kind.text() == "none":
        report.advise(chart.resource, kind, allowed="dynamic or static: a user's files outlive the server")


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
        types=CHART_TYPES | {CONFIG_MAP},
        check=_profiles,
        why="users size models for a GPU they don't get, servers stay Pending, or idle notebooks hold GPU nodes for weeks.",
        fix="name the accelerator of the instance type, keep culling and the metadata block on, and limit memory.",
        source="Zero to JupyterHub chart 4: values; Karpenter 1.14.1 instance-type reference",
        valid=(_choice("1x A10G"),),
        invalid=(_choice("1x A100"),),
    ),
)
