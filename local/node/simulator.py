"""kwok, which keeps fake nodes ready and lets pods bound to them seem to run."""

import json
from collections.abc import Mapping

from local.node import layout
from local.node.api import Json
from local.node.fake_nodes import FAKE_ANNOTATION
from local.node.spec import DaemonSpec, Probe

_ADDRESS = "127.0.0.1:10247"
_FAKE_POD_CIDR = "10.245.0.0/16"

_CONDITIONS = "\n".join(
    f'- {{type: {kind}, status: "True", lastTransitionTime: {{{{ $now | Quote }}}}}}'
    for kind in ("Initialized", "ContainersReady", "Ready")
)

# kwok's own stages would also end every pod of any kind of Job at once; a gang of training pods must stay until it is deleted.
_RUNNING_STATUS = f"""{{{{ $now := Now }}}}
phase: Running
startTime: {{{{ $now | Quote }}}}
hostIP: {{{{ NodeIPWith .spec.nodeName | Quote }}}}
podIP: {{{{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}}}
conditions:
{_CONDITIONS}
initContainerStatuses:
{{{{ range .spec.initContainers }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  ready: true
  restartCount: 0
  state: {{terminated: {{exitCode: 0, reason: Completed, startedAt: {{{{ $now | Quote }}}}, finishedAt: {{{{ $now | Quote }}}}}}}}
{{{{ end }}}}
containerStatuses:
{{{{ range .spec.containers }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  ready: true
  started: true
  restartCount: 0
  state: {{running: {{startedAt: {{{{ $now | Quote }}}}}}}}
{{{{ end }}}}
"""


def simulator(inside: layout.Layout, node_ip: str) -> DaemonSpec:
    """The daemon. It manages nodes with the annotation of `fake_nodes` and no other."""
    argv = (
        str(layout.BIN / "kwok"),
        f"--kubeconfig={inside.pki / 'kwok.kubeconfig'}",
        f"--config={inside.config / 'kwok.yaml'}",
        f"--manage-nodes-with-annotation-selector={FAKE_ANNOTATION}=fake",
        f"--node-ip={node_ip}",
        "--node-lease-duration-seconds=40",
        f"--cidr={_FAKE_POD_CIDR}",
        f"--server-address={_ADDRESS}",
    )
    return DaemonSpec(name="kwok", argv=argv, probe=Probe(url=f"http://{_ADDRESS}/healthz"), after=("kube-apiserver",), env={"GOGC": "50"})


def simulator_files() -> Mapping[str, str]:
    """Name in the configuration folder -> text."""
    return {"kwok.yaml": "\n---\n".join(json.dumps(stage, indent=1) for stage in pod_stages())}


def pod_stages() -> tuple[Json, ...]:
    """What happens to a pod on a fake node: it runs as soon as it is bound, and is gone as soon as it is deleted."""
    deletion = ".metadata.deletionTimestamp"
    return (
        _pod_stage(
            "pod-run",
            [{"key": deletion, "operator": "DoesNotExist"}, {"key": ".status.podIP", "operator": "DoesNotExist"}],
            {"statusTemplate": _RUNNING_STATUS},
        ),
        _pod_stage("pod-delete", [{"key": deletion, "operator": "Exists"}], {"finalizers": {"empty": True}, "delete": True}),
    )


def _pod_stage(name: str, conditions: list[Json], then: Json) -> Json:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": "v1", "kind": "Pod"}, "selector": {"matchExpressions": conditions}, "next": then},
    }
