"""Images of the platform's controllers, under the very names that their charts and manifests ask for.

Each holds a binary built here, so that an unchanged chart starts a real controller with no registry to pull from. The node makes its own
sandbox image (`local.node`), and the trainer's is in `trainer`.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from infra import versions
from local.errors import LocalStackError
from local.images.base import base_key, copy_members, ensure_base
from local.images.layer import Entry, file, folder, link
from local.images.oci import Archive, ImageConfig, architecture, write_archive
from local.images.store import ensure_archive, recipe_of
from local.progress import Progress

# Names of the toolchain's charts, see builds.toml.
KARPENTER_CHART, VOLCANO_CHART, MPI_OPERATOR_MANIFEST = "karpenter-chart", "volcano-chart", "mpi-operator-manifest"
ADMISSION_SCRIPT = "volcano-admission-script"

_VOLCANO = {
    "vc-scheduler": "scheduler_image_name",
    "vc-controller-manager": "controller_image_name",
    "vc-webhook-manager": "admission_image_name",
}
_LIBRARY_FOLDERS = {
    "amd64": ("x86_64-linux-gnu", "lib64/ld-linux-x86-64.so.2"),
    "arm64": ("aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1"),
}
# Debian's /bin, /lib and /lib64 are links into /usr.
_TOOLS = ("usr/bin/busybox", "usr/bin/openssl", "usr/lib/ssl/openssl.cnf", "etc/ssl/openssl.cnf", "bin", "lib", "lib64")
_SHELL_TOOLS = ("base64", "cat", "sh", "tr")


@dataclass(frozen=True, kw_only=True)
class ControllerImage:
    """One image: names that pods ask for, the binary that it runs and, for the webhook, the rest of what its script needs."""

    binary: str
    references: tuple[str, ...]
    extra: tuple[Entry, ...] = ()
    needs_shell: bool = False

    def entries(self, binaries: Mapping[str, Path]) -> list[Entry]:
        """The image's layer. Raises LocalStackError where the binary is missing."""
        path = binaries.get(self.binary)
        if path is None:
            raise LocalStackError(
                f"the image {self.references[0]} is made from the binary {self.binary}, which was not built: run `make setup`"
            )
        # Controllers that log to files as well do so in /tmp.
        return [file(f"/{self.binary}", path, mode=0o755), folder("/tmp", mode=0o1777), *self.extra]


def controller_images(binaries: Mapping[str, Path], charts: Mapping[str, Path], out: Path, progress: Progress) -> list[Archive]:
    """Archives of all controllers' images in `out`, written only where something changed.

    `binaries` and `charts` are the toolchain's groups CONTROLLERS and CHARTS.

    Raises:
        LocalStackError: a binary or chart is missing, a chart names no image where it used to, or the Debian base could not be made.
    """
    return [_archive(image, binaries, out, progress) for image in wanted_images(binaries, charts)]


def wanted_images(binaries: Mapping[str, Path], charts: Mapping[str, Path]) -> list[ControllerImage]:
    """What `controller_images` makes. Raises LocalStackError as that does."""
    missing = [name for name in (KARPENTER_CHART, VOLCANO_CHART, MPI_OPERATOR_MANIFEST, ADMISSION_SCRIPT) if name not in charts]
    if missing:
        raise LocalStackError(f"controllers' images are named by their charts, of which {', '.join(missing)} is missing: run `make setup`")
    karpenter = ControllerImage(binary="karpenter", references=karpenter_references(charts[KARPENTER_CHART]))
    mpi_operator = ControllerImage(binary="mpi-operator", references=manifest_references(charts[MPI_OPERATOR_MANIFEST]))
    volcano = [
        ControllerImage(binary=binary, references=volcano_references(charts[VOLCANO_CHART], key))
        for binary, key in _VOLCANO.items()
        if binary != "vc-webhook-manager"
    ]
    webhook = ControllerImage(
        binary="vc-webhook-manager",
        references=volcano_references(charts[VOLCANO_CHART], _VOLCANO["vc-webhook-manager"]),
        extra=_webhook_extra(binaries, charts[ADMISSION_SCRIPT]),
        needs_shell=True,
    )
    return [karpenter, mpi_operator, *volcano, webhook]


