"""Container images made on this machine, where no registry can be reached: controllers from their binaries, the trainer from Debian."""

from local.images.catalogue import controller_images
from local.images.oci import Archive
from local.images.trainer import trainer_image

__all__ = ["Archive", "controller_images", "trainer_image"]
