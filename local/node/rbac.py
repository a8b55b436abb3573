"""What the node's own clients may do in the cluster."""

from local.node.api import Json, KubernetesApi

_READ = ["get", "list", "watch"]

_RULES: dict[str, list[Json]] = {
    "trainyard:coredns": [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": _READ},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
    ],
    # Fake nodes: kwok writes the status of nodes and pods and ends pods that are being deleted.
    "trainyard:kwok": [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": [*_READ, "patch", "update", "delete"]},
        {"apiGroups": [""], "resources": ["nodes/status", "pods/status"], "verbs": ["patch", "update"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": [*_READ, "create", "patch", "update", "delete"]},
    ],
}


def apply_rbac(api: KubernetesApi) -> None:
    """Create or renew one ClusterRole and its binding per client. Raises ApiError."""
    base = "/apis/rbac.authorization.k8s.io/v1"
    for user, rules in _RULES.items():
        # Names of roles may hold a colon; in a path it needs no escape.
        api.apply(
            f"{base}/clusterroles/{user}",
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": user}, "rules": rules},
        )
        api.apply(
            f"{base}/clusterrolebindings/{user}",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": user},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
            },
        )
