// Command pulumi-resource-kubernetes serves the Pulumi Kubernetes provider from its published Go module.
package main

import (
	_ "embed"
	"os"
	"time"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// The build copies both files from the module's own command folder (see builds.toml).
var (
	//go:embed schema.json
	schema []byte
	//go:embed terraform-mapping.json
	mapping []byte
	version string
)

// How often to look whether the engine that started us still runs.
const parentPoll = 500 * time.Millisecond

func main() {
	go endWithParent(os.Getppid())
	provider.Serve("kubernetes", version, schema, mapping)
}

// endWithParent ends this process once the engine is gone: a killed engine can't ask for it, and the SDK looks every five minutes only.
// Until then it would go on with what it was doing, such as a Helm release, behind the back of whoever recovers.
func endWithParent(parent int) {
	for os.Getppid() == parent {
		time.Sleep(parentPoll)
	}
	os.Exit(1)
}
