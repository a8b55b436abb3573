package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"

	sdk "github.com/pulumi/pulumi/sdk/v3"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/pulumi/pulumi/sdk/v3/python/toolchain"
)

// The kind under which the engine asks for policy packs.
const policyPack = "analyzer"

// RunPlugin runs a plug-in written in Python until it ends or the engine has no more use for it.
func (h *host) RunPlugin(request *pulumirpc.RunPluginRequest, stream pulumirpc.LanguageRuntime_RunPluginServer) error {
	ctx, done := whicheverEnds(stream.Context(), h.lifetime)
	defer done()
	python, err := pythonOf(request.Info)
	if err != nil {
		return err
	}
	if err := python.toolchain.ValidateVenv(ctx); err != nil {
		return err
	}
	closer, stdout, stderr, err := rpcutil.MakeRunPluginStreams(stream, false /*isTerminal*/)
	if err != nil {
		return err
	}
	defer closer.Close()
	if request.Kind == policyPack {
		err = h.runPolicyPack(ctx, python, request, stdout, stderr)
	} else {
		err = h.runPlainPlugin(ctx, python, request, stdout, stderr)
	}
	code, ended := exitCode(err)
	if ctx.Err() != nil {
		return nil
	}
	if !ended {
		return err
	}
	return stream.Send(&pulumirpc.RunPluginResponse{
		Output: &pulumirpc.RunPluginResponse_Exitcode{Exitcode: int32(code)},
	})
}

func (h *host) runPlainPlugin(
	ctx context.Context, python python, request *pulumirpc.RunPluginRequest, stdout, stderr io.Writer,
) error {
	program := filepath.Join(request.Info.ProgramDirectory, request.Info.EntryPoint)
	cmd, err := pluginCommand(ctx, python, request, append([]string{"-u", program}, request.Args...))
	if err != nil {
		return err
	}
	cmd.Dir = request.Pwd
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return h.children.run(cmd)
}

// runPolicyPack starts a pack only when the engine has told the stack's configuration, since the policy SDK takes it from the
// environment. The SDK's proxy answers the engine until then.
func (h *host) runPolicyPack(
	ctx context.Context, python python, request *pulumirpc.RunPluginRequest, stdout, stderr io.Writer,
) error {
	proxy, packOutput, err := sdk.NewPolicyProxy(ctx, stdout)
	if err != nil {
		return err
	}
	configuration, err := proxy.AwaitConfiguration(ctx)
	if err != nil {
		return err
	}
	pack := request.Info.ProgramDirectory
	arguments := append([]string{"-u", "-m", "pulumi.policy"}, append(request.Args, pack)...)
	cmd, err := pluginCommand(ctx, python, request, arguments)
	if err == nil {
		cmd.Dir = pack
		cmd.Stdout, cmd.Stderr = packOutput, stderr
		err = setPolicyVariables(cmd, configuration)
	}
	if err != nil {
		proxy.Abort(err)
		return err
	}
	// The proxy waits for the process itself, so only the start is ours.
	release, err := h.children.start(cmd)
	defer release()
	if err != nil {
		proxy.Abort(err)
		return err
	}
	return proxy.Attach(ctx, cmd)
}

func setPolicyVariables(cmd *exec.Cmd, configuration *pulumirpc.AnalyzerStackConfigureRequest) error {
	if configuration == nil {
		return nil
	}
	variables, err := configurationVariables(configuration.Config, configuration.ConfigSecretKeys)
	if err != nil {
		return fmt.Errorf("configuration of the policy pack: %w", err)
	}
	cmd.Env = append(environmentOf(cmd), append(variables,
		"PULUMI_PROJECT="+configuration.Project,
		"PULUMI_STACK="+configuration.Stack,
		"PULUMI_ORGANIZATION="+configuration.Organization,
		"PULUMI_DRY_RUN="+strconv.FormatBool(configuration.DryRun),
	)...)
	return nil
}

// pluginCommand is a prepared Python command in the environment that the engine gives its plug-ins.
func pluginCommand(
	ctx context.Context, python python, request *pulumirpc.RunPluginRequest, arguments []string,
) (*exec.Cmd, error) {
	cmd, err := python.toolchain.Command(ctx, arguments...)
	if err != nil {
		return nil, err
	}
	virtualenv, err := python.toolchain.VirtualEnvPath(ctx)
	if err != nil {
		return nil, err
	}
	if len(request.Env) > 0 {
		cmd.Env = request.Env
		if virtualenv != "" {
			cmd.Env = toolchain.ActivateVirtualEnv(request.Env, virtualenv)
		}
	}
	prepare(cmd)
	return cmd, nil
}
