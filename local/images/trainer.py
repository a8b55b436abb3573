"""The trainer's image on the local stack, and the contract that jobs rely on. `training/Dockerfile` keeps the same one for AWS.

The contract, all of it:

- `python3` is 3.11. PYTHONPATH holds the sources (`SOURCE`) and the packages of the training environment (`ENVIRONMENT`), so training
  starts as `python3 -m training.train --config ...`. On the local stack the environment is no part of the image: the node mounts it
  read-only into every container; on AWS the image holds it.
- Containers run as user `trainer`, id 1000. Nothing in the image but its home and /tmp is writable to it.
- For an MPIJob (v2beta1), as that user: `sshAuthMountPath: /home/trainer/.ssh`; workers run
  `/usr/sbin/sshd -De -f /home/trainer/.sshd_config`, which listens on port 2222 and takes the job's own key as its host key; the
  launcher runs `mpirun`, and ssh goes to port 2222 of any host without asking to confirm its key. Processes that mpirun starts over ssh
  get PYTHONPATH and PATH from sshd; any other variable has to be passed with `mpirun -x`.
- No process of the image needs a capability, and none writes outside /home/trainer, /tmp and the job's own mounts.
"""

from collections.abc import Iterator
from pathlib import Path

from local.errors import LocalStackError
from local.images.base import HOME, USER, USER_ID, base_key, ensure_base
from local.images.layer import Entry, file, folder, python_sources
from local.images.oci import Archive, ImageConfig, write_archive
from local.images.store import ensure_archive, recipe_of
from local.progress import Progress

REPOSITORY_NAME = "trainyard.local/trainer"
SOURCE = "/opt/trainyard/src"
ENVIRONMENT = "/opt/trainyard/env"
PYTHONPATH = f"{SOURCE}:{ENVIRONMENT}/lib/python3.11/site-packages"
PATH = "/usr/local/bin:/usr/bin:/bin"
SSH_AUTH_MOUNT_PATH = f"{HOME}/.ssh"
SSH_PORT = 2222
SSHD_CONFIG_PATH = f"{HOME}/.sshd_config"
SSH_CONFIG_PATH = "/etc/ssh/ssh_config.d/trainer.conf"

SSHD_CONFIG = f"""\
Port {SSH_PORT}
HostKey {SSH_AUTH_MOUNT_PATH}/id_rsa
AuthorizedKeysFile {SSH_AUTH_MOUNT_PATH}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
SetEnv PYTHONPATH={PYTHONPATH} PATH={PATH}
MaxStartups 1000
"""
"""The job's Secret is mounted with root as its owner, which `StrictModes` would refuse; many ranks connect at once."""

SSH_CONFIG = f"""\
Host *
    Port {SSH_PORT}
    IdentityFile {SSH_AUTH_MOUNT_PATH}/id_rsa
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    BatchMode yes
"""
"""Host keys are the job's own and live as long as it does: the key that lets one in is the proof."""


def trainer_image(out: Path, source: Path, progress: Progress) -> Archive:
    """The image with the training package `source` in it, named by its content, in the folder `out`.

    Raises:
        LocalStackError: `source` holds no training program, or the Debian base could not be made.
    """
    if not (source / "train.py").is_file():
        raise LocalStackError(f"{source} holds no train.py, so it is not the training package that the trainer's image needs")
    layers = [list(system_entries()), list(python_sources(source, f"{SOURCE}/{source.name}"))]
    recipe = recipe_of([entry for layer in layers for entry in layer], base_key(), CONFIG)
    base = ensure_base(progress)

    def make() -> Archive:
        with progress.step("write the trainer's image"):
            path = out / f"trainer-{recipe[:12]}.tar"
            return write_archive(path, references=[f"{REPOSITORY_NAME}:{recipe[:12]}"], layers=[base, *layers], config=CONFIG)

    return ensure_archive(out / f"trainer-{recipe[:12]}.tar", recipe, make)


def system_entries() -> Iterator[Entry]:
    """What the image adds to Debian, the sources apart."""
    yield file(SSHD_CONFIG_PATH, SSHD_CONFIG.encode(), owner=USER_ID)
    yield file(SSH_CONFIG_PATH, SSH_CONFIG.encode())
    # The mount points exist, so that a container without their volumes behaves the same.
    yield folder(SSH_AUTH_MOUNT_PATH, mode=0o700, owner=USER_ID)
    yield folder(ENVIRONMENT)
    yield folder("/run/sshd")


CONFIG = ImageConfig(
    env={"PYTHONPATH": PYTHONPATH, "PATH": PATH, "HOME": HOME, "USER": USER, "PYTHONUNBUFFERED": "1"},
    command=["python3", "-m", "training.train", "--help"],
    user=str(USER_ID),
    workdir=HOME,
)
