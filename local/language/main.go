// Command pulumi-language-python is the Python language host of the Pulumi engine, used where an installed CLI brings none.
//
// The engine starts it with its own address as the one argument, reads the port of the gRPC service LanguageRuntime from the first
// line of its output, and ends it with SIGINT. It ends by itself when the engine is gone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

// The build sets it.
var version string

const (
	// How long children may take to end after they were told to; the engine kills this process after five seconds.
	shutdownGrace = 3 * time.Second
	// How often to look whether the engine that started us still runs.
	parentPoll = 500 * time.Millisecond
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "pulumi-language-python: %v\n", err)
		os.Exit(1)
	}
}

func serve() error {
	engine, err := engineAddress()
	if err != nil {
		return err
	}
	// Started with `&`, the engine hands down an ignored SIGINT. Asking for the signal ends that, for our children too.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go cancelWithParent(os.Getppid(), cancel)

	host := newHost(ctx, engine)
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Init: func(server *grpc.Server) error {
			pulumirpc.RegisterLanguageRuntimeServer(server, host)
			return nil
		},
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d\n", handle.Port)
	select {
	case <-ctx.Done():
	case err = <-handle.Done:
		cancel()
	}
	host.children.wait(shutdownGrace)
	return err
}

// engineAddress takes the logging and tracing flags that the engine gives every plug-in, and returns the engine's address.
func engineAddress() (string, error) {
	// A set of our own: the SDK's logging registers some of these names in the default one.
	flags := flag.NewFlagSet("pulumi-language-python", flag.ExitOnError)
	for _, name := range []string{"logtostderr", "logflow"} {
		flags.Bool(name, false, "accepted and not used")
	}
	for _, name := range []string{"v", "tracing", "root"} {
		flags.String(name, "", "accepted and not used")
	}
	showVersion := flags.Bool("version", false, "print the version and end")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return "", err
	}
	if *showVersion {
		fmt.Println(version)
		os.Exit(0)
	}
	if flags.NArg() != 1 {
		return "", fmt.Errorf("expected the engine's address as the one argument, got %d arguments", flags.NArg())
	}
	return flags.Arg(0), nil
}

// cancelWithParent cancels once the process that started us has ended: a killed engine can't ask for it.
func cancelWithParent(parent int, cancel context.CancelFunc) {
	for os.Getppid() == parent {
		time.Sleep(parentPoll)
	}
	cancel()
}
