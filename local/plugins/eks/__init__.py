"""Stand-in for the `eks` component plug-in: the children, names, options and outputs of the genuine one for the arguments listed here.

What differs from pulumi-eks 4, and only on the local stack: the AWS CLI need not be installed, and nobody waits for the API server's
health check (the control plane of the emulator has no API server behind it).
"""
