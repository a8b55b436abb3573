"""Certificates of a node's cluster: one authority, a certificate per client and server, and the service-account key."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local.node import layout

AUTHORITY_DAYS = 3650
LEAF_DAYS = 365
RENEW_DAYS = 30
"""A certificate with fewer days left is made anew by the next start."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What one certificate is for."""

    file: str
    """Stem of the `.crt` and `.key` files."""
    user: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Names and addresses of a server. A subject without any is a client."""


def subjects(node_name: str, node_ip: str) -> tuple[Subject, ...]:
    """All certificates of a one-node cluster."""
    service = "kubernetes.default.svc"
    api_names = ("kubernetes", "kubernetes.default", service, f"{service}.cluster.local")
    return (
        Subject(file="apiserver", user="kube-apiserver", hosts=(*api_names, "localhost", "127.0.0.1", node_ip, layout.SERVICE_API)),
        Subject(file="kubelet-server", user=f"system:node:{node_name}", hosts=(node_name, node_ip, "127.0.0.1")),
        Subject(file="apiserver-kubelet-client", user="kube-apiserver-kubelet-client", groups=("system:masters",)),
        Subject(file="admin", user="trainyard-admin", groups=("system:masters",)),
        Subject(file="kubelet", user=f"system:node:{node_name}", groups=("system:nodes",)),
        Subject(file="controller-manager", user="system:kube-controller-manager"),
        Subject(file="scheduler", user="system:kube-scheduler"),
        Subject(file="proxy", user="system:kube-proxy"),
        Subject(file="coredns", user="trainyard:coredns"),
        Subject(file="kwok", user="trainyard:kwok"),
    )


class Pki:
    """The certificates in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    def ensure(self, wanted: tuple[Subject, ...], *, now: datetime.datetime | None = None) -> None:
        """Make what is missing, near its end, of another authority, or for other names than wanted."""
        now = now or datetime.datetime.now(datetime.UTC)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        key, certificate = self._ensure_authority(now)
        for subject in wanted:
            if not self._is_current(subject, certificate, now):
                self._issue(subject, key, certificate, now)
        if not (self.folder / "service-account.key").exists():
            self._write_service_account_key()

    def _ensure_authority(self, now: datetime.datetime) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        key_file = self.folder / "ca.key"
        try:
            certificate = x509.load_pem_x509_certificate(self.authority.read_bytes())
            key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
            # The authority must outlive what it signs today.
            if isinstance(key, ec.EllipticCurvePrivateKey) and certificate.not_valid_after_utc > now + datetime.timedelta(
                days=LEAF_DAYS + 1
            ):
                return key, certificate
        except (FileNotFoundError, ValueError):
            pass
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "trainyard-local")])
        certificate = (
            _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        _write_key(key_file, key)
        self.authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return key, certificate

    def _is_current(self, subject: Subject, authority: x509.Certificate, now: datetime.datetime) -> bool:
        try:
            certificate = x509.load_pem_x509_certificate((self.folder / f"{subject.file}.crt").read_bytes())
            certificate.verify_directly_issued_by(authority)
        except Exception:  # whatever is wrong with the file, a new one mends it
            return False
        return (
            (self.folder / f"{subject.file}.key").exists()
            and certificate.not_valid_after_utc > now + datetime.timedelta(days=RENEW_DAYS)
            and certificate.subject == _name(subject)
            and _hosts_of(certificate) == set(subject.hosts)
        )

    def _issue(self, subject: Subject, key: ec.EllipticCurvePrivateKey, authority: x509.Certificate, now: datetime.datetime) -> None:
        own = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if subject.hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(_name(subject), authority.subject, own.public_key(), now, LEAF_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        )
        if subject.hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(host) for host in subject.hosts]), critical=False)
        _write_key(self.folder / f"{subject.file}.key", own)
        (self.folder / f"{subject.file}.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _write_service_account_key(self) -> None:
        # RSA: tokens of EKS are signed with RS256, and so are these.
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        _write_key(self.folder / "service-account.key", key)
        public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        (self.folder / "service-account.pub").write_bytes(public)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _name(subject: Subject) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in subject.groups]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, subject.user)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _hosts_of(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in names}


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    )
