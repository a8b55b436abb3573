package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// pluginFile is what an SDK says about the plug-in that it needs (pulumi-plugin.json).
type pluginFile struct {
	Resource         bool   `json:"resource"`
	Name             string `json:"name"`
	Version          string `json:"version"`
	Server           string `json:"server"`
	Parameterization *struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Value   string `json:"value"`
	} `json:"parameterization"`
}

// GetRequiredPackages lists the plug-ins of the installed SDKs. It reads files only: starting Python for it would cost half a second.
func (h *host) GetRequiredPackages(
	ctx context.Context, request *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	folders, err := packageFolders(ctx, request.Info)
	if err != nil {
		return nil, err
	}
	response := &pulumirpc.GetRequiredPackagesResponse{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*", "pulumi-plugin.json"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			dependency, err := readPluginFile(file)
			if err != nil {
				return nil, err
			}
			if dependency != nil {
				response.Packages = append(response.Packages, dependency)
			}
		}
	}
	return response, nil
}

// GetRequiredPlugins is what engines asked before there were packages.
func (h *host) GetRequiredPlugins(
	ctx context.Context, request *pulumirpc.GetRequiredPluginsRequest,
) (*pulumirpc.GetRequiredPluginsResponse, error) {
	packages, err := h.GetRequiredPackages(ctx, &pulumirpc.GetRequiredPackagesRequest{Info: request.Info})
	if err != nil {
		return nil, err
	}
	response := &pulumirpc.GetRequiredPluginsResponse{}
	for _, dependency := range packages.Packages {
		response.Plugins = append(response.Plugins, &pulumirpc.PluginDependency{
			Name: dependency.Name, Kind: dependency.Kind, Version: dependency.Version, Server: dependency.Server,
		})
	}
	return response, nil
}

// GetProgramDependencies lists the installed Python packages: all, or those that no other one requires.
func (h *host) GetProgramDependencies(
	ctx context.Context, request *pulumirpc.GetProgramDependenciesRequest,
) (*pulumirpc.GetProgramDependenciesResponse, error) {
	folders, err := packageFolders(ctx, request.Info)
	if err != nil {
		return nil, err
	}
	found, required := []distribution{}, map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.dist-info", "METADATA"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			item, err := readDistribution(file)
			if err != nil {
				return nil, err
			}
			found = append(found, item)
			for _, name := range item.requires {
				required[name] = true
			}
		}
	}
	response := &pulumirpc.GetProgramDependenciesResponse{}
	for _, item := range found {
		if request.TransitiveDependencies || !required[item.name] {
			response.Dependencies = append(response.Dependencies, &pulumirpc.DependencyInfo{Name: item.name, Version: item.version})
		}
	}
	return response, nil
}

// packageFolders are the site-packages folders that the program's interpreter searches.
func packageFolders(ctx context.Context, info *pulumirpc.ProgramInfo) ([]string, error) {
	python, err := pythonOf(info)
	if err != nil {
		return nil, err
	}
	if err := python.toolchain.ValidateVenv(ctx); err != nil {
		return nil, err
	}
	virtualenv, err := python.toolchain.VirtualEnvPath(ctx)
	if err != nil {
		return nil, err
	}
	if virtualenv != "" {
		return filepath.Glob(filepath.Join(virtualenv, "lib", "python3*", "site-packages"))
	}
	// Only the interpreter on PATH itself knows where it looks.
	cmd, err := python.toolchain.Command(ctx, "-c", "import json, sys; print(json.dumps([p for p in sys.path if p]))")
	if err != nil {
		return nil, err
	}
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for its package folders: %w", cmd.Path, err)
	}
	var folders []string
	if err := json.Unmarshal(output, &folders); err != nil {
		return nil, err
	}
	return folders, nil
}

func readPluginFile(file string) (*pulumirpc.PackageDependency, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	plugin := pluginFile{}
	if err := json.Unmarshal(text, &plugin); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !plugin.Resource {
		return nil, nil
	}
	if plugin.Name == "" {
		plugin.Name = strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "pulumi_")
	}
	dependency := &pulumirpc.PackageDependency{Name: plugin.Name, Kind: "resource", Version: plugin.Version, Server: plugin.Server}
	if plugin.Parameterization != nil {
		value, err := base64.StdEncoding.DecodeString(plugin.Parameterization.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: parameterization.value: %w", file, err)
		}
		dependency.Parameterization = &pulumirpc.PackageParameterization{
			Name: plugin.Parameterization.Name, Version: plugin.Parameterization.Version, Value: value,
		}
	}
	return dependency, nil
}

// distribution is an installed Python package: what its METADATA file says.
type distribution struct {
	name, version string
	requires      []string
}

var (
	separators  = regexp.MustCompile(`[-_.]+`)
	requirement = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*`)
)

func readDistribution(file string) (distribution, error) {
	metadata, err := os.Open(file)
	if err != nil {
		return distribution{}, err
	}
	defer metadata.Close()
	item := distribution{}
	lines := bufio.NewScanner(metadata)
	// The headers end at the first empty line; what follows is the project's description.
	for lines.Scan() && lines.Text() != "" {
		header, value, _ := strings.Cut(lines.Text(), ": ")
		switch header {
		case "Name":
			item.name = normalized(value)
		case "Version":
			item.version = value
		case "Requires-Dist":
			name := normalized(requirement.FindString(value))
			// An extra's requirement is one only for those who ask for the extra.
			if !strings.Contains(value, "extra ==") && !slices.Contains(item.requires, name) {
				item.requires = append(item.requires, name)
			}
		}
	}
	return item, lines.Err()
}

func normalized(name string) string {
	return separators.ReplaceAllString(strings.ToLower(name), "-")
}
