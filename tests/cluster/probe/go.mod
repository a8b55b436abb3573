module trainyard.dev/tests/cluster/probe

go 1.26
