"""Command lines and configuration files of the daemons that make the machine a node: containerd, kubelet, kube-proxy, CoreDNS."""

import json
from collections.abc import Mapping

from local.node import layout
from local.node.network import Link
from local.node.spec import DaemonSpec, Probe

_SMALL = {"GOGC": "50"}


def worker(node_name: str, link: Link, inside: layout.Layout) -> tuple[DaemonSpec, ...]:
    """The daemons that run pods and connect them."""
    config = inside.config
    containerd = DaemonSpec(
        name="containerd",
        argv=(str(layout.BIN / "containerd"), f"--config={config / 'containerd.toml'}"),
        probe=Probe(unix=str(layout.CONTAINERD_SOCKET)),
        env=_SMALL,
    )
    kubelet = DaemonSpec(
        name="kubelet",
        argv=(
            str(layout.BIN / "kubelet"),
            f"--config={config / 'kubelet.json'}",
            f"--kubeconfig={inside.pki / 'kubelet.kubeconfig'}",
            f"--root-dir={layout.KUBELET_ROOT}",
            f"--hostname-override={node_name}",
            f"--node-ip={link.node_ip}",
        ),
        probe=Probe(url="http://127.0.0.1:10248/healthz"),
        after=("containerd", "kube-apiserver"),
        env=_SMALL,
    )
    proxy = DaemonSpec(
        name="kube-proxy",
        argv=(str(layout.BIN / "kube-proxy"), f"--config={config / 'kube-proxy.json'}"),
        probe=Probe(url="http://127.0.0.1:10256/livez"),
        after=("kube-apiserver",),
        env=_SMALL,
    )
    dns = DaemonSpec(
        name="coredns",
        argv=(str(layout.BIN / "coredns"), "-conf", str(config / "Corefile"), "-quiet"),
        probe=Probe(url="http://127.0.0.1:8181/ready"),
        after=("kube-apiserver",),
        env=_SMALL,
    )
    return (containerd, kubelet, proxy, dns)


def worker_files(node_name: str, inside: layout.Layout, cgroup_root: str, *, local_storage: bool) -> Mapping[str, str]:
    """Name in the configuration folder -> text, of all files that the daemons of `worker` read but containerd's."""
    return {
        "kubelet.json": json.dumps(kubelet_config(inside, cgroup_root, local_storage=local_storage), indent=1),
        "kube-proxy.json": json.dumps(proxy_config(node_name, inside), indent=1),
        "Corefile": corefile(inside),
        "resolv.conf": f"nameserver {layout.SERVICE_DNS}\n",
    }


def kubelet_config(inside: layout.Layout, cgroup_root: str, *, local_storage: bool) -> dict[str, object]:
    """A KubeletConfiguration."""
    pki = inside.pki
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "0.0.0.0",
        "tlsCertFile": str(pki / "kubelet-server.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet-server.key"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDomain": "cluster.local",
        "clusterDNS": [layout.SERVICE_DNS],
        "resolvConf": str(inside.config / "resolv.conf"),
        "containerRuntimeEndpoint": f"unix://{layout.CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "failCgroupV1": False,
        "failSwapOn": False,
        # Without it pods cannot ask for ephemeral storage, and with it the kubelet must find the device behind its folder.
        "localStorageCapacityIsolation": local_storage,
        "maxPods": 110,
        "serializeImagePulls": False,
        # No registry could bring a collected image back.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
        "volumePluginDir": str(layout.KUBELET_ROOT / "plugins-exec"),
        "protectKernelDefaults": False,
        "makeIPTablesUtilChains": False,
        "enableProfilingHandler": False,
        "shutdownGracePeriod": "0s",
        "syncFrequency": "30s",
        "nodeStatusReportFrequency": "1m",
        "logging": {"verbosity": 1},
    }


def proxy_config(node_name: str, inside: layout.Layout) -> dict[str, object]:
    """A KubeProxyConfiguration."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(inside.pki / "proxy.kubeconfig")},
        "hostnameOverride": node_name,
        "mode": "iptables",
        "clusterCIDR": layout.POD_CIDR,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "nodePortAddresses": ["primary"],
        "iptables": {"localhostNodePorts": False, "minSyncPeriod": "500ms"},
        # Connection-tracking limits belong to the machine, not to a namespace: 0 leaves them alone.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def corefile(inside: layout.Layout) -> str:
    """CoreDNS configuration: the cluster's names, and a quick "no such name" for all others, since nothing leads outside."""
    listen = f"bind {layout.SERVICE_DNS}\n    errors"
    return f"""cluster.local in-addr.arpa ip6.arpa {{
    {listen}
    ready 127.0.0.1:8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {inside.pki / "coredns.kubeconfig"}
        pods insecure
        ttl 1
    }}
}}
. {{
    {listen}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""
