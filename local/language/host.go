package main

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/pulumi/pulumi/sdk/v3/python/toolchain"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// host implements the engine's LanguageRuntime service for Python.
type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer

	lifetime context.Context
	cancel   context.CancelFunc
	engine   string
	children children
}

func newHost(ctx context.Context, engine string) *host {
	ctx, cancel := context.WithCancel(ctx)
	return &host{lifetime: ctx, cancel: cancel, engine: engine}
}

// Handshake learns the engine's address, which is also our argument.
func (h *host) Handshake(
	_ context.Context, request *pulumirpc.LanguageHandshakeRequest,
) (*pulumirpc.LanguageHandshakeResponse, error) {
	if request.EngineAddress != "" {
		h.engine = request.EngineAddress
	}
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

// GetPluginInfo answers with the version of the SDK that this host was built from.
func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: version}, nil
}

// About describes the interpreter that programs of the project run with.
func (h *host) About(ctx context.Context, request *pulumirpc.AboutRequest) (*pulumirpc.AboutResponse, error) {
	python, err := pythonOf(request.Info)
	if err != nil {
		return nil, err
	}
	about, err := python.toolchain.About(ctx)
	if err != nil {
		return nil, err
	}
	return &pulumirpc.AboutResponse{
		Executable: about.PythonExecutable,
		Version:    about.PythonVersion.String(),
		Metadata:   map[string]string{"toolchain": toolchain.Name(python.options.Toolchain)},
	}, nil
}

// InstallDependencies makes the project's virtual environment and installs what the project lists.
func (h *host) InstallDependencies(
	request *pulumirpc.InstallDependenciesRequest, stream pulumirpc.LanguageRuntime_InstallDependenciesServer,
) error {
	python, err := pythonOf(request.Info)
	if err != nil {
		return err
	}
	closer, stdout, stderr, err := rpcutil.MakeInstallDependenciesStreams(stream, request.IsTerminal)
	if err != nil {
		return err
	}
	defer closer.Close()
	ctx, done := whicheverEnds(stream.Context(), h.lifetime)
	defer done()
	directory := request.Info.ProgramDirectory
	if err := python.toolchain.InstallDependencies(
		ctx, directory, request.UseLanguageVersionTools, true /*showOutput*/, stdout, stderr,
	); err != nil {
		return err
	}
	return closer.Close()
}

// Cancel ends every program and plug-in that this host runs.
func (h *host) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	h.cancel()
	return &emptypb.Empty{}, nil
}

// python is the toolchain that the runtime options of Pulumi.yaml, PulumiPolicy.yaml or PulumiPlugin.yaml ask for.
type python struct {
	toolchain toolchain.Toolchain
	options   toolchain.PythonOptions
}

func pythonOf(info *pulumirpc.ProgramInfo) (python, error) {
	options := toolchain.PythonOptions{Root: info.GetRootDirectory(), ProgramDir: info.GetProgramDirectory()}
	fields := info.GetOptions().GetFields()
	for name, read := range map[string]func(string) error{
		"virtualenv": func(value string) error { options.Virtualenv = value; return nil },
		"toolchain": func(value string) error {
			switch value {
			case "auto", "":
				options.Toolchain = toolchain.Auto
			case "pip":
				options.Toolchain = toolchain.Pip
			case "poetry":
				options.Toolchain = toolchain.Poetry
			case "uv":
				options.Toolchain = toolchain.Uv
			default:
				return fmt.Errorf("runtime option toolchain: %q is none of auto, pip, poetry, uv", value)
			}
			return nil
		},
		"typechecker": func(value string) error {
			switch value {
			case "":
				options.Typechecker = toolchain.TypeCheckerNone
			case "mypy":
				options.Typechecker = toolchain.TypeCheckerMypy
			case "pyright":
				options.Typechecker = toolchain.TypeCheckerPyright
			default:
				return fmt.Errorf("runtime option typechecker: %q is none of mypy, pyright", value)
			}
			return nil
		},
	} {
		value, given := fields[name]
		if !given {
			continue
		}
		text, isText := value.GetKind().(*structpb.Value_StringValue)
		if !isText {
			return python{}, fmt.Errorf("runtime option %s: expected text, got %v", name, value.AsInterface())
		}
		if err := read(text.StringValue); err != nil {
			return python{}, err
		}
	}
	resolved, err := toolchain.ResolveToolchain(options)
	return python{toolchain: resolved, options: options}, err
}
