"""Versions of everything the platform installs: one constant each, changed here and nowhere else.

Settings may override a chart's or an add-on's version; these are the ones the tests run against.
"""

# Standard support of 1.36 ends 2027-08-02.
KUBERNETES = "1.36"

# EKS managed add-ons: releases that a 1.36 cluster accepts. The efa-only interfaces of a training pool need vpc-cni 1.18.5 or later.
EKS_ADDONS = {
    "vpc-cni": "v1.22.4-eksbuild.3",
    "kube-proxy": "v1.36.0-eksbuild.21",
    "coredns": "v1.14.3-eksbuild.16",
    "eks-pod-identity-agent": "v1.3.10-eksbuild.3",
    "aws-ebs-csi-driver": "v1.63.1-eksbuild.1",
    "aws-efs-csi-driver": "v3.4.1-eksbuild.1",
    "aws-fsx-csi-driver": "v1.9.0-eksbuild.1",
}

# Amazon Linux 2023 EKS image release, for Karpenter's alias (al2023@v<release>) and for managed node groups (<kubernetes>.x-<release>).
AL2023_RELEASE = "20260903"
AL2023_NODE_GROUP_RELEASE = f"1.36.3-{AL2023_RELEASE}"

# 1.13 is the first Karpenter for Kubernetes 1.36; placementGroupSelector and networkInterfaces need 1.11.
KARPENTER = "1.14.0"
VOLCANO = "1.14.1"
MPI_OPERATOR = "0.8.0"
NVIDIA_DEVICE_PLUGIN = "0.20.0"
# Tag of the EFA device plug-in's image; its chart (0.5.30) is not used.
EFA_DEVICE_PLUGIN = "v0.5.20"
