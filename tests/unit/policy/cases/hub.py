"""JupyterHub."""

import json
from typing import Any

from pulumi_policy.deserialize import SPECIAL_ASSET_SIG, SPECIAL_SIG_KEY

from guardrails import tokens
from guardrails.template import GPU, NEURON
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

CHART = "kubernetes:helm.sh/v4:Chart"
TYPE = "node.kubernetes.io/instance-type"
_VALUES: dict[str, Any] = {
    "hub": {
        "config": {
            "JupyterHub": {"authenticator_class": "generic-oauth"},
            "GenericOAuthenticator": {"allowed_groups": ["research"]},
        }
    },
    "proxy": {"service": {"type": "ClusterIP"}},
    "singleuser": {
        "memory": {"limit": "16G"},
        "storage": {"type": "dynamic"},
        "profileList": [
            {
                "display_name": "1x A10G",
                "kubespawner_override": {"node_selector": {TYPE: "g5.xlarge"}, "extra_resource_limits": {GPU: 1}},
            }
        ],
    },
}
CONFIG, GROUPS = "hub/config", "hub/config/GenericOAuthenticator/allowed_groups"
CLASS = "hub/config/JupyterHub/authenticator_class"
SERVICE = "proxy/service/type"
PROFILE = "singleuser/profileList/0"
SHOWN = f"{PROFILE}/display_name"
SELECTOR, LIMITS = f"{PROFILE}/kubespawner_override/node_selector", f"{PROFILE}/kubespawner_override/extra_resource_limits"


def hub(changes: dict[str, Any] | None = None, *, chart: str = "jupyterhub", kind: str = tokens.RELEASE) -> Thing:
    properties = {"chart": chart, "version": "4.3.1", "values": b.changed(_VALUES, changes or {})}
    return Thing(type=kind, name="hub", properties=properties)


SPAWNER = "hub/config/KubeSpawner/profile_list"
OWN = _VALUES["singleuser"]["profileList"][0]
WRONG = {**OWN, "display_name": "1x A100"}


def in_code(code: str) -> Thing:
    """A ConfigMap with the hub's configuration."""
    data = {"jupyterhub_config.py": code}
    return Thing(type=tokens.CONFIG_MAP, name="config", properties={"metadata": {"name": "config"}, "data": data})


def profile(shown: str, instance: str, gpus: int) -> Thing:
    return hub({SHOWN: shown, SELECTOR: {TYPE: instance}, LIMITS: {GPU: gpus}})


def choosing(shown: str, override: dict[str, Any]) -> Thing:
    """A profile in which the user chooses the size."""
    choices = {"big": {"display_name": shown, "kubespawner_override": override}}
    return hub({f"{PROFILE}/profile_options": {"size": {"display_name": "Size", "choices": choices}}})


def two_sources(helm: dict[str, Any]) -> Thing:
    """An Application with the chart, and a repository of values beside it."""
    sources = [{"chart": "jupyterhub", "targetRevision": "4.3.1", "helm": helm}, {"repoURL": "https://git.example", "ref": "values"}]
    return Thing(type=tokens.APPLICATION, name="hub", properties={"spec": {"project": "ml", "sources": sources}})


def in_files(*files: dict[str, Any]) -> Thing:
    """A release with its values in YAML files, the last of which counts first."""
    texts = [{SPECIAL_SIG_KEY: SPECIAL_ASSET_SIG, "text": json.dumps(file)} for file in files]
    return Thing(type=tokens.RELEASE, name="hub", properties={"chart": "jupyterhub", "version": "4.3.1", "valueYamlFiles": texts})


_WITHOUT_GROUPS = b.changed(_VALUES, {GROUPS: b.DELETE})
_DUMMY = {"hub": {"config": {"JupyterHub": {"authenticator_class": "dummy"}}}}


def parameter(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value}


TLS = b.changed(_VALUES, {"proxy": {}})

