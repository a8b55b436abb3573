"""Argo CD."""

from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

_APPLICATION: dict[str, Any] = {
    "project": "ml",
    "source": {
        "repoURL": "https://charts.example",
        "chart": "slurm",
        "targetRevision": "1.2.1",
        "helm": {"valuesObject": {"nodesets": {}}},
    },
    "syncPolicy": {"automated": {"prune": False}},
}
REVISION, VALUES = "source/targetRevision", "source/helm/valuesObject"
SYNC = "syncPolicy"
SHA = "4f" * 20


def application(changes: dict[str, Any] | None = None) -> Thing:
    properties = {"metadata": {"name": "training"}, "spec": b.changed(_APPLICATION, changes or {})}
    return Thing(type=tokens.APPLICATION, name="training", properties=properties)


def application_set(changes: dict[str, Any] | None = None) -> Thing:
    """A set of Applications, each of them for a cluster."""
    template = {"metadata": {"name": "{{.name}}-training"}, "spec": b.changed(_APPLICATION, changes or {})}
    properties = {"metadata": {"name": "training"}, "spec": {"generators": [{"clusters": {}}], "template": template}}
    return Thing(type=tokens.APPLICATION_SET, name="training", properties=properties)


def release(chart: str, values: dict[str, Any], version: str | None = "1.2.1") -> Thing:
    properties = {"chart": chart, "values": values, **({"version": version} if version else {})}
    return Thing(type=tokens.RELEASE, name="release", properties=properties)


def argo_cd(helm: dict[str, Any]) -> Thing:
    return b.application_of("argo-cd", helm)


