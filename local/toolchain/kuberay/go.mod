module trainyard.dev/local/toolchain/kuberay

go 1.26

require github.com/ray-project/kuberay/ray-operator v1.5.1
