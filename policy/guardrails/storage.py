"""Storage for training: Lustre, EFS, and volumes by their CSI drivers."""

from guardrails import csi, csi_mount, efs, fsx, fsx_link, fsx_network

RULES = (*fsx.RULES, *fsx_link.RULES, *fsx_network.RULES, *csi.RULES, *csi_mount.RULES, *efs.RULES)
