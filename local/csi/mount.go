package main

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"syscall"
)

// mounts is what the node needs of the kernel; tests put a map in its place where they lack the right to mount.
type mounts interface {
	// state tells whether something is mounted exactly at target, and whether read-only.
	state(target string) (mounted, readOnly bool, err error)
	bind(source, target string, readOnly bool) error
	unmount(target string) error
}

type kernelMounts struct{}

func (kernelMounts) state(target string) (mounted, readOnly bool, err error) {
	// Of this thread: the process's own table would be that of its first thread.
	table, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return false, false, err
	}
	defer table.Close()
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		// Fields: id, parent, device, root, mount point, options, ... A later line covers an earlier one.
		fields := strings.Fields(lines.Text())
		if len(fields) > 5 && unescape(fields[4]) == target {
			mounted, readOnly = true, strings.HasPrefix(fields[5]+",", "ro,")
		}
	}
	return mounted, readOnly, lines.Err()
}

func (kernelMounts) bind(source, target string, readOnly bool) error {
	if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
		return &os.PathError{Op: "mount", Path: target, Err: err}
	}
	if !readOnly {
		return nil
	}
	// The kernel takes "read-only" of a bind mount only in a second call.
	if err := syscall.Mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return errors.Join(&os.PathError{Op: "remount", Path: target, Err: err}, kernelMounts{}.unmount(target))
	}
	return nil
}

func (kernelMounts) unmount(target string) error {
	const noFollow = 0x8 // UMOUNT_NOFOLLOW
	if err := syscall.Unmount(target, noFollow); err != nil {
		return &os.PathError{Op: "unmount", Path: target, Err: err}
	}
	return nil
}

// unescape undoes what the kernel does to blanks and backslashes in mountinfo.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
