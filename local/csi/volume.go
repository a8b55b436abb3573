package main

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// Ids as AWS makes them: 8 hexadecimal digits once, 17 now.
var handlePattern = regexp.MustCompile(`^(fs-[0-9a-f]{8,40})(?:::(fsap-[0-9a-f]{8,40}))?$`)

// volumePath returns the folder of a volume below base: one per file system, below it one per access point.
func volumePath(base, handle string) (string, error) {
	parts := handlePattern.FindStringSubmatch(handle)
	if parts == nil {
		return "", fmt.Errorf("volumeHandle %q is neither fs-<id> nor fs-<id>::fsap-<id>, the two forms that the local stack mounts", handle)
	}
	if parts[2] == "" {
		return filepath.Join(base, parts[1]), nil
	}
	return filepath.Join(base, parts[1], parts[2]), nil
}
