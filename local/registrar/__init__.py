"""Registers a Node for every instance that Karpenter launches in the AWS emulator, as the instance's own kubelet would.

It runs as `python -m local.registrar --kubeconfig <file> --endpoint http://127.0.0.1:<port> --region <region>` while the stack is up, and
ends by itself once the API server or the emulator has been away for a minute.
"""
