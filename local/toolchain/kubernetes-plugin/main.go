// Command pulumi-resource-kubernetes serves the Pulumi Kubernetes provider from its published Go module.
package main

import (
	_ "embed"

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

func main() {
	provider.Serve("kubernetes", version, schema, mapping)
}
