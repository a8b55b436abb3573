"""Certificates of a node: who they are for, and when they are made anew."""

import datetime
import shutil
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local.node.pki import LEAF_DAYS, RENEW_DAYS, Pki, Subject, subjects

pytestmark = pytest.mark.unit

NOW = datetime.datetime(2026, 11, 29, tzinfo=datetime.UTC)
SERVER = Subject(file="apiserver", user="kube-apiserver", hosts=("kubernetes", "10.213.0.2"))
CLIENT = Subject(file="admin", user="someone", groups=("system:masters",))


def read(pki: Pki, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((pki.folder / f"{name}.crt").read_bytes())


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "pki"
    Pki(folder).ensure((SERVER, CLIENT), now=NOW)
    return folder


@pytest.fixture
def pki(made_once: Path, tmp_path: Path) -> Pki:
    return Pki(Path(shutil.copytree(made_once, tmp_path / "pki")))


def test_all_certificates_come_from_the_one_authority(pki: Pki) -> None:
    authority = x509.load_pem_x509_certificate(pki.authority.read_bytes())
    for name in ("apiserver", "admin"):
        read(pki, name).verify_directly_issued_by(authority)


def test_a_server_is_known_by_names_and_addresses(pki: Pki) -> None:
    names = read(pki, "apiserver").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kubernetes"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["10.213.0.2"]
    usage = read(pki, "apiserver").extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_a_client_is_a_user_with_groups(pki: Pki) -> None:
    subject = read(pki, "admin").subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "someone"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"


def test_keys_are_readable_by_their_owner_only(pki: Pki) -> None:
    assert pki.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in pki.folder.glob("*.key")} == {0o600}


def test_current_certificates_are_kept(pki: Pki) -> None:
    before = {path: path.read_bytes() for path in pki.folder.iterdir()}
    pki.ensure((SERVER, CLIENT), now=NOW + datetime.timedelta(days=LEAF_DAYS - RENEW_DAYS - 1))
    assert {path: path.read_bytes() for path in pki.folder.iterdir()} == before


def test_a_certificate_near_its_end_is_renewed_by_the_same_authority(pki: Pki) -> None:
    authority, old = pki.authority.read_bytes(), read(pki, "admin")
    pki.ensure((SERVER, CLIENT), now=NOW + datetime.timedelta(days=LEAF_DAYS - RENEW_DAYS + 1))
    assert pki.authority.read_bytes() == authority
    assert read(pki, "admin").not_valid_after_utc > old.not_valid_after_utc


def test_another_address_asks_for_another_certificate_and_leaves_the_rest(pki: Pki) -> None:
    admin = read(pki, "admin")
    moved = Subject(file="apiserver", user="kube-apiserver", hosts=("kubernetes", "10.213.0.6"))
    pki.ensure((moved, CLIENT), now=NOW)
    assert "10.213.0.6" in str(read(pki, "apiserver").extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    assert read(pki, "admin") == admin


def test_a_broken_file_is_replaced(pki: Pki) -> None:
    (pki.folder / "admin.crt").write_text("nothing of use")
    pki.ensure((SERVER, CLIENT), now=NOW)
    read(pki, "admin")


def test_a_lost_authority_replaces_everything_it_signed(pki: Pki) -> None:
    pki.authority.unlink()
    pki.ensure((SERVER, CLIENT), now=NOW)
    read(pki, "admin").verify_directly_issued_by(x509.load_pem_x509_certificate(pki.authority.read_bytes()))


def test_the_api_server_answers_to_every_name_that_pods_use() -> None:
    (api,) = [subject for subject in subjects("node", "10.213.0.2") if subject.file == "apiserver"]
    assert {"kubernetes", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "10.96.0.1", "10.213.0.2"} <= set(api.hosts)


def test_only_administrators_and_the_api_server_have_all_rights() -> None:
    masters = {subject.file for subject in subjects("node", "10.213.0.2") if "system:masters" in subject.groups}
    assert masters == {"admin", "apiserver-kubelet-client"}
