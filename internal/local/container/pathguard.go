package container

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// pathGuard refuses paths of this host that no node may mount. [Engine.ResolveMount] checks each mount of a new machine
// with it. It does not check the permissions of users: the operator's policy is applied to the resolved path.
type pathGuard struct {
	// Reserved lists additional refused files and directories. They need not exist.
	Reserved []string
}

// refusedPaths lists the paths that are refused on any host: kernel file systems and directories with sockets of
// programs.
func refusedPaths() []string { return []string{"/proc", "/sys", "/dev", "/run", "/var/run"} }

// Resolve returns the path without symbolic links. The error is a message for the user if the path cannot be mounted:
// it leads to no file or directory, or to a refused one. mounts.go calls it for each mount.
func (g pathGuard) Resolve(path string) (string, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", errors.New("it is not an absolute path on this host")
	}
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New("it does not exist on this host")
	case err != nil:
		return "", errors.New("it cannot be read on this host")
	}
	info, err := os.Lstat(resolved)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return "", errors.New("it is neither a directory nor a regular file")
	}
	for _, r := range append(refusedPaths(), g.Reserved...) {
		for _, place := range pathVariants(r) {
			if contains(place, resolved) || contains(resolved, place) {
				return "", errors.New("it overlaps a path of this host that no node may mount, even if the operator allows it")
			}
		}
	}
	return resolved, nil
}

// pathVariants returns a reserved path as written and with symbolic links resolved.
func pathVariants(path string) []string {
	out := []string{filepath.Clean(path)}
	if resolved, err := filepath.EvalSymlinks(path); err == nil && resolved != out[0] {
		out = append(out, resolved)
	}
	return out
}

// contains reports whether the inner path equals the outer path or is below it.
func contains(outer, inner string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+"/")
}