def karpenter_references(chart: Path) -> tuple[str, ...]:
    """Names of Karpenter's controller: with the tag of the chart's own values, and with the version that the platform pins."""
    image = _values(chart, "controller", "image")
    return _tagged(str(image["repository"]), str(image.get("tag") or versions.KARPENTER), versions.KARPENTER)


def volcano_references(chart: Path, key: str) -> tuple[str, ...]:
    """Names of one of Volcano's images, `key` being the chart's value that holds its name; tags as for Karpenter."""
    basic = _values(chart, "basic")
    if key not in basic:
        raise LocalStackError(f"{chart / 'values.yaml'}: basic.{key} is missing, so the image's name is not known")
    return _tagged(f"{basic['image_registry']}/{basic[key]}", str(basic["image_tag_version"]), f"v{versions.VOLCANO}")


def manifest_references(manifest: Path) -> tuple[str, ...]:
    """Names of all images that the Deployments of a manifest run. Raises LocalStackError where there is none."""
    # Only Deployments are parsed: the rest is a custom resource definition of thousands of lines.
    documents = [text for text in manifest.read_text().split("\n---") if "\nkind: Deployment" in f"\n{text}"]
    pods = [yaml.safe_load(text)["spec"]["template"]["spec"] for text in documents]
    images = [container["image"] for pod in pods for container in pod["containers"]]
    if not images:
        raise LocalStackError(f"{manifest} holds no Deployment, so the name of its image is not known")
    return tuple(images)


def webhook_tools(architecture_name: str) -> tuple[str, ...]:
    """Paths in the Debian base of what the certificate script needs: shell, openssl and its libraries.

    Raises:
        LocalStackError: an architecture that is not known here.
    """
    if architecture_name not in _LIBRARY_FOLDERS:
        raise LocalStackError(f"images can be made on {' and '.join(_LIBRARY_FOLDERS)}, not on {architecture_name}")
    triplet, loader = _LIBRARY_FOLDERS[architecture_name]
    libraries = [f"usr/lib/{triplet}/{name}" for name in ("libc.so.6", "libcrypto.so.3", "libssl.so.3", Path(loader).name)]
    return (*_TOOLS, *libraries, f"usr/{loader}")


def _archive(image: ControllerImage, binaries: Mapping[str, Path], out: Path, progress: Progress) -> Archive:
    entries = image.entries(binaries)
    config = ImageConfig(entrypoint=[f"/{image.binary}"], env={"PATH": "/usr/local/bin:/usr/bin:/bin"})
    recipe = recipe_of(entries, image.references, config, base_key() if image.needs_shell else None)
    path = out / f"{image.binary}.tar"

    def make() -> Archive:
        with progress.step(f"write the image {image.references[0]}"), tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            tools = Path(scratch) / "tools.tar"
            if image.needs_shell:
                copy_members(ensure_base(progress), webhook_tools(architecture()), tools)
            layers: Sequence[Path | list[Entry]] = [tools, entries] if image.needs_shell else [entries]
            return write_archive(path, references=image.references, layers=layers, config=config)

    return ensure_archive(path, recipe, make)


def _webhook_extra(binaries: Mapping[str, Path], script: Path) -> tuple[Entry, ...]:
    if "kubectl" not in binaries:
        raise LocalStackError("Volcano's webhook image needs the binary kubectl, which was not built: run `make setup`")
    shell = [link(f"/usr/bin/{name}", "busybox") for name in _SHELL_TOOLS]
    tools = file("/usr/local/bin/kubectl", binaries["kubectl"], mode=0o755)
    return (*shell, tools, file(f"/{script.name}", script, mode=0o755))


def _values(chart: Path, *keys: str) -> Mapping[str, object]:
    values = yaml.safe_load((chart / "values.yaml").read_text())
    for key in keys:
        if not isinstance(values, dict) or key not in values:
            raise LocalStackError(f"{chart / 'values.yaml'}: {'.'.join(keys)} is missing, so the image's name is not known")
        values = values[key]
    return values


def _tagged(name: str, *tags: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{name}:{tag}" for tag in tags))
