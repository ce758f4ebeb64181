package nodeimage

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/images/node"
	"github.com/slipwayhq/slipway/internal/version"
)

// layout must be increased when the same inputs result in a different image.
const layout = "3"

// sources returns the files of images/node.
func sources() embed.FS { return node.Sources }

// plan contains all inputs of an image. [Build] compares its key with the label of an existing image before it builds
// anything. Creating a plan downloads the sources of modules and compiles nothing.
type plan struct {
	versions versions
	// programs, in build order.
	programs []GoProgram
	system   userland
	network  userland
	key      string
}

// newPlan reads the sources and computes the inputs of the image.
func newPlan(ctx context.Context, t GoToolchain, o Options) (plan, error) {
	var p plan
	if err := p.readPrograms(ctx, t, o); err != nil {
		return plan{}, err
	}
	of, err := lastRefresh(o.CacheDir, o.Refresh, time.Now())
	if err != nil {
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
		*u.to = userland{name: "debian-" + u.variant + ".tar", packages: contentLines(string(text)), variant: u.variant, refreshedAt: of}
	}
	embedded, err := treeKey(sources())
	if err != nil {
		return plan{}, err
	}
	parts := []string{layout, o.role(), runtime.GOARCH, p.versions.Kubernetes, embedded, p.system.key(), p.network.key()}
	for _, prog := range p.programs {
		parts = append(parts, t.Key(prog))
	}
	p.key = keyOf(parts...)
	return p, nil
}

// retain keeps the programs and Debian systems of an image that is up to date in the cache: a bundle is built from them, and would
// compile Kubernetes again without them.
func (p plan) retain(t GoToolchain) {
	steps := []BuildStep{{Name: p.system.name, Key: p.system.key()}, {Name: p.network.name, Key: p.network.key()}}
	for _, program := range p.programs {
		steps = append(steps, BuildStep{Name: program.Name, Key: t.Key(program)})
	}
	t.Store.retain(steps...)
}

// readPrograms reads versions and go.mod from the sources of Kubernetes, CoreDNS and flannel.
func (p *plan) readPrograms(ctx context.Context, t GoToolchain, o Options) error {
	src, err := readSource(ctx, t, o.KubernetesVersion)
	if err != nil {
		return err
	}
	own := src
	if o.KubernetesVersion != DefaultVersion {
		if own, err = readSource(ctx, t, DefaultVersion); err != nil {
			return err
		}
	}
	p.versions = src.versions
	main, err := src.modules.Make(GoRequirement{Path: kubernetes, Version: o.KubernetesVersion})
	if err != nil {
		return err
	}
	proxy, err := fs.ReadFile(sources(), "kube-proxy/main.go.embed")
	if err != nil {
		return err
	}
	p.programs = kubernetesPrograms(p.versions, main, string(proxy))
	others, err := p.otherPrograms(ctx, t, src.modules)
	if err != nil {
		return err
	}
	runtimes, err := containerdPrograms(own.modules)
	if err != nil {
		return err
	}
	p.programs = slices.Concat(p.programs, others, runtimes)
	if o.ControlPlane {
		p.programs = append(p.programs, controlPlanePrograms(p.versions, main)...)
	}
	if o.KubernetesVersion != DefaultVersion {
		return p.addOwn(ctx, t, own, string(proxy))
	}
	return nil
}

// addOwn adds the programs that control planes of Slipway's own version run on nodes of other versions: kube-proxy,
// which control planes on machines upgrade before their workers, and the CoreDNS of both kinds of control planes.
func (p *plan) addOwn(ctx context.Context, t GoToolchain, own kubernetesSource, proxyMain string) error {
	main, err := own.modules.Make(GoRequirement{Path: kubernetes, Version: DefaultVersion})
	if err != nil {
		return err
	}
	main.Files = map[string]string{"main.go": proxyMain}
	p.versions.OwnKubeProxy = DefaultVersion
	p.programs = append(p.programs, GoProgram{Name: ownKubeProxy, Package: ".", Module: main, Stamp: VersionFlags(DefaultVersion)})
	if own.versions.CoreDNS == p.versions.CoreDNS {
		return nil
	}
	p.versions.OwnCoreDNS = own.versions.CoreDNS
	dns, err := corednsProgram(ctx, t, own.modules, own.versions.CoreDNS)
	dns.Name = ownCoreDNS
	p.programs = append(p.programs, dns)
	return err
}

