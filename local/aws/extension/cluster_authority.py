"""The certificate authority of an EKS cluster: a real certificate, since what reads a kubeconfig parses it. moto answers random letters."""

import base64
import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from moto.eks.responses import EKSResponse

from local.aws.extension.hooks import Call, Params, add_completions

_LIFETIME = datetime.timedelta(days=3650)


def give_certificate(call: Call, given: Params, result: dict) -> None:
    """After CreateCluster: put a certificate of its own in the cluster that was made."""
    result["cluster"].certificate_authority = {"data": _certificate()}


def _certificate() -> str:
    """A new self-signed certificate, as PEM in base64. Nothing is signed by it, so its key is thrown away."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now,
        not_valid_after=now + _LIFETIME,
    ).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return base64.b64encode(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode()


def install() -> None:
    """Complete EKS's CreateCluster."""
    add_completions(EKSResponse, {"create_cluster": give_certificate})
