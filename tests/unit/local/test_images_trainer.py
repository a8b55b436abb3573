"""The trainer's image keeps its contract: what is in it, its name, and that the Dockerfile for AWS says the same.

The Dockerfile itself can only be built where registries can be reached; here its text is held against the image that is built.
"""

import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.images import trainer
from local.images.base import HOME, PACKAGES, USER, USER_ID, base_key
from local.paths import REPOSITORY
from local.progress import Progress
from tests.unit.local.image_archive import entries, image
from workloads import contract

pytestmark = pytest.mark.unit

DOCKERFILE = (REPOSITORY / "training" / "Dockerfile").read_text()
LOCK = REPOSITORY / "training" / "requirements.lock"


def dockerfile_text(path: str) -> str:
    """What the Dockerfile writes to `path`."""
    (text,) = re.findall(rf"^COPY [^\n]*<<EOF {re.escape(path)}\n(.*?)^EOF$", DOCKERFILE, re.MULTILINE | re.DOTALL)
    return text


def instructions(word: str) -> list[str]:
    return re.findall(rf"^{word} (.*)$", DOCKERFILE, re.MULTILINE)


def final_stage() -> str:
    return DOCKERFILE.rpartition("\nFROM ")[2]


@pytest.fixture
def progress(tmp_path, monkeypatch) -> Progress:
    """Progress of a run whose cache holds a base (an empty tar) already."""
    folder = tmp_path / "cache" / "images"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TRAINYARD_CACHE", str(tmp_path / "cache"))
    tarfile.open(folder / f"base-{base_key()}.tar", "w").close()
    return Progress(tmp_path / "log", total=1)


def package(folder: Path, text: str = "") -> Path:
    source = folder / "training"
    source.mkdir(parents=True, exist_ok=True)
    (source / "train.py").write_text(text)
    return source


def test_the_image_is_named_by_its_content(tmp_path, progress):
    first = trainer.trainer_image(tmp_path / "out", package(tmp_path / "a"), progress)
    assert re.fullmatch(r"trainyard\.local/trainer:[0-9a-f]{12}", first.reference)
    assert trainer.trainer_image(tmp_path / "out", package(tmp_path / "b"), progress) == first
    changed = trainer.trainer_image(tmp_path / "out", package(tmp_path / "a", "print()"), progress)
    assert changed.reference != first.reference


def test_the_image_holds_the_sources_and_the_ssh_files_of_the_contract(tmp_path, progress):
    archive = trainer.trainer_image(tmp_path / "out", package(tmp_path / "a"), progress)
    system, sources = map(entries, image(archive.path)[2][1:])
    assert set(sources) == {"opt/trainyard/src/training/train.py"}
    sshd = system["home/trainer/.sshd_config"]
    assert (sshd.uid, sshd.mode) == (USER_ID, 0o644)
    assert (system["home/trainer/.ssh"].uid, system["home/trainer/.ssh"].mode) == (USER_ID, 0o700)
    assert "etc/ssh/ssh_config.d/trainer.conf" in system


def test_a_folder_without_the_training_program_is_refused(tmp_path, progress):
    with pytest.raises(LocalStackError, match=r"holds no train\.py"):
        trainer.trainer_image(tmp_path / "out", tmp_path, progress)


def test_sshd_listens_where_ssh_goes_and_where_an_unprivileged_user_may():
    assert f"Port {trainer.SSH_PORT}\n" in trainer.SSHD_CONFIG
    assert f"Port {trainer.SSH_PORT}\n" in trainer.SSH_CONFIG
    assert trainer.SSH_PORT > 1023, "an unprivileged user may not listen below"


def test_jobs_ask_for_what_the_image_offers():
    assert contract.USER_ID == USER_ID
    assert contract.SSH_PORT == trainer.SSH_PORT
    assert str(contract.SSH_DIRECTORY) == trainer.SSH_AUTH_MOUNT_PATH
    assert contract.SSH_SERVER == ("/usr/sbin/sshd", "-De", "-f", trainer.SSHD_CONFIG_PATH)


def test_the_dockerfile_writes_the_same_ssh_files():
    assert dockerfile_text(trainer.SSHD_CONFIG_PATH) == trainer.SSHD_CONFIG
    assert dockerfile_text(trainer.SSH_CONFIG_PATH) == trainer.SSH_CONFIG


def test_the_dockerfile_sets_the_same_user_environment_and_command():
    env = dict(item.split("=", 1) for item in re.findall(r"^ENV (.*)$", final_stage(), re.MULTILINE))
    assert env.pop("NVIDIA_DRIVER_CAPABILITIES") == "compute,utility"
    assert env == dict(trainer.CONFIG.env)
    assert instructions("USER") == [trainer.CONFIG.user] == [str(USER_ID)]
    assert instructions("WORKDIR") == [trainer.CONFIG.workdir]
    assert json.loads(instructions("CMD")[0]) == list(trainer.CONFIG.command)
    assert f"useradd --uid {USER_ID} --create-home --home-dir {HOME} --shell /bin/bash {USER}" in DOCKERFILE


def test_the_dockerfile_puts_sources_and_environment_where_jobs_look_for_them():
    assert f"training {trainer.SOURCE}/training" in instructions("COPY")
    assert f"--from=environment {trainer.ENVIRONMENT} {trainer.ENVIRONMENT}" in instructions("COPY")
    assert trainer.PYTHONPATH.split(":") == [trainer.SOURCE, f"{trainer.ENVIRONMENT}/lib/python3.11/site-packages"]


def test_the_dockerfile_installs_the_packages_that_training_needs_here():
    # These two serve another image that is made from the same base.
    needed = set(PACKAGES) - {"busybox-static", "openssl"}
    (installed,) = re.findall(r"--no-install-recommends \\\n\s+(.*) \\\n", final_stage())
    assert needed <= set(installed.split())


def test_every_version_that_the_dockerfile_fetches_is_an_argument():
    versions = dict(item.split("=", 1) for item in instructions("ARG"))
    assert re.fullmatch(r"\d+\.\d+\.\d+", versions["EFA_INSTALLER_VERSION"])
    assert versions["DEBIAN_IMAGE"].startswith("debian:bookworm"), "another release has another Python"
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${DEBIAN_IMAGE}"}
    assert "latest" not in DOCKERFILE


def test_the_two_parts_of_the_lock_file_are_deepspeed_and_all_the_rest(tmp_path):
    programs = re.findall(r"awk '([^']*)' /tmp/requirements.lock", DOCKERFILE)
    lock = LOCK.read_text()
    first, second = (
        subprocess.run(["awk", program], input=lock, text=True, capture_output=True, check=True).stdout for program in programs
    )
    pins = re.compile(r"^(\S+)==", re.MULTILINE)
    assert pins.findall(second) == ["deepspeed"]
    assert pins.findall(first) == [name for name in pins.findall(lock) if name != "deepspeed"]
    assert first.count("--hash") + second.count("--hash") == lock.count("--hash")
