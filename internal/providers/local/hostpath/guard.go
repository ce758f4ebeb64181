package hostpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Guard refuses places of the host.
type Guard struct {
	// Reserved are files and folders besides those that are refused on any host. They need not exist.
	Reserved []string
}

// refused are the places that are refused on any host: file systems of the kernel, and where programs have their sockets.
func refused() []string { return []string{"/proc", "/sys", "/dev", "/run", "/var/run"} }

// Resolve returns the path without symbolic links. The error is a sentence for people: the path does not lead to a file or
// folder, or to one that no node may mount.
func (g Guard) Resolve(path string) (string, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("path %q cannot be mounted: name a file or folder of this host by its absolute path", path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("path %s cannot be mounted: it does not exist on this host", path)
	case err != nil:
		return "", fmt.Errorf("path %s cannot be mounted: it cannot be read on this host", path)
	}
	info, err := os.Lstat(resolved)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return "", fmt.Errorf("path %s cannot be mounted: it is neither a folder nor a regular file", path)
	}
	for _, r := range append(refused(), g.Reserved...) {
		for _, place := range places(r) {
			if contains(place, resolved) || contains(resolved, place) {
				return "", fmt.Errorf("path %s cannot be mounted: it is, holds or lies in a place of this host that no node may see, whatever the operator allows", path)
			}
		}
	}
	return resolved, nil
}

// places returns a reserved path as it is written and as it leads.
func places(path string) []string {
	out := []string{filepath.Clean(path)}
	if resolved, err := filepath.EvalSymlinks(path); err == nil && resolved != out[0] {
		out = append(out, resolved)
	}
	return out
}

// contains reports whether the inner path is the outer one or lies in it.
func contains(outer, inner string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+"/")
}
