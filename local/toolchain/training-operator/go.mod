module trainyard.dev/local/toolchain/training-operator

go 1.26

require github.com/kubeflow/training-operator v1.9.3
