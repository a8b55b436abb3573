"""The MPI Operator, from its pinned release manifest, with gangs placed by Volcano."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.yaml.v2 import ConfigFile

from infra import labels
from infra.addons.manifest import ManifestObject, Object, containers, read_manifest
from infra.component import child_options, token
from infra.settings import ManifestSettings
from infra.settings.rules import is_file_path

GANG_ARGUMENT = "--gang-scheduling=volcano"
_DEPLOYMENT_TYPE = "kubernetes:apps/v1:Deployment"


@dataclass(frozen=True, kw_only=True)
class MpiOperatorArgs:
    """What MpiOperator needs to know."""

    settings: ManifestSettings
    """Manifest and image."""
    system_pool: str
    """Name of the system node pool that it runs on."""
    after: Sequence[pulumi.Resource] = ()
    """What has to exist first: system nodes, Volcano's CRDs."""


class MpiOperator(pulumi.ComponentResource):
    """The operator that runs MPIJobs."""

    ready: list[pulumi.Resource]
    """What MPIJobs need: the kind and the operator."""

    def __init__(self, name: str, args: MpiOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("addons", "MpiOperator"), name, {"manifest": args.settings.manifest}, opts)
        from_file = is_file_path(args.settings.manifest)
        self.ready = self._install_file(name, args) if from_file else [self._install_url(name, args)]
        self.register_outputs({})

    def _install_file(self, name: str, args: MpiOperatorArgs) -> list[pulumi.Resource]:
        made: list[pulumi.Resource] = []
        for found in read_manifest(args.settings.manifest, lambda read: schedule_gangs(read, args)):
            # The operator ends when its kinds are not there yet; nothing in its spec names them. The rest needs the namespace, made first.
            before = made if found["kind"] == "Deployment" else made[:1]
            object_name = f"{name}-{found['kind'].lower()}-{found['metadata']['name'].replace('.', '-')}"
            made.append(ManifestObject(object_name, found, child_options(self, depends_on=[*args.after, *before])))
        return made

    def _install_url(self, name: str, args: MpiOperatorArgs) -> pulumi.Resource:
        def change(registered: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
            if registered.type_ != _DEPLOYMENT_TYPE:
                return None
            return pulumi.ResourceTransformResult(schedule_gangs(dict(registered.props), args), registered.opts)

        # The manifest is read by the provider, so its Deployment can only be changed on its way to the engine.
        return ConfigFile(name, file=args.settings.manifest, opts=child_options(self, depends_on=args.after, transforms=[change]))


def schedule_gangs(found: Object, args: MpiOperatorArgs) -> Object:
    """Return a manifest's object as we run it: the operator on system nodes, asking Volcano for gangs; other objects as they are."""
    if found.get("kind") != "Deployment":
        return found
    changed = copy.deepcopy(found)
    for container in containers(changed):
        arguments = container.setdefault("args", [])
        if GANG_ARGUMENT not in arguments:
            arguments.append(GANG_ARGUMENT)
        if args.settings.image:
            container["image"] = args.settings.image
    changed["spec"]["template"]["spec"]["nodeSelector"] = labels.pool_selector(args.system_pool)
    return changed
