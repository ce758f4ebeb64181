package nodeimage

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// program is something to compile.
type program struct {
	name string
	// pkg is the main package: an import path, or "." for the module's own.
	pkg    string
	module goModule
	// stamp are the variables that the linker sets, name=value.
	stamp []string
}

// toolchain is the Go toolchain of the machine.
type toolchain struct {
	version string
	store   store
}

// goEnvironment makes builds independent of the caller's workspace and of C. The rest (proxy, caches) is the user's.
func goEnvironment() []string {
	return []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod", "GOOS=linux", "GOARCH=" + runtime.GOARCH}
}

func newToolchain(ctx context.Context, s store) (toolchain, error) {
	out, err := command{dir: os.TempDir(), env: goEnvironment(), args: []string{"go", "env", "GOVERSION"}}.run(ctx)
	return toolchain{version: strings.TrimSpace(string(out)), store: s}, err
}

// download returns the folder of a module's source.
func (t toolchain) download(ctx context.Context, r requirement) (string, error) {
	out, err := command{dir: os.TempDir(), env: goEnvironment(), args: []string{"go", "mod", "download", "-json", r.Path + "@" + r.Version}}.run(ctx)
	if err != nil {
		return "", fault.New(fault.Invalid, "ModuleNotFound", "the module %s has no version %s that can be had; check the version and the network (go env GOPROXY)", r.Path, r.Version).From(err)
	}
	var answer struct{ Dir string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", fmt.Errorf("reading the answer of go mod download: %w", err)
	}
	return answer.Dir, nil
}

// arguments are those of go build for a program. Symbols are left out: they double the size of an image.
func (p program) arguments() []string {
	flags := []string{"-s", "-w"}
	for _, v := range p.stamp {
		flags = append(flags, "-X", v)
	}
	return []string{"go", "build", "-buildvcs=false", "-ldflags", strings.Join(flags, " ")}
}

// key stands for everything that a program is made from.
func (t toolchain) key(p program) string {
	parts := []string{t.version, p.name, p.pkg, p.module.key()}
	return keyOf(append(append(parts, p.arguments()...), goEnvironment()...)...)
}

// build returns the compiled program.
func (t toolchain) build(ctx context.Context, p program) (string, error) {
	return t.store.run(ctx, step{name: p.name, key: t.key(p), make: func(ctx context.Context, file string) error {
		dir, err := t.place(p.module)
		if err != nil {
			return err
		}
		_, err = command{dir: dir, env: goEnvironment(), args: append(p.arguments(), "-o", file, p.pkg)}.run(ctx)
		return err
	}})
}

// place writes a module to a folder of its own. go.sum grows there: Go checks what it downloads against the public
// checksum database the first time and against go.sum afterwards.
func (t toolchain) place(m goModule) (string, error) {
	dir := filepath.Join(t.store.dir, "module-"+m.key()[:16])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range m.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	file := filepath.Join(dir, "go.mod")
	if _, err := os.Stat(file); err == nil {
		return dir, nil
	}
	return dir, os.WriteFile(file, []byte(m.Mod), 0o644)
}

// stamp is how Kubernetes' programs know their version.
func (v versions) stamp() []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(v.Kubernetes, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const component = "k8s.io/component-base/version."
	return []string{component + "gitVersion=" + v.Kubernetes, component + "gitMajor=" + major, component + "gitMinor=" + minor}
}

// kubernetesPrograms returns the programs of Kubernetes that every node has; kube-proxy's main package is Slipway's own.
func kubernetesPrograms(v versions, m goModule, proxyMain string) []program {
	stamp := v.stamp()
	var out []program
	for _, name := range []string{"kubelet", "kubeadm", "kubectl"} {
		out = append(out, program{name: name, pkg: "k8s.io/kubernetes/cmd/" + name, module: m, stamp: stamp})
	}
	m.Files = map[string]string{"main.go": proxyMain}
	return append(out, program{name: "kube-proxy", pkg: ".", module: m, stamp: stamp})
}

// controlPlanePrograms returns the programs of a control plane.
func controlPlanePrograms(v versions, m goModule) []program {
	stamp := v.stamp()
	var out []program
	for _, name := range controlPlaneNames() {
		out = append(out, program{name: name, pkg: "k8s.io/kubernetes/cmd/" + name, module: m, stamp: stamp})
	}
	return append(out, program{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", module: m})
}

func controlPlaneNames() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

// toolPrograms returns the two programs whose source is part of this repository. They import only Go's own packages.
func toolPrograms(sources fs.FS) ([]program, error) {
	var out []program
	for _, name := range []string{"pause", "cniconf"} {
		files, err := sourceFiles(sources, name)
		if err != nil {
			return nil, fmt.Errorf("reading the source of %s: %w", name, err)
		}
		out = append(out, program{name: name, pkg: ".", module: goModule{Mod: "module slipway.dev/node/" + name + "\n\ngo 1.26.0\n", Files: files}})
	}
	return out, nil
}

// sourceFiles returns the Go files of a folder that are not tests.
func sourceFiles(sources fs.FS, dir string) (map[string]string, error) {
	names, err := fs.Glob(sources, dir+"/*.go")
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return nil, err
		}
		files[path.Base(name)] = string(text)
	}
	return files, nil
}
