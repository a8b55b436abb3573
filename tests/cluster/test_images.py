"""Images made here, run by a real kubelet: the trainer's contract with the MPI Operator, and what controllers' pods start with."""

import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from local.images import Archive, controller_images, trainer_image
from local.images.base import USER_ID
from local.images.trainer import SSH_AUTH_MOUNT_PATH, SSHD_CONFIG_PATH
from local.node import Node
from local.node.api import ApiError, Json
from local.paths import REPOSITORY
from local.progress import Progress
from local.toolchain.tools import CHARTS, CONTROLLERS, ensure
from tests.cluster.nodes import Pods, cluster_binaries, node_folder, progress, require_root, wait_for

pytestmark = pytest.mark.cluster

RESTRICTED = {
    "runAsUser": USER_ID,
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
RANK = "import os, socket, training.config as c; print('rank', os.environ['OMPI_COMM_WORLD_RANK'], socket.gethostname(), c.__file__)"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Archive]:
    require_root()
    out = tmp_path_factory.mktemp("images")
    steps = Progress(out / "images.log", total=1)
    tools = ensure([CONTROLLERS, CHARTS], steps)
    return [trainer_image(out, REPOSITORY / "training", steps), *controller_images(tools, tools, out, steps)]


@pytest.fixture(scope="module")
def node(images: list[Archive]) -> Generator[Node]:
    with node_folder() as state:
        one = Node(state, cluster_binaries())
        try:
            one.start(progress(state))
            one.import_images([archive.path for archive in images])
            yield one
        finally:
            one.destroy()


@pytest.fixture(scope="module")
def pods(node: Node) -> Pods:
    return Pods(node)


def container(image: str, *command: str, security: Json | None = None, **fields: object) -> Json:
    return {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": list(command),
        "securityContext": security or {},
        **fields,
    }


def named(images: list[Archive], part: str) -> Archive:
    return next(archive for archive in images if part in archive.reference)


def test_every_name_of_every_image_is_known_to_the_node_and_imported_once(node: Node, images: list[Archive]) -> None:
    found = node.images()
    for archive in images:
        assert {name: found.get(name) for name in archive.references} == dict.fromkeys(archive.references, archive.digest)
    assert node.import_images([archive.path for archive in images]) == []


def test_mpirun_starts_ranks_in_other_pods_as_an_unprivileged_user(node: Node, pods: Pods, images: list[Archive]) -> None:
    image = named(images, "trainer").reference
    ssh = {"volumes": [job_keys(node)], "restartPolicy": "Never"}
    mount = {"name": "ssh-auth", "mountPath": SSH_AUTH_MOUNT_PATH}
    workers = [f"worker-{number}" for number in range(2)]
    for name in workers:
        sshd = container(image, "/usr/sbin/sshd", "-De", "-f", SSHD_CONFIG_PATH, security=RESTRICTED, volumeMounts=[mount])
        pods.run(name, **ssh, containers=[sshd])
    addresses = [pods.wait(name, "Running")["status"]["podIP"] for name in workers]
    hosts = ",".join(f"{address}:1" for address in addresses)
    environment = [
        {"name": "OMPI_MCA_orte_keep_fqdn_hostnames", "value": "true"},
        {"name": "OMPI_MCA_plm_rsh_args", "value": "-o ConnectionAttempts=10"},
    ]
    mpirun = container(
        image, "mpirun", "--host", hosts, "-np", "2", "python3", "-c", RANK, security=RESTRICTED, volumeMounts=[mount], env=environment
    )
    pods.run("launcher", **ssh, containers=[mpirun])
    pods.wait("launcher", "Succeeded")
    lines = sorted(line.split() for line in pods.log("launcher").splitlines() if line.startswith("rank"))
    assert [line[:3] for line in lines] == [["rank", "0", "worker-0"], ["rank", "1", "worker-1"]]
    assert {line[3] for line in lines} == {"/opt/trainyard/src/training/config.py"}


def job_keys(node: Node) -> Json:
    """A Secret and its volume as the MPI Operator makes them for a job: a P-521 key, readable by everyone in the pod, root's."""
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-m", "PEM", "-N", "", "-f", key], check=True)
        data = {"ssh-privatekey": key.read_text(), "ssh-publickey": key.with_suffix(".pub").read_text()}
    node.api().create("/api/v1/namespaces/default/secrets", {"metadata": {"name": "job-ssh"}, "stringData": data})
    items = [("ssh-privatekey", "id_rsa"), ("ssh-publickey", "id_rsa.pub"), ("ssh-publickey", "authorized_keys")]
    return {"name": "ssh-auth", "secret": {"secretName": "job-ssh", "items": [{"key": key, "path": path} for key, path in items]}}


CONTROLLER_WORDS = {
    "karpenter/controller": ("--help", "Usage of karpenter"),
    "mpi-operator": ("--version", "Go Version"),
    "vc-controller-manager": ("--version", "Go Version"),
    "vc-scheduler": ("--version", "Go Version"),
    "vc-webhook-manager": ("--version", "Go Version"),
}


@pytest.mark.parametrize("part", CONTROLLER_WORDS)
def test_a_controllers_image_runs_its_binary_under_each_of_its_names(pods: Pods, images: list[Archive], part: str) -> None:
    word, answer = CONTROLLER_WORDS[part]
    for number, reference in enumerate(named(images, part).references):
        name = f"{part.rpartition('/')[2]}-{number}"
        # Neither command nor user: what the image says is what a chart's pod gets.
        asked = {"name": "main", "image": reference, "imagePullPolicy": "IfNotPresent", "args": [word]}
        pods.run(name, containers=[asked])
        pods.wait(name, "Succeeded")
        assert answer in pods.log(name), f"{reference} does not start what it is named for"


def test_the_webhooks_own_script_makes_its_certificate_in_the_cluster(node: Node, pods: Pods, images: list[Archive]) -> None:
    allow_secrets(node)
    image = named(images, "vc-webhook-manager").reference
    words = ("./gen-admission-secret.sh", "--service", "hook", "--namespace", "default", "--secret", "hook-certificate")
    # The user and rights that the chart gives to its certificate job.
    security = {"runAsUser": 1000, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]}}
    # Twice: the first creates the secret, the second patches it.
    for name in ("certificate-1", "certificate-2"):
        pods.run(name, containers=[container(image, *words, security=security)])
        pods.wait(name, "Succeeded")
    secret = node.api().get("/api/v1/namespaces/default/secrets/hook-certificate")
    assert set(secret["data"]) == {"tls.key", "tls.crt", "ca.crt"}


def allow_secrets(node: Node) -> None:
    """Let the default service account of the namespace `default` manage its secrets, once the account is there."""
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "patch", "update"]}
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "secrets"}
    api = node.api()
    wait_for("roles", lambda: _created(node, f"{roles}/roles", {"metadata": {"name": "secrets"}, "rules": [rule]}))
    api.create(f"{roles}/rolebindings", {"metadata": {"name": "secrets"}, "subjects": [account], "roleRef": role})


def _created(node: Node, path: str, body: Json) -> bool:
    try:
        node.api().create(path, body)
    except ApiError as error:
        return error.status == 409
    return True
