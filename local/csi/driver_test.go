package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// table is a kernel that mounts nothing.
type table map[string]bool

func (t table) state(target string) (bool, bool, error) {
	readOnly, found := t[target]
	return found, readOnly, nil
}
func (t table) bind(_, target string, readOnly bool) error {
	t[target] = readOnly
	return nil
}
func (t table) unmount(target string) error { delete(t, target); return nil }

func publishRequest(handle, target string) *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{
		VolumeId:   handle,
		TargetPath: target,
		VolumeCapability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
		},
	}
}

func TestVolumeHandlesBecomeFoldersOrAreRefusedByName(t *testing.T) {
	for handle, want := range map[string]string{
		"fs-0123456789abcdef0": "/v/fs-0123456789abcdef0",
		"fs-01234567":          "/v/fs-01234567",
		"fs-0123456789abcdef0::fsap-0123456789abcdef0": "/v/fs-0123456789abcdef0/fsap-0123456789abcdef0",
		"":                                "",
		"../etc":                          "",
		"fs-0123456789abcdef0/..":         "",
		"fs-0123456789abcdef0:/data":      "",
		"fs-0123456789abcdef0::../../etc": "",
		"fs-0123456789ABCDEF0":            "",
		"fs-0123456789abcdef0\n":          "",
		"fs-0123456789abcdef0::fsap-0123456789abcdef0::x": "",
	} {
		got, err := volumePath("/v", handle)
		if got != want {
			t.Errorf("%q: got %q, want %q", handle, got, want)
		}
		if want == "" && (err == nil || !strings.Contains(err.Error(), "volumeHandle")) {
			t.Errorf("%q: the error must name the handle, got %v", handle, err)
		}
	}
}

func TestPublishTwiceAndUnpublishTwiceIsTheSameAsOnce(t *testing.T) {
	ctx, kernel, base := context.Background(), table{}, t.TempDir()
	server := &node{id: "node", folder: filepath.Join(base, "fsx"), mounts: kernel}
	target := filepath.Join(base, "pods", "mount")
	request := publishRequest("fs-0123456789abcdef0", target)
	for range 2 {
		if _, err := server.NodePublishVolume(ctx, request); err != nil {
			t.Fatal(err)
		}
	}
	if readOnly, found := kernel[target]; !found || readOnly {
		t.Fatalf("want %s mounted writable, got %v", target, kernel)
	}
	for range 2 {
		if _, err := server.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{TargetPath: target}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(target); !os.IsNotExist(err) || len(kernel) > 0 {
		t.Fatalf("want nothing left, got %v and %v", err, kernel)
	}
	if _, err := os.Stat(filepath.Join(base, "fsx", "fs-0123456789abcdef0")); err != nil {
		t.Fatalf("the volume's data must stay: %v", err)
	}
}

func TestANewVolumeIsOpenToEveryUserAndAnOldOneKeepsItsMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	base := t.TempDir()
	path := filepath.Join(base, "fs-01234567", "fsap-01234567")
	if err := makeVolume(base, path); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{path, filepath.Dir(path)} {
		if mode := permissions(t, folder); mode != 0o777 {
			t.Errorf("%s: got mode %o, want 777", folder, mode)
		}
	}
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := makeVolume(base, path); err != nil {
		t.Fatal(err)
	}
	if mode := permissions(t, path); mode != 0o700 {
		t.Errorf("the user's own mode was changed to %o", mode)
	}
}

func TestReadOnlyComesFromTheRequestOrTheAccessMode(t *testing.T) {
	ctx, base := context.Background(), t.TempDir()
	flagged := publishRequest("fs-01234567", filepath.Join(base, "flagged"))
	flagged.Readonly = true
	reader := publishRequest("fs-01234567", filepath.Join(base, "reader"))
	reader.VolumeCapability.AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	kernel := table{}
	server := &node{folder: filepath.Join(base, "efs"), mounts: kernel}
	for _, request := range []*csi.NodePublishVolumeRequest{flagged, reader} {
		if _, err := server.NodePublishVolume(ctx, request); err != nil {
			t.Fatal(err)
		}
		if !kernel[request.TargetPath] {
			t.Errorf("%s must be read-only", request.TargetPath)
		}
	}
	flagged.Readonly = false
	if _, err := server.NodePublishVolume(ctx, flagged); status.Code(err) != codes.AlreadyExists {
		t.Errorf("a mount of the other kind must be refused, got %v", err)
	}
}

