"""Image archives are read back with tarfile and json: layout, names, digests and layer contents, without a container runtime."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.images.layer import file, folder, link, python_sources
from local.images.oci import NAME_ANNOTATION, TAG_ANNOTATION, Archive, ImageConfig, Layer, architecture, full_reference, write_archive
from local.images.store import ensure_archive, recipe_of
from tests.unit.local.image_archive import blob, entries, image, members

pytestmark = pytest.mark.unit

CONFIG = ImageConfig(env={"B": "2", "A": "1"}, entrypoint=["/tool"], command=["--help"], user="65532", workdir="/data")


def build(path: Path, *, references=("example.com/team/tool:1",), layers: list[Layer] | None = None) -> Archive:
    own: list[Layer] = [[folder("/tmp", mode=0o1777), file("/tool", b"#!", mode=0o755), link("/alias", "tool")]]
    return write_archive(path, references=references, layers=layers if layers is not None else own, config=CONFIG)


def test_every_blob_is_named_by_its_digest_and_described_with_its_size(tmp_path):
    archive = build(tmp_path / "tool.tar")
    found = members(archive.path)
    for name, data in found.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"
    manifest, _, layers = image(archive.path)
    described = [manifest["config"], *manifest["layers"]]
    assert [it["size"] for it in described] == [len(blob(found, it["digest"])) for it in described]
    assert json.loads(found["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert len(layers) == 1


def test_the_index_names_the_image_once_per_reference(tmp_path):
    archive = build(
        tmp_path / "tool.tar", references=("volcanosh/vc-scheduler:v1", "docker.io/volcanosh/vc-scheduler:v1", "public.ecr.aws/a/b:2")
    )
    entries = json.loads(members(archive.path)["index.json"])["manifests"]
    assert [it["annotations"][NAME_ANNOTATION] for it in entries] == ["docker.io/volcanosh/vc-scheduler:v1", "public.ecr.aws/a/b:2"]
    assert [it["annotations"][TAG_ANNOTATION] for it in entries] == ["v1", "2"]
    assert {it["digest"] for it in entries} == {archive.digest}
    assert {it["platform"]["architecture"] for it in entries} == {architecture()}
    assert archive.reference == "docker.io/volcanosh/vc-scheduler:v1"


def test_the_configuration_says_what_runs_and_names_the_layers_by_their_uncompressed_digest(tmp_path):
    _, config, layers = image(build(tmp_path / "tool.tar").path)
    assert config["config"] == {"Env": ["A=1", "B=2"], "Entrypoint": ["/tool"], "Cmd": ["--help"], "User": "65532", "WorkingDir": "/data"}
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]


def test_a_layer_keeps_modes_owners_links_and_contents(tmp_path):
    source = tmp_path / "binary"
    source.write_bytes(b"x" * 3000)
    layer = [file("/usr/bin/tool", source, mode=0o755), folder("/home/trainer", owner=1000, mode=0o700), link("/bin/sh", "busybox")]
    archive = build(tmp_path / "tool.tar", layers=[layer])
    (written,) = image(archive.path)[2]
    found = entries(written)
    assert members(written) == {"usr/bin/tool": b"x" * 3000}
    assert list(found) == ["bin/sh", "home/trainer", "usr/bin/tool"]
    assert (found["bin/sh"].issym(), found["bin/sh"].linkname) == (True, "busybox")
    assert (found["home/trainer"].isdir(), found["home/trainer"].mode, found["home/trainer"].uid, found["home/trainer"].gid) == (
        True,
        0o700,
        1000,
        1000,
    )
    assert (found["usr/bin/tool"].mode, found["usr/bin/tool"].uid) == (0o755, 0)


def test_same_input_gives_the_same_bytes_whatever_order_or_time(tmp_path):
    source = tmp_path / "binary"
    source.write_bytes(b"data")
    one = build(tmp_path / "1.tar", layers=[[file("/a", source), file("/b", b"b")]])
    (tmp_path / "other").mkdir()
    source.touch()
    other = build(tmp_path / "other" / "2.tar", layers=[[file("/b", b"b"), file("/a", source)]])
    assert one.digest == other.digest
    assert one.path.read_bytes() == other.path.read_bytes()


def test_an_existing_tar_becomes_a_layer_as_it_is(tmp_path):
    base = tmp_path / "base.tar"
    with tarfile.open(base, "w") as tar:
        tar.addfile(tarfile.TarInfo("etc"))
    archive = build(tmp_path / "tool.tar", layers=[base, [file("/tool", b"")]])
    assert image(archive.path)[2][0] == base.read_bytes()


def test_a_failed_write_leaves_neither_archive_nor_remains(tmp_path):
    with pytest.raises(LocalStackError, match=r"/tool is to be made from .*absent, which does not exist"):
        build(tmp_path / "out" / "tool.tar", layers=[[file("/tool", tmp_path / "absent")]])
    with pytest.raises(LocalStackError, match="holds /a twice"):
        build(tmp_path / "out" / "tool.tar", layers=[[file("/a", b""), file("a", b"")]])
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


def test_a_reference_with_a_digest_is_refused_because_no_digest_of_ours_could_match(tmp_path):
    with pytest.raises(LocalStackError, match="without a digest"):
        build(tmp_path / "tool.tar", references=("example.com/a:1@sha256:00",))


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("debian", "docker.io/library/debian:latest"),
        ("mpioperator/mpi-operator:0.8.0", "docker.io/mpioperator/mpi-operator:0.8.0"),
        ("docker.io/volcanosh/vc-scheduler:v1", "docker.io/volcanosh/vc-scheduler:v1"),
        ("public.ecr.aws/karpenter/controller:1.14.0", "public.ecr.aws/karpenter/controller:1.14.0"),
        ("localhost/x", "localhost/x:latest"),
        ("host:5000/x", "host:5000/x:latest"),
    ],
)
def test_references_are_completed_as_container_runtimes_do(name, full):
    assert full_reference(name) == full


def test_an_archive_is_made_again_only_when_its_recipe_changes(tmp_path):
    path, made = tmp_path / "tool.tar", []

    def make() -> Archive:
        made.append(1)
        return build(path)

    first = ensure_archive(path, "one", make)
    assert ensure_archive(path, "one", make) == first
    assert len(made) == 1
    ensure_archive(path, "two", make)
    assert len(made) == 2
    path.unlink()
    ensure_archive(path, "two", make)
    assert len(made) == 3


def test_the_recipe_follows_contents_and_not_the_place_of_the_sources(tmp_path):
    for name, text in (("a", "same"), ("b", "same"), ("c", "changed")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    recipe = {name: recipe_of(python_sources(tmp_path / name, "/opt/src"), "v1") for name in "abc"}
    assert recipe["a"] == recipe["b"] != recipe["c"]


def test_only_python_and_json_files_of_a_package_are_taken(tmp_path):
    for name in ("train.py", "data.json", "Dockerfile", "engines/base.py", "__pycache__/train.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [entry.path for entry in python_sources(tmp_path, "/opt/p")] == ["/opt/p/data.json", "/opt/p/engines/base.py", "/opt/p/train.py"]
