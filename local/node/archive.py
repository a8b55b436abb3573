"""What an OCI image archive holds."""

import json
import tarfile
from pathlib import Path

from local.errors import LocalStackError

_NAME_KEYS = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


def archive_images(archive: Path) -> dict[str, str]:
    """Name -> digest of every image in an OCI archive (a tar file with an index.json).

    Raises:
        LocalStackError: the file is no such archive, or an image in it has no name.
    """
    try:
        with tarfile.open(archive) as tar:
            file = tar.extractfile("index.json")
            index = json.loads(file.read()) if file else {}
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        raise LocalStackError(f"{archive} is no OCI image archive: {error}") from error
    images = {}
    for manifest in index.get("manifests", []):
        annotations = manifest.get("annotations", {})
        name = next((annotations[key] for key in _NAME_KEYS if key in annotations), None)
        if name is None:
            raise LocalStackError(f"{archive}: the image {manifest['digest']} has no name (annotation {_NAME_KEYS[0]})")
        images[name] = manifest["digest"]
    if not images:
        raise LocalStackError(f"{archive} holds no image")
    return images