const (
	kubernetes = "k8s.io/kubernetes"
	// ownCoreDNS and ownKubeProxy are the names of the second CoreDNS and kube-proxy of a node image.
	ownCoreDNS   = "coredns-own"
	ownKubeProxy = "kube-proxy-own"
)

// kubernetesSource contains the data that a node image needs from the source of a Kubernetes version.
type kubernetesSource struct {
	versions versions
	modules  ModuleMaker
}

func readSource(ctx context.Context, t GoToolchain, version string) (s kubernetesSource, err error) {
	dir, err := t.Download(ctx, GoRequirement{Path: kubernetes, Version: version})
	if err != nil {
		return s, err
	}
	constants, err := os.ReadFile(filepath.Join(dir, "cmd/kubeadm/app/constants/constants.go"))
	if err != nil {
		return s, fmt.Errorf("reading the source of kubeadm: %w", err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return s, fmt.Errorf("reading the source of Kubernetes: %w", err)
	}
	if s.versions, err = versionsOf(version, string(constants)); err != nil {
		return s, err
	}
	pins, err := pinsFor(version)
	s.modules = ModuleMaker{Kubernetes: version, Mod: mod, Pins: pins, Sealed: version == DefaultVersion}
	return s, err
}

// otherPrograms returns CoreDNS, flanneld and the tools. They are built with the module versions of Kubernetes, so that
// most modules are compiled only once.
func (p *plan) otherPrograms(ctx context.Context, t GoToolchain, modules ModuleMaker) ([]GoProgram, error) {
	dns, err := corednsProgram(ctx, t, modules, p.versions.CoreDNS)
	if err != nil {
		return nil, err
	}
	flannel, err := mainOf(ctx, t, GoRequirement{Path: "github.com/flannel-io/flannel", Version: flannelVersion}, "main.go")
	if err != nil {
		return nil, err
	}
	flannel.source = flannelMain(flannel.source)
	tools, err := toolPrograms(sources())
	if err != nil {
		return nil, err
	}
	net := GoProgram{Name: "flanneld", Package: ".", Stamp: []string{"github.com/flannel-io/flannel/pkg/version.Version=" + flannelVersion}}
	if net.Module, err = withMain(modules, flannel); err != nil {
		return nil, err
	}
	return slices.Concat([]GoProgram{dns, net}, tools), nil
}

func corednsProgram(ctx context.Context, t GoToolchain, modules ModuleMaker, version string) (GoProgram, error) {
	main, err := mainOf(ctx, t, GoRequirement{Path: "github.com/coredns/coredns", Version: version}, "core/plugin/zplugin.go")
	if err != nil {
		return GoProgram{}, err
	}
	if main.source, err = corednsMain(main.source); err != nil {
		return GoProgram{}, err
	}
	dns := GoProgram{Name: "coredns", Package: "."}
	dns.Module, err = withMain(modules, main)
	return dns, err
}

// mainSource is the source of a Go file and its module.
type mainSource struct {
	module GoRequirement
	source string
}

func mainOf(ctx context.Context, t GoToolchain, r GoRequirement, file string) (mainSource, error) {
	dir, err := t.Download(ctx, r)
	if err != nil {
		return mainSource{}, err
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return mainSource{}, fmt.Errorf("reading the source of %s: %w", r.Path, err)
	}
	return mainSource{module: r, source: string(text)}, nil
}

// pinsFor returns the module versions that Slipway itself is built with, if it is built with that version of
// Kubernetes.
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

// treeKey returns a hash of the names and contents of all files of a tree.
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

// parsePins parses lines of module and version; # begins a comment.
func parsePins(text string) (map[string]string, error) {
	pins := map[string]string{}
	for _, line := range contentLines(text) {
		f := strings.Fields(line)
		if len(f) != 2 || !version.Valid(f[1]) {
			return nil, fmt.Errorf("reading pinned modules: %q is not a module and a version", line)
		}
		pins[f[0]] = f[1]
	}
	return pins, nil
}

// contentLines returns the lines of a text without empty lines and comments.
func contentLines(text string) []string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}
