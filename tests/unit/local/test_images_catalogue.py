"""Names of controllers' images come out of charts and manifests, and each image holds what its pods run; read from the archives."""

import tarfile
from pathlib import Path

import pytest

from infra import versions
from local.errors import LocalStackError
from local.images import catalogue
from local.images.base import PACKAGES, base_key, copy_members, find_mirror
from local.progress import Progress
from tests.unit.local.image_archive import entries, image

pytestmark = pytest.mark.unit

KARPENTER_VALUES = """
controller:
  image: {repository: public.ecr.aws/karpenter/controller, tag: 1.13.0, digest: "sha256:00"}
"""
VOLCANO_VALUES = """
basic:
  controller_image_name: volcanosh/vc-controller-manager
  scheduler_image_name: volcanosh/vc-scheduler
  admission_image_name: volcanosh/vc-webhook-manager
  image_tag_version: v1.14.0
  image_registry: docker.io
"""
MANIFEST = """apiVersion: v1
kind: Namespace
---
apiVersion: apps/v1
kind: Deployment
spec: {template: {spec: {containers: [{name: operator, image: "mpioperator/mpi-operator:0.8.0"}]}}}
"""
BINARIES = ("karpenter", "kubectl", "mpi-operator", "vc-controller-manager", "vc-scheduler", "vc-webhook-manager")


@pytest.fixture
def charts(tmp_path) -> dict[str, Path]:
    texts = {
        catalogue.KARPENTER_CHART: ("karpenter/values.yaml", KARPENTER_VALUES),
        catalogue.VOLCANO_CHART: ("volcano/values.yaml", VOLCANO_VALUES),
        catalogue.MPI_OPERATOR_MANIFEST: ("mpi-operator.yaml", MANIFEST),
        catalogue.ADMISSION_SCRIPT: ("gen-admission-secret.sh", "#!/bin/sh\n"),
    }
    found = {}
    for name, (place, text) in texts.items():
        path = tmp_path / "charts" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        found[name] = path.parent if path.name == "values.yaml" else path
    return found


@pytest.fixture
def binaries(tmp_path) -> dict[str, Path]:
    for name in BINARIES:
        (tmp_path / name).write_text(name)
    return {name: tmp_path / name for name in BINARIES}


@pytest.fixture
def base(tmp_path, monkeypatch) -> Path:
    """A base of empty files under the names that the webhook's image takes."""
    folder = tmp_path / "cache" / "images"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TRAINYARD_CACHE", str(tmp_path / "cache"))
    path = folder / f"base-{base_key()}.tar"
    with tarfile.open(path, "w") as tar:
        for name in catalogue.webhook_tools(catalogue.architecture()):
            tar.addfile(tarfile.TarInfo(f"./{name}"))
        tar.addfile(tarfile.TarInfo("./usr/bin/perl"))
    return path


def layers(archive: Path) -> list[list[str]]:
    return [list(entries(layer)) for layer in image(archive)[2]]


def test_every_controller_gets_the_names_of_its_chart_and_of_the_pinned_version(binaries, charts):
    names = {image.binary: image.references for image in catalogue.wanted_images(binaries, charts)}
    assert names == {
        "karpenter": ("public.ecr.aws/karpenter/controller:1.13.0", f"public.ecr.aws/karpenter/controller:{versions.KARPENTER}"),
        "mpi-operator": ("mpioperator/mpi-operator:0.8.0",),
        "vc-scheduler": ("docker.io/volcanosh/vc-scheduler:v1.14.0", f"docker.io/volcanosh/vc-scheduler:v{versions.VOLCANO}"),
        "vc-controller-manager": (
            "docker.io/volcanosh/vc-controller-manager:v1.14.0",
            f"docker.io/volcanosh/vc-controller-manager:v{versions.VOLCANO}",
        ),
        "vc-webhook-manager": (
            "docker.io/volcanosh/vc-webhook-manager:v1.14.0",
            f"docker.io/volcanosh/vc-webhook-manager:v{versions.VOLCANO}",
        ),
    }