CASES = (
    invalid("ARG01", application({REVISION: "refs/heads/release-1"}), says="refs/heads/release-1 (a branch)"),
    invalid("ARG01", application({"project": b.DELETE}), says="project is unset"),
    invalid("ARG01", release("oci://registry.example/slurm/", {"efa": {"enabled": True}}), says="values.efa is set"),
    invalid("ARG01", release("charts/slurm-1.2.1.tgz", {"efa": {"enabled": True}}), says="values.efa is set"),
    valid("ARG01", application({SYNC: {"automated": {"prune": True}, "syncOptions": ["Prune=false"]}})),
    valid("ARG01", application()),
    valid("ARG01", application({REVISION: "v1.2.1"})),
    valid("ARG01", application({REVISION: SHA})),
    valid("ARG01", application({SYNC: {"automated": {"prune": True}, "syncOptions": ["Prune=confirm"]}})),
    valid("ARG01", application({"source/chart": "own-chart", VALUES: {"anything": 1}})),
    valid("ARG01", release("slurm", {"nodesets": {}, "global": {}})),
    valid("ARG01", release("argo-cd", {"configs": {"cm": {"admin.enabled": "false"}}})),
    valid("ARG01", application({REVISION: "1.2.1-rc.1"}), edge=True),
    invalid("ARG01", application({REVISION: "1.2"}), says="targetRevision is 1.2; allowed: a full version", edge=True),
    invalid("ARG01", application({REVISION: "main"}), says="main (a branch)"),
    invalid("ARG01", application({REVISION: b.DELETE}), says="unset (a branch)"),
    invalid("ARG01", application({REVISION: ">=1.2.0"}), says="(a range)"),
    invalid("ARG01", application({REVISION: "1.2.*"}), says="(a range)"),
    invalid("ARG01", application({"sources": [{"targetRevision": "HEAD"}], "source": b.DELETE}), says="sources[0].targetRevision is HEAD"),
    invalid("ARG01", application({VALUES: {"compute": {"partitions": []}}}), says="compute is set, but the chart does not read it"),
    invalid("ARG01", application({"project": "default"}), says="project is default"),
    invalid("ARG01", application({SYNC: {"automated": {"prune": True}}}), says="prune is true"),
    invalid("ARG01", release("oci://registry.example/slurm", {"efa": {"enabled": True}}), says="values.efa is set"),
    invalid("ARG01", release("argo-cd", {"configs": {"cm": {"exec.enabled": "true"}}}), says='exec.enabled"] is true'),
    invalid("ARG01", release("argo-cd", {"configs": {"cm": {"admin.enabled": True}}}), says='admin.enabled"] is true'),
    invalid("ARG01", application({"source/helm": {"values": "compute: {}\n"}}), says="helm.values.compute is set, but the chart"),
    valid("ARG01", application({"source/helm": {"values": "nodesets: {}\n"}})),
    invalid(
        "ARG01", application({"source/helm": {"parameters": [{"name": "compute.size"}]}}), says="parameters[0].name is set, but the chart"
    ),
    valid("ARG01", application({"source/helm": {"parameters": [{"name": "nodesets.gpu.replicas", "value": "4"}]}})),
    valid("ARG01", application({"source/helm": {"parameters": [{"name": "partitions[0].name", "value": "gpu"}]}}), edge=True),
    valid("ARG01", application({REVISION: "v1.2.1-hotfix.1"})),
    valid("ARG01", application({REVISION: "1.2.1-linux"})),
    invalid("ARG01", application({REVISION: "1.2.x"}), says="1.2.x (a range)", edge=True),
    invalid("ARG01", application({REVISION: "1.2.1 - 1.4.0"}), says="(a range)"),
    invalid("ARG01", application({REVISION: "next"}), says="targetRevision is next; allowed: a full version or a commit: a tag or branch"),
    valid("ARG01", application({SYNC: {"automated": {"enabled": False, "prune": True}}}), edge=True),
    invalid(
        "ARG01", b.application_of("argo-cd", {"valuesObject": {"configs": {"cm": {"exec.enabled": "true"}}}}), says='cm["exec.enabled"]'
    ),
    invalid(
        "ARG01",
        argo_cd({"parameters": [{"name": r"configs.cm.admin\.enabled", "value": "true"}]}),
        says="value is true",
    ),
    valid("ARG01", argo_cd({"valuesObject": {"configs": {"cm": {"exec.enabled": "false"}}}})),
    # Another release of the chart reads other keys.
    invalid("ARG01", release("slurm", {"efa": {}}, "1.1.0"), says="values.efa is set, but the chart does not read it", edge=True),
    invalid("ARG01", release("slurm", {"efa": {}}, None), says="values.efa is set, but the chart does not read it"),
    invalid("ARG01", release("slurm", {"slurmKeyRef": {}}, "1.0.2"), says="but the chart's release 1.2.1 does not read it", edge=True),
    invalid("ARG01", release("slurm", {"prologScriptRefs": []}, "1.3.0"), says="but the chart's release 1.2.1 does not", edge=True),
    invalid("ARG01", release("karpenter", {"webhook": {}}, "1.0.8"), says="but the chart's release 1.14.1 does not read it"),
    invalid("ARG01", release("karpenter", {"webhook": {}}, "1.1.0"), says="webhook is set, but the chart does not read it", edge=True),
    invalid(
        "ARG01",
        application({REVISION: "0.3.0", VALUES: {"compute": {"partitions": []}}}),
        says="valuesObject.compute is set, but the chart's release 1.2.1 does not read it",
    ),
    # A folder beside the program may wrap the chart, whose values are under its name then.
    *(valid("ARG01", release(f"{place}/karpenter", {"karpenter": {"replicas": 2}})) for place in ("./charts", "..", "/srv", "~")),
    valid("ARG01", release("./charts/argo-cd", {"configs": {"cm": {"exec.enabled": "true"}}}), edge=True),
    invalid("ARG01", release("./charts/slurm-1.2.1.tgz", {"efa": {"enabled": True}}), says="values.efa is set", edge=True),
    invalid("ARG01", release("charts/karpenter", {"karpenter": {"replicas": 2}}), says="values.karpenter is set", edge=True),
    # A set makes Applications, with placeholders where they differ.
    valid("ARG01", application_set()),
    valid("ARG01", application_set({REVISION: "{{metadata.annotations.revision}}"}), edge=True),
    valid("ARG01", application_set({REVISION: "v{{ .values.release }}", "project": "{{.project}}"}), edge=True),
    invalid("ARG01", application_set({REVISION: "main"}), says="spec.template.spec.source.targetRevision is main (a branch)"),
    invalid("ARG01", application_set({VALUES: {"compute": {}}}), says="compute is set, but the chart does not read it"),
    invalid("ARG01", application_set({SYNC: {"automated": {"prune": True}}}), says="spec.template.spec.syncPolicy.automated.prune is true"),
)
