"""The local stack: stand-ins for AWS and EKS so that the whole platform runs on one Linux machine."""
