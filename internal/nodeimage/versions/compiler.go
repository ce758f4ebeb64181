package versions

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage"
	"github.com/slipwayhq/slipway/internal/version"
)

// Compiler is the [Builder] of `slipway versions add`: it compiles a release from its Go modules, together with the
// Slipway packages of the program.
type Compiler struct {
	// Sources contains the Slipway packages of the program, by their directory in the repository; Package is the
	// directory of its main package. `slipway versions add` passes the sources that are embedded in the binary.
	Sources fs.FS
	Package string
	// CacheDir contains the cached results. Default: slipway/kubernetes in the user's cache directory.
	CacheDir string
	Progress io.Writer
}

const (
	kubernetes = "k8s.io/kubernetes"
	// module is Slipway's own module path, which its packages import.
	module = "github.com/slipwayhq/slipway"
	// neededSpace is the disk space that a build needs in the caches of Go, in bytes. A build that shares nothing with
	// earlier ones needs more.
	neededSpace = 3 << 30
	// fullDiskThreshold is the free disk space, in bytes, below which a failed build is attributed to a full disk.
	fullDiskThreshold = 64 << 20
)

// Build implements [Builder].
func (c Compiler) Build(ctx context.Context, v string) (file, compiler string, err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", "", fault.New(fault.Invalid, reasonNoGo, "compiling Kubernetes needs the Go toolchain, version 1.26 or newer, in PATH: install it as the Go project describes, or import an archive that `slipway versions export` wrote on another host")
	}
	if c.CacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return "", "", fmt.Errorf("find the cache folder: %w", err)
		}
		c.CacheDir = filepath.Join(dir, "slipway", "kubernetes")
	}
	store := nodeimage.BuildCache{Dir: c.CacheDir, Progress: c.Progress}
	unlock, err := store.Lock()
	if err != nil {
		return "", "", err
	}
	defer unlock()
	t, err := nodeimage.NewToolchain(ctx, store)
	if err != nil {
		return "", "", err
	}
	p, err := c.program(ctx, t, v)
	if err != nil {
		return "", "", err
	}
	if file, err = t.Build(ctx, p); err != nil {
		return "", "", c.afterFailure(ctx, t, v, err)
	}
	return file, t.Version, nil
}

// afterFailure adds the cause to the error of a failed build, if the cause can be determined.
func (c Compiler) afterFailure(ctx context.Context, t nodeimage.GoToolchain, v string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, dir := range []string{c.CacheDir, t.CacheFolder(ctx), os.TempDir()} {
		if free, known := freeSpace(dir); known && free < fullDiskThreshold {
			return fault.New(fault.Invalid, reasonDiskFull, "there is no space left on the disk of %s, compiling Kubernetes takes up to %d GiB; free some, and run the command again: it continues", dir, neededSpace>>30).From(err)
		}
	}
	return fmt.Errorf("compiling Kubernetes %s: %w", v, err)
}

// freeSpace returns the free space of a disk, in bytes.
func freeSpace(dir string) (free uint64, known bool) {
	var st unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}

// program returns the program to compile for a version.
func (c Compiler) program(ctx context.Context, t nodeimage.GoToolchain, v string) (nodeimage.GoProgram, error) {
	dir, err := t.Download(ctx, nodeimage.GoRequirement{Path: kubernetes, Version: v})
	if err != nil {
		return nodeimage.GoProgram{}, explainDownloadError(ctx, t, v, err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nodeimage.GoProgram{}, fmt.Errorf("read the source of Kubernetes %s: %w", v, err)
	}
	m, err := nodeimage.ModuleMaker{Path: module, Kubernetes: v, Mod: mod}.Make(nodeimage.GoRequirement{Path: kubernetes, Version: v})
	if err != nil {
		return nodeimage.GoProgram{}, err
	}
	if m.Files, err = c.files(); err != nil {
		return nodeimage.GoProgram{}, err
	}
	stamp := append(nodeimage.VersionFlags(v), "k8s.io/client-go/pkg/version.gitVersion="+v)
	return nodeimage.GoProgram{Name: "control-plane-" + v, Package: "./" + c.Package, Module: m, Stamp: stamp}, nil
}

// files returns the sources without tests.
func (c Compiler) files() (map[string]string, error) {
	out := map[string]string{}
	err := fs.WalkDir(c.Sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(c.Sources, name)
		out[name] = string(text)
		return err
	})
	return out, err
}

// explainDownloadError distinguishes a version that does not exist from a proxy that does not respond.
func explainDownloadError(ctx context.Context, t nodeimage.GoToolchain, v string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	all, listing := t.Versions(ctx, kubernetes)
	if listing != nil {
		return fault.New(fault.Unreachable, reasonProxy, "the source of Kubernetes %s cannot be downloaded: the Go module proxy does not respond (see go env GOPROXY); "+
			"make it reachable, or import an archive that `slipway versions export` wrote on another host", v).From(err)
	}
	if slices.Contains(all, v) {
		return fmt.Errorf("downloading the source of Kubernetes %s: %w", v, err)
	}
	return fault.New(fault.Invalid, reasonVersion, "there is no Kubernetes %s%s", v, newestOf(all, v)).From(err)
}

// newestOf returns a hint about the newest release of the minor version, if there is one.
func newestOf(all []string, v string) string {
	asked, err := version.Parse(v)
	if err != nil {
		return ""
	}
	newest := ""
	for _, candidate := range all {
		parsed, err := version.Parse(candidate)
		if err == nil && parsed.SameMinor(asked) && !strings.Contains(candidate, "-") && (newest == "" || compareVersions(candidate, newest) > 0) {
			newest = candidate
		}
	}
	if newest == "" {
		return ""
	}
	return "; the newest release of that minor version is " + newest
}
