package nodeimage

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// kubernetesPrograms returns the Kubernetes programs of every node image. kube-proxy has a main package of Slipway
// (images/node/kube-proxy). The functions in this file fill the plan of a build. The builder selects programs by their
// names, so a change of a name needs a change there.
func kubernetesPrograms(v versions, m GoModule, proxyMain string) []GoProgram {
	stamp := VersionFlags(v.Kubernetes)
	var out []GoProgram
	for _, name := range []string{"kubelet", "kubeadm", "kubectl"} {
		out = append(out, GoProgram{Name: name, Package: "k8s.io/kubernetes/cmd/" + name, Module: m, Stamp: stamp})
	}
	m.Files = map[string]string{"main.go": proxyMain}
	return append(out, GoProgram{Name: "kube-proxy", Package: ".", Module: m, Stamp: stamp})
}

const containerd = "github.com/containerd/containerd/v2"

// containerdPrograms returns the container runtime of every node image; runc needs C and comes from Debian. Nodes of
// all Kubernetes versions have the same container runtime, built with the modules of the default version, because
// modules of other versions may be too new for it.
func containerdPrograms(modules ModuleMaker) ([]GoProgram, error) {
	m, err := modules.Make(GoRequirement{Path: containerd, Version: containerdVersion})
	var out []GoProgram
	for _, name := range containerdNames() {
		out = append(out, GoProgram{
			Name: name, Package: containerd + "/cmd/" + name, Module: m, Stamp: []string{containerd + "/version.Version=" + containerdVersion},
		})
	}
	return out, err
}

func containerdNames() []string { return []string{"containerd", "containerd-shim-runc-v2", "ctr"} }

// controlPlanePrograms returns the programs of a control plane, for node images on which kubeadm runs one.
func controlPlanePrograms(v versions, m GoModule) []GoProgram {
	stamp := VersionFlags(v.Kubernetes)
	var out []GoProgram
	for _, name := range controlPlaneNames() {
		out = append(out, GoProgram{Name: name, Package: "k8s.io/kubernetes/cmd/" + name, Module: m, Stamp: stamp})
	}
	return append(out, GoProgram{Name: "etcd", Package: "go.etcd.io/etcd/server/v3", Module: m})
}

func controlPlaneNames() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

// toolPrograms returns the two programs whose source is in this repository. They import only the standard library.
func toolPrograms(sources fs.FS) ([]GoProgram, error) {
	var out []GoProgram
	for _, name := range []string{"pause", "cniconf"} {
		files, err := sourceFiles(sources, name)
		if err != nil {
			return nil, fmt.Errorf("reading the source of %s: %w", name, err)
		}
		out = append(out, GoProgram{Name: name, Package: ".", Module: GoModule{Mod: "module slipway.dev/node/" + name + "\n\ngo 1.26.0\n", Files: files}})
	}
	return out, nil
}

// sourceFiles returns the Go files of a directory without tests.
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
