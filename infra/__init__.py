"""The platform: typed Pulumi components for the network, cluster, compute, storage and add-ons of a training platform on EKS.

Importing this package imports nothing of Pulumi's SDKs: the pure modules (labels, versions, catalogue) stay cheap to use.
"""