CASES = (
    valid("JUP01", hub()),
    valid("JUP01", hub({GROUPS: b.DELETE, "hub/config/Authenticator": {"allowed_users": ["ada"]}})),
    valid("JUP01", hub({SERVICE: "LoadBalancer", "proxy/https": {"enabled": True}})),
    valid("JUP01", hub({CONFIG: {}}, chart="binderhub")),
    valid("JUP01", hub({CONFIG: {}}, chart="./charts/jupyterhub")),
    invalid("JUP01", hub({CLASS: "dummy"}, chart="./charts/jupyterhub-4.3.1.tgz"), says="is dummy", edge=True),
    valid("JUP01", hub(chart="charts/jupyterhub-4.3.1.tgz", kind=CHART)),
    valid("JUP01", hub({GROUPS: ["a"]}), edge=True),
    invalid("JUP01", hub({GROUPS: []}), says="without allowed users or groups", edge=True),
    invalid("JUP01", hub({CONFIG: {}}), says="unset, so dummy"),
    invalid("JUP01", hub({CLASS: "dummy"}), says="authenticator_class is dummy"),
    invalid("JUP01", hub({GROUPS: b.DELETE, "hub/config/GenericOAuthenticator/allow_all": True}), says="allow_all is true"),
    invalid("JUP01", hub({SERVICE: b.DELETE}), says="LoadBalancer (the default), without TLS"),
    invalid("JUP01", hub({SERVICE: "LoadBalancer"}), says="type is LoadBalancer, without TLS"),
    invalid("JUP01", hub({CLASS: "dummy"}, kind=CHART, chart="https://charts.example/jupyterhub-4.3.1.tgz"), says="is dummy"),
    valid("JUP02", hub()),
    # Profiles may stand in the hub's own configuration, and in its code where they are written out.
    valid("JUP02", hub({SPAWNER: [OWN]})),
    invalid("JUP02", hub({SPAWNER: [{**OWN, "display_name": "1x A100"}]}), says="profile_list[0].display_name is 1x A100"),
    *(valid("JUP02", in_code(f"c.KubeSpawner.profile_list = {text}")) for text in (f"[{OWN}]", "[profile(1)]", "[", "None", "b''")),
    valid("JUP02", in_code(f"c.KubeSpawner.profile_list = [{WRONG}]\nc.KubeSpawner.profile_list = []"), edge=True),
    valid("JUP02", hub({"hub/extraConfig": {"own": "c.KubeSpawner.cpu_limit = 2"}})),
    invalid("JUP02", in_code(f"c = get_config()\nc.KubeSpawner.profile_list = [{WRONG}]"), says="is 1x A100; allowed: 1x A10G"),
    invalid("JUP02", in_code(f"c.KubeSpawner.profile_list: list[dict] = [{WRONG}]"), says="is 1x A100; allowed: 1x A10G"),
    valid("JUP02", in_code(f"c.KubeSpawner.profile_list = [{WRONG}]\nc.KubeSpawner.profile_list: list = []"), edge=True),
    valid("JUP02", in_code("c.KubeSpawner.profile_list: list")),
    invalid(
        "JUP02", hub({"hub/extraConfig": {"own": f"c.KubeSpawner.profile_list = [{WRONG}]"}}), says="extraConfig.own[0].display_name is"
    ),
    valid("JUP02", hub({"singleuser/networkPolicy": {"enabled": True}})),
    invalid("JUP02", hub({"singleuser/networkPolicy": {"enabled": False}}), says="networkPolicy.enabled is false"),
    valid("JUP02", profile("8x H100", "p5.48xlarge", 8)),
    valid("JUP02", profile("A whole node", "p5.48xlarge", 8)),
    valid("JUP02", profile("1x A100", "m7i.xlarge", 0)),
    valid("JUP02", hub({SHOWN: "1x A100"}, chart="binderhub")),
    valid("JUP02", profile("4 x A10G", "g5.12xlarge", 4), edge=True),
    invalid("JUP02", profile("5 x A10G", "g5.12xlarge", 5), says="at most 4, the GPUs of g5.12xlarge", edge=True),
    invalid("JUP02", profile("1x A100", "g5.xlarge", 1), says="display_name is 1x A100; allowed: 1x A10G"),
    invalid("JUP02", profile("8x H100", "p5.48xlarge", 4), says="4x, the GPUs that the profile asks for"),
    invalid("JUP02", hub({"singleuser/cloudMetadata": {"blockWithIptables": False}}), says="blockWithIptables is false"),
    invalid("JUP02", hub({"cull": {"enabled": False}}), says="cull.enabled is false"),
    invalid("JUP02", hub({"singleuser/memory": b.DELETE}), says="memory.limit is unset"),
    invalid("JUP02", hub({"singleuser/storage/type": "none"}), says="storage.type is none"),
    valid("JUP02", hub({SHOWN: "1x L40S", SELECTOR: {TYPE: "g6e.xlarge"}})),
    invalid("JUP01", hub({"hub/config/OAuthenticator": {"allow_all": True}}), says="OAuthenticator.allow_all is true"),
    valid("JUP01", hub({GROUPS: b.DELETE, "hub/config/GitLabOAuthenticator": {"allowed_gitlab_groups": ["ml"]}})),
    valid("JUP01", hub({GROUPS: b.DELETE, "hub/config/GitLabOAuthenticator": {"allowed_project_ids": [7]}})),
    valid("JUP01", hub({"hub/config/GoogleOAuthenticator": {"allow_all": True, "hosted_domain": ["example.org"]}}), edge=True),
    # Who administers may sign in, also by a group.
    *(
        valid("JUP01", hub({GROUPS: b.DELETE, f"hub/config/GenericOAuthenticator/{name}": ["operators"]}))
        for name in ("admin_users", "admin_groups", "admin_google_groups", "allowed_google_groups")
    ),
    invalid("JUP01", hub({GROUPS: b.DELETE, "hub/config/GenericOAuthenticator/admin_groups": []}), says="without allowed users", edge=True),
    invalid("JUP01", hub({GROUPS: b.DELETE, "hub/config/JupyterHub/admin_access": True}), says="without allowed users", edge=True),
    valid("JUP01", hub({"hub/config/AzureAdOAuthenticator": {"allow_all": True, "tenant_id": "6f4ad3c1"}}), edge=True),
    *(
        invalid("JUP01", hub({"hub/config/AzureAdOAuthenticator": {"allow_all": True, "tenant_id": tenant}}), says="allow_all is true")
        for tenant in ("common", "organizations", "")
    ),
    invalid(
        "JUP01", hub({"hub/config/GoogleOAuthenticator": {"allow_all": True, "hosted_domain": []}}), says="allow_all is true", edge=True
    ),
    valid("JUP02", profile("16x Trainium2", "trn2.48xlarge", 0)),
    valid("JUP02", hub({SHOWN: "16x Trainium2", SELECTOR: {TYPE: "trn2.48xlarge"}, LIMITS: {NEURON: 16}})),
    invalid("JUP02", hub({SHOWN: "16x Trainium2", SELECTOR: {TYPE: "trn2.48xlarge"}, LIMITS: {NEURON: 8}}), says="8x, the devices that"),
    invalid("JUP02", hub({SHOWN: "A node", SELECTOR: {TYPE: "trn2.48xlarge"}, LIMITS: {NEURON: 17}}), says="at most 16, the devices of"),
    invalid(
        "JUP02", choosing("1x A100", {"node_selector": {TYPE: "g6e.xlarge"}}), says="choices.big.display_name is 1x A100; allowed: 1x L40S"
    ),
    invalid("JUP02", choosing("Two", {"extra_resource_limits": {GPU: 2}}), says="at most 1, the GPUs of g5.xlarge"),
    valid("JUP02", choosing("1x L40S", {"node_selector": {TYPE: "g6e.xlarge"}})),
    # By whatever installs the chart, and wherever its values are.
    valid("JUP01", b.application_of("jupyterhub", {"valuesObject": _VALUES})),
    valid("JUP01", b.application_of("jupyterhub", {"values": json.dumps(_VALUES)})),
    valid("JUP01", two_sources({"valuesObject": _VALUES})),
    valid("JUP01", b.application_of("other", {"valuesObject": {}})),
    valid("JUP01", in_files(_VALUES)),
    valid("JUP01", in_files({"hub": {"config": {"GenericOAuthenticator": {"allowed_groups": ["research"]}}}}, _WITHOUT_GROUPS)),
    invalid("JUP01", b.application_of("jupyterhub"), says="helm.valuesObject.hub.config.JupyterHub.authenticator_class is unset, so dummy"),
    invalid(
        "JUP01", b.application_of("jupyterhub", {"valuesObject": {}, "values": json.dumps(_VALUES)}), says="unset, so dummy", edge=True
    ),
    invalid("JUP01", b.application_of("jupyterhub", {"values": json.dumps({**_VALUES, "proxy": {}})}), says="LoadBalancer (the default)"),
    invalid("JUP01", two_sources({}), says="spec.sources[0].helm.valuesObject.hub.config"),
    # What values are in a folder in Git, or whether it is a chart, is not seen.
    valid("JUP01", b.application_of("jupyterhub", None, chart=None, path="apps/jupyterhub/")),
    valid(
        "JUP01", b.application_of("jupyterhub", {"valuesObject": TLS, "parameters": [parameter("proxy.https.enabled", "true")]}), edge=True
    ),
    invalid(
        "JUP01",
        b.application_of("jupyterhub", {"valuesObject": TLS, "parameters": [parameter("proxy.https.enabled", "false")]}),
        says="LoadBalancer (the default), without TLS",
        edge=True,
    ),
    invalid(
        "JUP01",
        b.application_of(
            "jupyterhub", {"valuesObject": TLS, "parameters": [{**parameter("proxy.https.enabled", "true"), "forceString": True}]}
        ),
        says="without TLS",
        edge=True,
    ),
    invalid("JUP02", b.application_of("jupyterhub", {"parameters": [parameter("cull.enabled", "false")]}), says="value is false"),
    valid(
        "JUP02",
        b.application_of("jupyterhub", {"parameters": [parameter("cull.enabled", "true"), parameter("singleuser.memory.limit", "16")]}),
    ),
    invalid("JUP01", in_files(_VALUES, _DUMMY), says="authenticator_class is dummy"),
    invalid("JUP02", b.application_of("jupyterhub", {"valuesObject": b.changed(_VALUES, {SHOWN: "1x A100"})}), says="is 1x A100"),
    invalid("JUP02", b.application_of("jupyterhub", {"parameters": [{"name": "cull.enabled", "value": False}]}), says="value is false"),
    invalid("JUP02", in_files({"cull": {"enabled": False}}), says="cull.enabled is false"),
)
