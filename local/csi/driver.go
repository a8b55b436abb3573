package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const version = "0.1.0"

// identity answers who this is; there is no controller part, since volumes are static.
type identity struct {
	csi.UnimplementedIdentityServer
	driver string
}

func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.driver, VendorVersion: version}, nil
}

func (i *identity) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// node gives volumes to pods. Volumes need no staging: every pod gets its own bind mount of the same folder.
type node struct {
	csi.UnimplementedNodeServer
	id     string
	folder string // of this driver's volumes
	mounts mounts
	// The kubelet may repeat a call that is still running.
	lock sync.Mutex
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.id}, nil
}

func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (n *node) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	source, err := volumePath(n.folder, request.GetVolumeId())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	target, err := cleanTarget(request.GetTargetPath())
	if err != nil {
		return nil, err
	}
	capability := request.GetVolumeCapability()
	if capability.GetMount() == nil {
		return nil, status.Errorf(codes.InvalidArgument, "volume %s: only file systems can be mounted, not block devices", request.GetVolumeId())
	}
	readOnly := request.GetReadonly() || readsOnly(capability.GetAccessMode().GetMode())
	n.lock.Lock()
	defer n.lock.Unlock()
	if err := n.publish(source, target, readOnly); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *node) NodeUnpublishVolume(
	_ context.Context, request *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	target, err := cleanTarget(request.GetTargetPath())
	if err != nil {
		return nil, err
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	if err := n.unpublish(target); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (n *node) publish(source, target string, readOnly bool) error {
	mounted, mountedReadOnly, err := n.mounts.state(target)
	switch {
	case err != nil:
		return status.Error(codes.Internal, err.Error())
	case mounted && mountedReadOnly != readOnly:
		return status.Errorf(codes.AlreadyExists, "%s is mounted already, with read-only %t instead of %t", target, mountedReadOnly, readOnly)
	case mounted:
		return nil
	}
	if err := errors.Join(makeVolume(n.folder, source), os.MkdirAll(target, 0o750)); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if err := n.mounts.bind(source, target, readOnly); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func (n *node) unpublish(target string) error {
	for {
		mounted, _, err := n.mounts.state(target)
		if err != nil {
			return err
		}
		if !mounted {
			break
		}
		if err := n.mounts.unmount(target); err != nil {
			return err
		}
	}
	// Remove takes an empty folder only: data in it would mean that it was never mounted.
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// makeVolume makes the folder of a volume that has none yet, open to every user as a file system with a fitting root directory would be.
func makeVolume(base, path string) error {
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	relative, err := filepath.Rel(base, path)
	if err != nil {
		return err
	}
	for _, part := range splitPath(relative) {
		base = filepath.Join(base, part)
		err := os.Mkdir(base, 0o777)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		// The process's umask has narrowed the mode.
		if err := errors.Join(err, os.Chmod(base, 0o777)); err != nil {
			return err
		}
	}
	return nil
}

func splitPath(relative string) []string {
	parent, name := filepath.Split(relative)
	if parent == "" {
		return []string{name}
	}
	return append(splitPath(filepath.Clean(parent)), name)
}

func cleanTarget(target string) (string, error) {
	if !filepath.IsAbs(target) {
		return "", status.Errorf(codes.InvalidArgument, "target_path %q is not absolute", target)
	}
	return filepath.Clean(target), nil
}

func readsOnly(mode csi.VolumeCapability_AccessMode_Mode) bool {
	return mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY || mode == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
}