func TestBadRequestsAreRefusedWithTheValueNamed(t *testing.T) {
	server := &node{folder: t.TempDir(), mounts: table{}}
	block := publishRequest("fs-01234567", "/target")
	block.VolumeCapability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	for name, request := range map[string]*csi.NodePublishVolumeRequest{
		"vol-01234567": publishRequest("vol-01234567", "/target"),
		"relative":     publishRequest("fs-01234567", "relative"),
		"fs-01234567":  block,
	} {
		_, err := server.NodePublishVolume(context.Background(), request)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: want InvalidArgument that names it, got %v", name, err)
		}
	}
}

func TestTheKernelMountsWritesThroughAndReadOnly(t *testing.T) {
	// The thread ends with this goroutine, and the namespace and its mounts with it.
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		t.Skipf("no right to make a mount namespace: %v", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	target, source := filepath.Join(base, "a b", "target"), filepath.Join(base, "volumes")
	server := &node{folder: source, mounts: kernelMounts{}}
	for _, readOnly := range []bool{false, true} {
		request := publishRequest("fs-01234567", target)
		request.Readonly = readOnly
		for range 2 {
			if _, err := server.NodePublishVolume(context.Background(), request); err != nil {
				t.Fatal(err)
			}
		}
		err := os.WriteFile(filepath.Join(target, "file"), nil, 0o644)
		if (err != nil) != readOnly {
			t.Errorf("read-only %t: writing gave %v", readOnly, err)
		}
		if _, err := os.Stat(filepath.Join(source, "fs-01234567", "file")); err != nil {
			t.Errorf("what is written must be in the volume's folder: %v", err)
		}
		if err := server.unpublish(target); err != nil {
			t.Fatal(err)
		}
	}
}

func TestThePluginServesBothSocketsAndEndsWhenTheKubeletRefuses(t *testing.T) {
	// Not t.TempDir(): a socket's path has at most 107 bytes, and that one holds the test's name.
	base, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	given := options{
		driver: "fsx.csi.aws.com", nodeID: "node", volumes: base,
		endpoint: filepath.Join(base, "plugins", "csi.sock"), registrationDir: filepath.Join(base, "registry"),
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, given) }()
	registrar := registration.NewRegistrationClient(dial(t, filepath.Join(base, "registry", "fsx.csi.aws.com-reg.sock")))
	info, err := registrar.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.Type != "CSIPlugin" || info.Name != given.driver || info.Endpoint != given.endpoint {
		t.Fatalf("got %v, %v", info, err)
	}
	connection := dial(t, given.endpoint)
	answer, err := csi.NewNodeClient(connection).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{}, grpc.WaitForReady(true))
	if err != nil || answer.NodeId != "node" {
		t.Fatalf("got %v, %v", answer, err)
	}
	if name, err := csi.NewIdentityClient(connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}); err != nil || name.Name != given.driver {
		t.Fatalf("got %v, %v", name, err)
	}
	_, err = registrar.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{Error: "no"})
	if err != nil && status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "refused fsx.csi.aws.com: no") {
		t.Fatalf("want the kubelet's refusal, got %v", err)
	}
}

func TestEveryFlagIsRequired(t *testing.T) {
	all := []string{"--driver=d", "--endpoint=e", "--registration-dir=r", "--volumes=v", "--node-id=n"}
	if _, err := parse(all); err != nil {
		t.Fatal(err)
	}
	for index, flag := range all {
		rest := append(append([]string{}, all[:index]...), all[index+1:]...)
		name, _, _ := strings.Cut(flag, "=")
		if _, err := parse(rest); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: got %v", name, err)
		}
	}
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	connection, err := grpc.NewClient("passthrough:///"+socket, grpc.WithContextDialer(dialer), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func permissions(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}
