module trainyard.dev/local/node/pause

go 1.26
