"""Identity: policy documents as pure functions, and the roles that pods and nodes take on."""

from infra.iam.documents import Document, document, statement
from infra.iam.roles import NodeRole, NodeRoleArgs, PodRole, PodRoleArgs, ServiceAccountRef

__all__ = ["Document", "NodeRole", "NodeRoleArgs", "PodRole", "PodRoleArgs", "ServiceAccountRef", "document", "statement"]
