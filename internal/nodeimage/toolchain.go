package nodeimage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// GoProgram is a program to compile. The plan of a node image and package versions fill it in.
type GoProgram struct {
	Name string
	// Package is the main package: an import path, or "." for the module's own.
	Package string
	Module  GoModule
	// Stamp contains the variables that the linker sets, as name=value.
	Stamp []string
}

// GoToolchain is the Go toolchain of the machine, with which builds of node images and of control plane programs
// (package versions) download modules and compile. Only this package runs Go commands, which a test checks;
// [BuildCache.goCommand] has the reason.
type GoToolchain struct {
	Version string
	Store   BuildCache
}

// goEnvironment makes builds independent of the caller's workspace and of C. Other settings, such as proxy and caches,
// are the user's.
func goEnvironment() []string {
	return []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod", "GOOS=linux", "GOARCH=" + runtime.GOARCH}
}

const (
	// modulesOn enables Go modules regardless of the caller's environment.
	modulesOn = "GO111MODULE=on"
	// ownToolchain makes Go use the installed toolchain.
	ownToolchain = "GOTOOLCHAIN=local"
	// noModule is the go.mod of the directory for commands that do not concern a module.
	noModule = "module slipway.dev/nothing\n\ngo 1.21\n"
)

// goCommand runs a go command that does not concern the module of a directory, such as a query for a version. Go
// applies the go.mod of its working directory or of a parent directory, which can even select another toolchain.
// Therefore the command runs in a directory with its own go.mod that only the user can write to, never in the directory
// for temporary files or in the caller's working directory.
func (s BuildCache) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	dir := filepath.Join(s.Dir, "go-commands")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating a directory for Go commands: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { // fails if it belongs to another user
		return nil, fmt.Errorf("creating a directory for Go commands: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(noModule), 0o600); err != nil {
		return nil, fmt.Errorf("creating a directory for Go commands: %w", err)
	}
	env := append(goEnvironment(), modulesOn)
	if args[0] != "mod" { // a module that needs a newer Go than the installed one may be downloaded with that, if the user's settings allow it
		env = append(env, ownToolchain)
	}
	return command{Dir: dir, Env: env, Args: append([]string{"go"}, args...)}.Run(ctx)
}

// CacheFolder returns the user's Go build cache directory. Empty: unknown. Package versions checks the free space there
// after a failed build.
func (t GoToolchain) CacheFolder(ctx context.Context) string {
	out, err := t.Store.goCommand(ctx, "env", "GOCACHE")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// NewToolchain detects the Go toolchain. Each build calls it once it holds the lock of the cache.
func NewToolchain(ctx context.Context, s BuildCache) (GoToolchain, error) {
	out, err := s.goCommand(ctx, "env", "GOVERSION")
	return GoToolchain{Version: strings.TrimSpace(string(out)), Store: s}, err
}

// Download downloads a module and returns the directory of its source. Builds call it to read versions and main
// packages.
func (t GoToolchain) Download(ctx context.Context, r GoRequirement) (string, error) {
	out, err := t.Store.goCommand(ctx, "mod", "download", "-json", r.Path+"@"+r.Version)
	if err != nil {
		return "", fault.New(fault.Invalid, "ModuleNotFound", "the module %s has no version %s that can be downloaded; check the version and the network (go env GOPROXY)", r.Path, r.Version).From(err)
	}
	var answer struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", fmt.Errorf("reading the output of go mod download: %w", err)
	}
	return answer.Dir, parseSums(knownSums).checkDownload(r, answer.Sum)
}

// arguments returns the go build arguments for a program. Symbols are stripped, because they double the size of an
// image.
func (p GoProgram) arguments() []string {
	flags := []string{"-s", "-w"}
	for _, v := range p.Stamp {
		flags = append(flags, "-X", v)
	}
	return []string{"go", "build", "-buildvcs=false", "-ldflags", strings.Join(flags, " ")}
}

// Key returns a hash of all inputs of a program.
func (t GoToolchain) Key(p GoProgram) string {
	parts := []string{t.Version, p.Name, p.Package, p.Module.key()}
	return keyOf(append(append(parts, p.arguments()...), goEnvironment()...)...)
}

// Build compiles the program and returns the path of its file.
func (t GoToolchain) Build(ctx context.Context, p GoProgram) (string, error) {
	return t.Store.Run(ctx, BuildStep{Name: p.Name, Key: t.Key(p), Make: func(ctx context.Context, file string) error {
		dir, err := t.writeModule(p.Module)
		if err != nil {
			return err
		}
		_, err = command{Dir: dir, Env: append(goEnvironment(), modulesOn), Args: append(p.arguments(), "-v", "-o", file, p.Package), Lines: t.heartbeat()}.Run(ctx)
		if err != nil {
			return err
		}
		after, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return parseSums(knownSums).check(p.Module, string(after))
	}})
}

// progressInterval is the interval of progress lines in a long build.
const progressInterval = 15 * time.Second

// heartbeat prints the number of compiled packages periodically.
func (t GoToolchain) heartbeat() func(packages int) {
	began, told := time.Now(), time.Now()
	return func(packages int) {
		if now := time.Now(); now.Sub(told) >= progressInterval {
			told = now
			_, _ = fmt.Fprintf(t.Store.Progress, "\n  %d packages compiled after %.0f s ", packages, now.Sub(began).Seconds())
		}
	}
}

// Versions returns the versions of a module that the module proxy offers. A proxy that does not respond is an error.
// Package versions calls it to explain a failed download.
func (t GoToolchain) Versions(ctx context.Context, path string) ([]string, error) {
	out, err := t.Store.goCommand(ctx, "list", "-m", "-versions", "-f", "{{join .Versions \"\\n\"}}", path)
	return strings.Fields(string(out)), err
}

// writeModule writes a module with the known checksums to a directory of its own. Go adds modules without a known
// checksum to the go.sum there: it verifies them with the public checksum database the first time and with go.sum
// afterwards.
func (t GoToolchain) writeModule(m GoModule) (string, error) {
	dir := filepath.Join(t.Store.Dir, "module-"+m.key()[:16])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range m.Files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	if err := placeSums(dir, m); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "go.mod")
	if _, err := os.Stat(file); err == nil {
		return dir, nil
	}
	return dir, os.WriteFile(file, []byte(m.Mod), 0o644)
}

// placeSums writes the go.sum of a module if it differs.
func placeSums(dir string, m GoModule) error {
	file := filepath.Join(dir, "go.sum")
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	want := parseSums(knownSums).initialSums(m, string(before))
	if want == string(before) {
		return nil
	}
	return os.WriteFile(file, []byte(want), 0o644)
}

// VersionFlags returns the linker variables for the version of Kubernetes programs.
func VersionFlags(kubernetes string) []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(kubernetes, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const component = "k8s.io/component-base/version."
	return []string{component + "gitVersion=" + kubernetes, component + "gitMajor=" + major, component + "gitMinor=" + minor}
}
