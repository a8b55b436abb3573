"""What a machine must have, what a cgroup mount table says, and what an image archive or a kubeconfig holds."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.images.layer import file
from local.images.oci import ImageConfig, write_archive
from local.node import requirements, runtime
from local.node.api import KubernetesApi
from local.node.archive import archive_images
from local.node.cgroup import CgroupTree
from local.node.fake_nodes import fake_node
from local.node.kubeconfig import write_kubeconfig
from local.node.pki import Pki, Subject

pytestmark = pytest.mark.unit


@pytest.fixture
def binaries(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / name for name in requirements.REQUIRED_BINARIES}
    for path in paths.values():
        path.touch()
    return paths


@pytest.fixture
def fit_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(requirements.shutil, "which", lambda tool, path: f"/usr/bin/{tool}")
    monkeypatch.setattr(requirements, "find_cni_folder", lambda: tmp_path)


@pytest.mark.usefixtures("fit_machine")
def test_a_fit_machine_passes(binaries: dict[str, Path]) -> None:
    requirements.check_machine(binaries, platform="linux", user_id=0)


@pytest.mark.parametrize(("platform", "user_id", "cause"), [("darwin", 0, "needs Linux; this is darwin"), ("linux", 1000, "needs root")])
def test_another_system_or_user_learns_of_the_other_way(binaries: dict[str, Path], platform: str, user_id: int, cause: str) -> None:
    with pytest.raises(LocalStackError, match=f"{cause}.*kubeconfig"):
        requirements.check_machine(binaries, platform=platform, user_id=user_id)


@pytest.mark.usefixtures("fit_machine")
def test_missing_packages_are_named_as_the_distribution_names_them(binaries: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.shutil, "which", lambda tool, path: None if tool in {"runc", "ip"} else tool)
    with pytest.raises(LocalStackError, match="apt-get install runc iproute2"):
        requirements.check_machine(binaries, platform="linux", user_id=0)


@pytest.mark.usefixtures("fit_machine")
def test_missing_binaries_are_named(binaries: dict[str, Path]) -> None:
    binaries["etcd"].unlink()
    del binaries["kubelet"]
    with pytest.raises(LocalStackError, match="etcd, kubelet: run `make setup`"):
        requirements.check_machine(binaries, platform="linux", user_id=0)


def test_optional_binaries_are_used_where_they_exist(binaries: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "kwok").touch()
    known = requirements.known_binaries({**binaries, "kwok": tmp_path / "kwok", "csi-node": tmp_path / "csi-node", "pulumi": tmp_path})
    assert set(known) == {*requirements.REQUIRED_BINARIES, "kwok"}


def test_missing_network_plugins_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runtime, "CNI_FOLDERS", (tmp_path,))
    with pytest.raises(LocalStackError, match="apt-get install containernetworking-plugins"):
        runtime.find_cni_folder()


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/home/user/state", "ext4"), ("/home", "ext4"), ("/homeless", "overlay"), ("/data/state", "xfs")],
)
def test_the_file_system_of_a_path_is_that_of_the_deepest_and_newest_mount(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("o / overlay rw 0 0\nd /home ext4 rw 0 0\nd /data tmpfs rw 0 0\nd /data xfs rw 0 0\n")
    assert runtime.file_system(Path(path), mounts) == kind


def test_layers_are_not_stacked_on_an_overlay() -> None:
    assert runtime.choose_snapshotter("overlay") == "native"
    assert runtime.choose_snapshotter("ext4") == "overlayfs"


def test_a_cgroup_tree_is_made_in_every_hierarchy_with_a_filled_cpuset(tmp_path: Path) -> None:
    for name in ("cpu", "cpuset", "unified"):
        (tmp_path / name).mkdir()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1\n")
    mounts = tmp_path / "mounts"
    kinds = {"cpu": "cgroup", "cpuset": "cgroup", "unified": "cgroup2"}
    mounts.write_text("".join(f"{kind} {tmp_path / name} {kind} rw 0 0\n" for name, kind in kinds.items()) + f"t {tmp_path} tmpfs rw 0 0\n")
    tree = CgroupTree("0000000a", mounts=mounts)
    assert tree.folders == [tmp_path / name / "trainyard-0000000a" for name in kinds]
    # The kernel makes this file with its folder.
    (tmp_path / "cpuset" / "trainyard-0000000a").mkdir()
    (tmp_path / "cpuset" / "trainyard-0000000a" / "cpuset.cpus").write_text("\n")
    tree.create()
    assert (tmp_path / "cpuset" / "trainyard-0000000a" / "cpuset.cpus").read_text() == "0-1\n"
    (tmp_path / "cpuset" / "trainyard-0000000a" / "cpuset.cpus").unlink()
    (tmp_path / "cpu" / "trainyard-0000000a" / "kubepods" / "pod").mkdir(parents=True)
    assert tree.remove() == []
    assert not any(folder.exists() for folder in tree.folders)


def test_an_archive_tells_names_and_digests(tmp_path: Path) -> None:
    layer = [file("/tool", b"contents", mode=0o755)]
    names = ["example.org/tool:1", "example.org/tool:2"]
    archive = write_archive(tmp_path / "image.tar", references=names, layers=[layer], config=ImageConfig())
    assert archive_images(archive.path) == dict.fromkeys(names, archive.digest)


@pytest.mark.parametrize(
    ("index", "cause"),
    [(None, "is no OCI image archive"), ({"manifests": []}, "holds no image"), ({"manifests": [{"digest": "sha256:0"}]}, "has no name")],
)
def test_a_file_that_is_no_usable_archive_is_refused(tmp_path: Path, index: object, cause: str) -> None:
    path = tmp_path / "image.tar"
    path.write_text("not a tar")
    if index is not None:
        content = json.dumps(index).encode()
        with tarfile.open(path, "w") as tar:
            info = tarfile.TarInfo("index.json")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    with pytest.raises(LocalStackError, match=cause):
        archive_images(path)


def test_a_kubeconfig_of_ours_can_be_read_back(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    pki.ensure((Subject(file="admin", user="someone"),))
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, pki, server="https://127.0.0.1:1", user="admin")
    assert path.stat().st_mode & 0o777 == 0o600
    assert not KubernetesApi.from_kubeconfig(path).is_ready(), "nothing listens there, and that is an answer, not an error"


@pytest.mark.parametrize("text", ["", "{", "contexts: []\ncurrent-context: x\n"])
def test_a_broken_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(LocalStackError, match=f"{path} cannot be read"):
        KubernetesApi.from_kubeconfig(path)


def test_a_fake_node_has_exactly_what_it_is_given() -> None:
    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
    node = fake_node("fake-0", "p5.48xlarge", {"pool": "gpu"}, [taint], {"cpu": 190, "memory": "1900Gi", "pods": 110, "nvidia.com/gpu": 8})
    assert node["status"]["allocatable"] == {"cpu": "190", "memory": "1900Gi", "pods": "110", "nvidia.com/gpu": "8"}
    assert node["spec"]["taints"] == [taint]
    assert node["metadata"]["labels"].items() >= {"pool": "gpu", "node.kubernetes.io/instance-type": "p5.48xlarge"}.items()


def test_a_fake_node_without_room_for_pods_is_refused() -> None:
    with pytest.raises(LocalStackError, match="capacity misses memory, pods; given: cpu"):
        fake_node("fake-0", "p5.48xlarge", {}, [], {"cpu": 1})
