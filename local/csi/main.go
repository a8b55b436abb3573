// Command csi-node stands in for the node part of a CSI driver of AWS: it gives a pod a folder of this machine where the real one would
// mount a network file system. One process serves one driver name.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// options are the command line; all of them are required.
type options struct {
	driver          string // name that volumes ask for, such as fsx.csi.aws.com
	endpoint        string // path of the CSI socket
	registrationDir string // folder that the kubelet watches for plug-ins
	volumes         string // folder that holds one folder per driver and file system
	nodeID          string // name of the node
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	options, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, options)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatalf("csi-node: %v", err)
	}
}

func parse(args []string) (options, error) {
	var parsed options
	flags := flag.NewFlagSet("csi-node", flag.ContinueOnError)
	fields := []struct {
		value       *string
		name, usage string
	}{
		{&parsed.driver, "driver", "`name` that volumes ask for"},
		{&parsed.endpoint, "endpoint", "`path` of the CSI socket"},
		{&parsed.registrationDir, "registration-dir", "`folder` that the kubelet watches for plug-ins"},
		{&parsed.volumes, "volumes", "`folder` for the contents of volumes"},
		{&parsed.nodeID, "node-id", "`name` of the node"},
	}
	for _, field := range fields {
		flags.StringVar(field.value, field.name, "", field.usage)
	}
	if err := flags.Parse(args); err != nil {
		return parsed, err
	}
	for _, field := range fields {
		if *field.value == "" {
			return parsed, fmt.Errorf("--%s is required", field.name)
		}
	}
	if flags.NArg() > 0 {
		return parsed, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return parsed, nil
}

// run serves the CSI socket, then the registration socket (the kubelet calls back at once), until ctx ends or the kubelet refuses.
func run(ctx context.Context, options options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	plugin := grpc.NewServer()
	csi.RegisterIdentityServer(plugin, &identity{driver: options.driver})
	csi.RegisterNodeServer(plugin, &node{
		id:     options.nodeID,
		folder: filepath.Join(options.volumes, options.driver),
		mounts: kernelMounts{},
	})
	registrar := grpc.NewServer()
	registration.RegisterRegistrationServer(registrar, &registrant{
		driver:   options.driver,
		endpoint: options.endpoint,
		refused:  func(reason string) { cancel(fmt.Errorf("the kubelet refused %s: %s", options.driver, reason)) },
	})
	if err := serve(ctx, cancel, plugin, options.endpoint); err != nil {
		return err
	}
	defer plugin.Stop()
	if err := serve(ctx, cancel, registrar, filepath.Join(options.registrationDir, options.driver+"-reg.sock")); err != nil {
		return err
	}
	defer registrar.Stop()
	log.Printf("%s serves at %s, volumes in %s", options.driver, options.endpoint, options.volumes)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// serve starts a server on a socket that nobody else uses; one that a killed process left is replaced.
func serve(ctx context.Context, cancel context.CancelCauseFunc, server *grpc.Server, socket string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	go func() {
		if err := server.Serve(listener); err != nil {
			cancel(err)
		}
	}()
	return nil
}
