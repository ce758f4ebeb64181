package apiserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// BinaryVariable is the environment variable with the path of a slipway binary to use instead of building one. The
// Makefile sets it for the end-to-end tests.
const BinaryVariable = "SLIPWAY_BIN"

// stamp holds the linker flags, as in the Makefile. The version is the Kubernetes version of the modules in go.mod; an
// update changes both places.
const stamp = "-s -w" +
	" -X k8s.io/component-base/version.gitVersion=v1.36.3" +
	" -X k8s.io/component-base/version.gitMajor=1" +
	" -X k8s.io/component-base/version.gitMinor=36"

// Binary returns the path of a slipway binary: the one from SLIPWAY_BIN, or else one built from this module into the
// user's cache folder. [Start] and [Main] run it. Concurrent processes wait for one build; the Go tool decides whether
// to rebuild.
func Binary() (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return filepath.Abs(path)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	folder := filepath.Join(cache, "slipway", "testkit")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(folder, "build.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(folder, "slipway")
	return path, build(root, path)
}

// build writes the binary next to path and renames it, because a previous one may be running.
func build(root, path string) error {
	fresh := path + ".new"
	// Build without the profile to reuse the packages compiled for the tests; with it, everything would be compiled
	// again.
	cmd := exec.Command("go", "build", "-buildvcs=false", "-pgo=off", "-ldflags", stamp, "-o", fresh, "./cmd/slipway")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build slipway: %w\n%s", err, out)
	}
	return os.Rename(fresh, path)
}

func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/slipwayhq/slipway").Output()
	if err != nil {
		return "", fmt.Errorf("find the module's folder: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