def test_images_hold_their_binary_and_the_webhooks_also_what_its_script_needs(tmp_path, binaries, charts, base):
    archives = catalogue.controller_images(binaries, charts, tmp_path / "out", Progress(tmp_path / "log", total=1))
    held = {archive.path.stem: layers(archive.path) for archive in archives}
    assert held["karpenter"] == [["karpenter", "tmp"]]
    tools, own = held["vc-webhook-manager"]
    assert "usr/bin/openssl" in {name.removeprefix("./") for name in tools}
    assert "./usr/bin/perl" not in tools, "the webhook needs a few files, not all of Debian"
    assert {"usr/bin/sh", "usr/local/bin/kubectl", "gen-admission-secret.sh", "vc-webhook-manager"} <= set(own)


def test_a_second_call_writes_nothing_and_a_changed_binary_only_its_own_image(tmp_path, binaries, charts, base):
    out, progress = tmp_path / "out", Progress(tmp_path / "log", total=1)
    first = catalogue.controller_images(binaries, charts, out, progress)
    times = {archive.path: archive.path.stat().st_mtime_ns for archive in first}
    assert catalogue.controller_images(binaries, charts, out, progress) == first
    assert times == {archive.path: archive.path.stat().st_mtime_ns for archive in first}
    binaries["karpenter"].write_text("newer")
    changed = [
        one.path.stem
        for one, other in zip(first, catalogue.controller_images(binaries, charts, out, progress), strict=True)
        if one != other
    ]
    assert changed == ["karpenter"]


@pytest.mark.parametrize("missing", ["karpenter", "kubectl"])
def test_a_binary_that_was_not_built_is_named(missing, tmp_path, binaries, charts, base):
    del binaries[missing]
    with pytest.raises(LocalStackError, match=f"{missing}, which was not built: run `make setup`"):
        catalogue.controller_images(binaries, charts, tmp_path / "out", Progress(tmp_path / "log", total=1))


def test_a_chart_that_names_its_image_differently_is_an_error_that_names_file_and_key(binaries, charts):
    (charts[catalogue.KARPENTER_CHART] / "values.yaml").write_text("controller: {}")
    with pytest.raises(LocalStackError, match=r"karpenter/values.yaml: controller.image is missing"):
        catalogue.wanted_images(binaries, charts)


def test_a_missing_chart_is_named(binaries, charts):
    del charts[catalogue.VOLCANO_CHART]
    with pytest.raises(LocalStackError, match="volcano-chart is missing"):
        catalogue.wanted_images(binaries, charts)


def test_copying_out_of_the_base_names_what_it_lacks(tmp_path, base):
    with pytest.raises(LocalStackError, match="lacks usr/bin/absent"):
        copy_members(base, ["usr/bin/openssl", "usr/bin/absent"], tmp_path / "some.tar")


@pytest.mark.parametrize(
    ("sources", "mirror"),
    [
        ({"sources.list": "deb http://one.example/debian bookworm main"}, "http://one.example/debian"),
        (
            {"sources.list": "# deb http://no.example/debian bookworm main\ndeb [arch=amd64] http://two.example/d bookworm main"},
            "http://two.example/d",
        ),
        ({"sources.list": "deb http://sec.example/debian-security bookworm-security main"}, None),
        ({"sources.list": "deb http://new.example/debian trixie main"}, None),
        (
            {"debian.sources": "Types: deb\n# note\nURIs: http://three.example/debian\nSuites: bookworm bookworm-updates\n"},
            "http://three.example/debian",
        ),
        (
            {"a.sources": "Types: deb-src\nURIs: http://s\nSuites: bookworm\n\nTypes: deb\nURIs: http://b.example\nSuites: bookworm"},
            "http://b.example",
        ),
        ({"a.sources": "Types: deb\nEnabled: no\nURIs: http://off.example\nSuites: bookworm"}, None),
        ({}, None),
    ],
)
def test_the_mirror_is_the_one_apt_takes_the_release_from(sources, mirror):
    assert find_mirror(sources) == mirror


def test_the_webhook_takes_its_shell_and_openssl_from_packages_that_the_base_installs():
    assert {"busybox-static", "openssl"} <= set(PACKAGES)
    with pytest.raises(LocalStackError, match="amd64 and arm64, not on riscv64"):
        catalogue.webhook_tools("riscv64")
