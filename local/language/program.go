package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/pulumi/pulumi/sdk/v3/python/toolchain"
)

// The runner of the Python SDK, which the build puts beside this program.
const runner = "pulumi-language-python-exec"

// The runner's exit status after it has shown the user why the program failed.
const exitAfterMessage = 32

// Run runs a Pulumi program to its end.
func (h *host) Run(ctx context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	ctx, done := whicheverEnds(ctx, h.lifetime)
	defer done()
	python, err := pythonOf(request.Info)
	if err != nil {
		return nil, err
	}
	if err := python.toolchain.ValidateVenv(ctx); err != nil {
		return nil, err
	}
	if answer, err := h.typecheck(ctx, python, request.Info.ProgramDirectory); answer != nil || err != nil {
		return answer, err
	}
	arguments, err := h.runnerArguments(request)
	if err != nil {
		return nil, err
	}
	cmd, err := python.toolchain.Command(ctx, arguments...)
	if err != nil {
		return nil, err
	}
	configuration, err := configurationVariables(request.Config, request.ConfigSecretKeys)
	if err != nil {
		return nil, err
	}
	prepare(cmd)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(environmentOf(cmd), configuration...)
	return programResult(ctx, h.children.run(cmd))
}

func programResult(ctx context.Context, err error) (*pulumirpc.RunResponse, error) {
	code, ended := exitCode(err)
	switch {
	case ctx.Err() != nil:
		return &pulumirpc.RunResponse{Bail: true}, nil
	case !ended:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program could not run to its end: %v", err)}, nil
	case code == exitAfterMessage:
		return &pulumirpc.RunResponse{Bail: true}, nil
	case code != 0:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program ended with exit status %d", code)}, nil
	}
	return &pulumirpc.RunResponse{}, nil
}

func (h *host) runnerArguments(request *pulumirpc.RunRequest) ([]string, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(request.Info.ProgramDirectory, request.Info.EntryPoint)
	arguments := []string{
		"-u", filepath.Join(filepath.Dir(executable), runner),
		"--monitor", request.MonitorAddress,
		"--engine", h.engine,
		"--project", request.Project,
		"--stack", request.Stack,
		"--organization", request.Organization,
		"--root_directory", request.Info.RootDirectory,
		"--pwd", request.Pwd,
		"--dry_run", strconv.FormatBool(request.DryRun),
		"--parallel", strconv.Itoa(int(request.Parallel)),
		program,
	}
	return append(arguments, request.Args...), nil
}

// typecheck runs the type checker that the project asks for; its findings end the run before the program starts.
func (h *host) typecheck(ctx context.Context, python python, directory string) (*pulumirpc.RunResponse, error) {
	if python.options.Typechecker == toolchain.TypeCheckerNone {
		return nil, nil
	}
	module := strings.ToLower(toolchain.TypeCheckerName(python.options.Typechecker))
	cmd, err := python.toolchain.ModuleCommand(ctx, module, directory)
	if err != nil {
		return nil, err
	}
	prepare(cmd)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := h.children.run(cmd); err != nil {
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("%s refused the program:\n%s", module, output.String())}, nil
	}
	return nil, nil
}

// configurationVariables holds the stack's configuration as the SDK expects it.
func configurationVariables(values map[string]string, secretKeys []string) ([]string, error) {
	// A stack without configuration comes as nil, which JSON would spell null and the SDK can't read.
	if values == nil {
		values = map[string]string{}
	}
	if secretKeys == nil {
		secretKeys = []string{}
	}
	configuration, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	keys, err := json.Marshal(secretKeys)
	if err != nil {
		return nil, err
	}
	return []string{"PULUMI_CONFIG=" + string(configuration), "PULUMI_CONFIG_SECRET_KEYS=" + string(keys)}, nil
}

func environmentOf(cmd *exec.Cmd) []string {
	if cmd.Env == nil {
		return os.Environ()
	}
	return cmd.Env
}
