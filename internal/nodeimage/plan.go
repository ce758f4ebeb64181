package nodeimage

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/slipwayhq/slipway/images/node"
)

// layout changes when images from the same inputs would be put together differently than before.
const layout = "1"

// sources are the files of images/node.
func sources() embed.FS { return node.Sources }

// plan is everything an image is made from. Making a plan downloads the sources of modules and compiles nothing.
type plan struct {
	versions versions
	// programs in the order in which they are built.
	programs []program
	system   userland
	network  userland
	key      string
}

// newPlan reads the sources and decides what the image is made from.
func newPlan(ctx context.Context, t toolchain, o Options) (plan, error) {
	var p plan
	if err := p.readPrograms(ctx, t, o); err != nil {
		return plan{}, err
	}
	for _, u := range []struct {
		to            *userland
		list, variant string
	}{{&p.system, "packages.txt", "minbase"}, {&p.network, "packages-network.txt", "extract"}} {
		text, err := fs.ReadFile(sources(), u.list)
		if err != nil {
			return plan{}, err
		}
		*u.to = userland{name: "debian-" + u.variant + ".tar", packages: lines(string(text)), variant: u.variant}
	}
	embedded, err := treeKey(sources())
	if err != nil {
		return plan{}, err
	}
	parts := []string{layout, o.role(), runtime.GOARCH, p.versions.Kubernetes, embedded, p.system.key(), p.network.key()}
	for _, prog := range p.programs {
		parts = append(parts, t.key(prog))
	}
	p.key = keyOf(parts...)
	return p, nil
}

// readPrograms finds versions and go.mod in the sources of Kubernetes, CoreDNS and flannel.
func (p *plan) readPrograms(ctx context.Context, t toolchain, o Options) error {
	kubernetes := requirement{"k8s.io/kubernetes", o.KubernetesVersion}
	dir, err := t.download(ctx, kubernetes)
	if err != nil {
		return err
	}
	constants, err := os.ReadFile(filepath.Join(dir, "cmd/kubeadm/app/constants/constants.go"))
	if err != nil {
		return fmt.Errorf("reading the source of kubeadm: %w", err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return fmt.Errorf("reading the source of Kubernetes: %w", err)
	}
	if p.versions, err = versionsOf(o.KubernetesVersion, string(constants)); err != nil {
		return err
	}
	pins, err := pinsFor(o.KubernetesVersion)
	if err != nil {
		return err
	}
	modules := moduleMaker{kubernetes: o.KubernetesVersion, mod: mod, pins: pins}
	main, err := modules.make(kubernetes)
	if err != nil {
		return err
	}
	proxy, err := fs.ReadFile(sources(), "kube-proxy/main.go.embed")
	if err != nil {
		return err
	}
	p.programs = kubernetesPrograms(p.versions, main, string(proxy))
	others, err := p.otherPrograms(ctx, t, modules)
	if err != nil {
		return err
	}
	p.programs = append(p.programs, others...)
	if o.ControlPlane {
		p.programs = append(p.programs, controlPlanePrograms(p.versions, main)...)
	}
	return nil
}

// otherPrograms are CoreDNS, flanneld and the tools. They are built with the versions of modules that Kubernetes is
// built with, which saves compiling most of them twice.
func (p *plan) otherPrograms(ctx context.Context, t toolchain, modules moduleMaker) ([]program, error) {
	coredns, err := mainOf(ctx, t, requirement{"github.com/coredns/coredns", p.versions.CoreDNS}, "core/plugin/zplugin.go")
	if err != nil {
		return nil, err
	}
	if coredns.source, err = corednsMain(coredns.source); err != nil {
		return nil, err
	}
	flannel, err := mainOf(ctx, t, requirement{"github.com/flannel-io/flannel", FlannelVersion}, "main.go")
	if err != nil {
		return nil, err
	}
	flannel.source = flannelMain(flannel.source)
	tools, err := toolPrograms(sources())
	if err != nil {
		return nil, err
	}
	dns := program{name: "coredns", pkg: "."}
	if dns.module, err = modules.withMain(coredns); err != nil {
		return nil, err
	}
	net := program{name: "flanneld", pkg: ".", stamp: []string{"github.com/flannel-io/flannel/pkg/version.Version=" + FlannelVersion}}
	if net.module, err = modules.withMain(flannel); err != nil {
		return nil, err
	}
	return append([]program{dns, net}, tools...), nil
}

// mainSource is a Go file of a module.
type mainSource struct {
	module requirement
	source string
}

func mainOf(ctx context.Context, t toolchain, r requirement, file string) (mainSource, error) {
	dir, err := t.download(ctx, r)
	if err != nil {
		return mainSource{}, err
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return mainSource{}, fmt.Errorf("reading the source of %s: %w", r.Path, err)
	}
	return mainSource{module: r, source: string(text)}, nil
}

// pinsFor returns the versions that Slipway itself is built with, if it is built with that version of Kubernetes.
func pinsFor(kubernetes string) (map[string]string, error) {
	if kubernetes != DefaultVersion {
		return nil, nil
	}
	text, err := fs.ReadFile(sources(), "pins.txt")
	if err != nil {
		return nil, err
	}
	return parsePins(string(text))
}

// treeKey stands for the names and contents of all files of a tree.
func treeKey(tree fs.FS) (string, error) {
	var parts []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		parts = append(parts, name, string(data))
		return err
	})
	return keyOf(parts...), err
}
