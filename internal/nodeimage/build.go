package nodeimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/moby/client"
)

// Build builds the node image that the options describe, unless the engine already has an image built from the same
// sources. `slipway image build` and `slipway versions add` call it. The first build compiles Kubernetes, which takes
// several minutes, about 3 GB of cache, and network access. Missing programs and unknown versions are faults of kind
// Invalid, an engine that does not respond is a fault of kind Unreachable.
func Build(ctx context.Context, o Options) (Image, error) {
	o, err := o.complete()
	if err != nil {
		return Image{}, err
	}
	if err := checkPrerequisites(prerequisites(os.Geteuid() == 0), exec.LookPath); err != nil {
		return Image{}, err
	}
	if _, err := o.Docker.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return Image{}, unreachable(err)
	}
	s := BuildCache{Dir: o.CacheDir, Progress: o.Progress}
	unlock, err := s.Lock()
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	if err := build(ctx, o, s); err != nil {
		return Image{}, fmt.Errorf("building the node image %s: %w", o.ref(), err)
	}
	s.Sweep(time.Now())
	return findImage(ctx, o)
}

func build(ctx context.Context, o Options, s BuildCache) error {
	t, err := NewToolchain(ctx, s)
	if err != nil {
		return err
	}
	p, err := newPlan(ctx, t, o)
	if err != nil {
		return err
	}
	if labelOf(ctx, o.Docker, o.ref(), labelKey) == p.key {
		fmt.Fprintf(s.Progress, "%s is up to date\n", o.ref())
		p.retain(t)
		return nil
	}
	b := builder{Options: o, plan: p, tools: t, store: s, built: map[string]string{}}
	if err := b.run(ctx); err != nil {
		return err
	}
	removeReplaced(ctx, o.Docker)
	return nil
}

// removeReplaced removes node images whose name was reassigned to a newer image. The engine refuses to remove an image
// that nodes still use; the next build tries to remove it again.
func removeReplaced(ctx context.Context, docker Docker) {
	filters := make(client.Filters).Add("label", labelVersion).Add("dangling", "true")
	old, err := docker.ImageList(ctx, client.ImageListOptions{Filters: filters})
	if err != nil {
		return
	}
	for _, i := range old.Items {
		_, _ = docker.ImageRemove(ctx, i.ID, client.ImageRemoveOptions{PruneChildren: true})
	}
}

func findImage(ctx context.Context, o Options) (Image, error) {
	images, err := List(ctx, o.Docker)
	for _, i := range images {
		if i.Ref == o.ref() {
			return i, nil
		}
	}
	if err != nil {
		return Image{}, err
	}
	return Image{}, fmt.Errorf("the image %s does not exist right after it was built", o.ref())
}

// builder executes a plan: it compiles the programs, builds layers and images from them, and loads the result into the
// engine. Programs, userlands and layers are cached.
type builder struct {
	Options
	plan  plan
	tools GoToolchain
	store BuildCache
	// built contains the files of the compiled programs, by name.
	built map[string]string
}

// compile compiles the programs and builds the userlands of the node and of the images that filter packets.
func (b *builder) compile(ctx context.Context) (system, network string, err error) {
	for _, p := range b.plan.programs {
		file, err := b.tools.Build(ctx, p)
		if err != nil {
			return "", "", err
		}
		b.built[p.Name] = file
	}
	d := debian{store: b.store, sources: machineSources("/")}
	if err := checkVerified(d.sources); err != nil {
		return "", "", err
	}
	if system, err = d.buildUserland(ctx, b.plan.system); err != nil {
		return "", "", err
	}
	network, err = d.buildUserland(ctx, b.plan.network)
	return system, network, err
}

func (b *builder) run(ctx context.Context) error {
	system, network, err := b.compile(ctx)
	if err != nil {
		return err
	}
	base, err := b.loadBase(ctx, system)
	if err != nil {
		return err
	}
	defer b.Docker.ImageRemove(context.WithoutCancel(ctx), base, client.ImageRemoveOptions{})
	images, err := b.containerImages(ctx, network)
	if err != nil {
		return err
	}
	return b.assemble(ctx, base, images)
}

// loadBase loads the image without container images into the engine, and returns its name.
func (b *builder) loadBase(ctx context.Context, system string) (string, error) {
	entries := []entry{programEntry("usr/lib/slipway/kubeadm", b.built["kubeadm"])}
	for _, name := range append(containerdNames(), "kubelet", "kubectl") {
		entries = append(entries, programEntry("usr/bin/"+name, b.built[name]))
	}
	programs, err := b.layer(ctx, "layer-node-programs", entries)
	if err != nil {
		return "", err
	}
	files, err := b.nodeFiles()
	if err != nil {
		return "", err
	}
	config, err := b.layer(ctx, "layer-node-files", files)
	if err != nil {
		return "", err
	}
	ref := repository + "/node-base:" + b.plan.key[:16]
	err = b.store.Timed("loading the node's file system", func() error {
		img, err := layeredImage([]string{system, programs, config}, v1.Config{Env: []string{searchPath}, StopSignal: stopSignal}, runtime.GOARCH)
		if err != nil {
			return err
		}
		return loadImage(ctx, b.Docker, ref, img)
	})
	return ref, err
}

// stopSignal makes systemd shut the machine down.
const stopSignal = "SIGRTMIN+3"

// nodeFiles returns the files and links of images/node that are added to Debian.
func (b *builder) nodeFiles() ([]entry, error) {
	out, err := treeEntries(sources(), "rootfs")
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].data = []byte(strings.ReplaceAll(string(out[i].data), "@PAUSE@", b.plan.versions.pause()))
	}
	text, err := sources().ReadFile("links.txt")
	if err != nil {
		return nil, err
	}
	links, err := linkEntries(string(text))
	// systemd generates the machine ID at the start of the node if the file is empty.
	return append(append(out, links...), entry{name: "etc/machine-id", mode: 0o644}), err
}

// layer returns a layer with the given entries.
func (b *builder) layer(ctx context.Context, name string, entries []entry) (string, error) {
	parts := []string{layout}
	for _, e := range entries {
		// The file name of a compiled program contains the hash of its sources.
		parts = append(parts, e.name, fmt.Sprint(e.mode), e.link, filepath.Base(e.file), string(e.data))
	}
	return b.store.Run(ctx, BuildStep{Name: name + ".tar", Key: keyOf(parts...), Make: func(_ context.Context, file string) error {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := writeLayer(f, entries); err != nil {
			return err
		}
		return f.Close()
	}})
}

// containerImages builds the layers of the images to preload.
func (b *builder) containerImages(ctx context.Context, network string) ([]containerImage, error) {
	contents := map[string][]entry{}
	for _, p := range b.plan.programs {
		image := p.Name
		if p.Name == "flanneld" || p.Name == "cniconf" {
			image = "flannel"
		}
		contents[image] = append(contents[image], programEntry(programPath(p.Name), b.built[p.Name]))
		if slices.Contains([]string{"kube-proxy", ownKubeProxy, "flanneld"}, p.Name) {
			contents[image] = append(contents[image], packetFilterLinks()...)
		}
	}
	var err error
	if contents["busybox"], err = b.busybox(ctx, network); err != nil {
		return nil, err
	}
	for _, onNode := range append(containerdNames(), "kubelet", "kubeadm", "kubectl") {
		delete(contents, onNode)
	}
	p := imageLayers{network: network, programs: map[string]string{}}
	for name, entries := range contents {
		if p.programs[name], err = b.layer(ctx, "layer-"+name, entries); err != nil {
			return nil, err
		}
	}
	return containerImages(b.plan.versions, p, b.ControlPlane), nil
}

// busybox extracts the program from the network userland and reads the list of its applets.
func (b *builder) busybox(ctx context.Context, network string) ([]entry, error) {
	program, err := tarFile(network, "bin/busybox")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.store.Dir, "busybox.draft")
	if err := os.WriteFile(file, program, 0o755); err != nil {
		return nil, err
	}
	defer os.Remove(file)
	help, err := command{Args: []string{file, "--help"}}.Run(ctx)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(help), "BusyBox v"+busyboxVersion) {
		return nil, fmt.Errorf("busybox of Debian is not version %s: %.40s", busyboxVersion, help)
	}
	applets, err := command{Args: []string{file, "--list"}}.Run(ctx)
	return busyboxEntries(program, string(applets)), err
}

// assemble preloads the container images and tags the result.
func (b *builder) assemble(ctx context.Context, base string, images []containerImage) error {
	archive := filepath.Join(b.store.Dir, "images.tar.draft")
	defer os.Remove(archive)
	err := b.store.Timed("writing container images", func() error { return writeArchive(archive, images, runtime.GOARCH) })
	if err != nil {
		return err
	}
	return b.store.Timed("preloading container images", func() error {
		return preloading{docker: b.Docker, base: base, archive: archive}.commit(ctx, b.ref(), []string{
			`ENTRYPOINT ["/usr/lib/slipway/entrypoint"]`,
			`ENV container=docker`,
			"LABEL " + labelVersion + "=" + b.plan.versions.Kubernetes,
			"LABEL " + labelRole + "=" + b.role(),
			"LABEL " + labelKey + "=" + b.plan.key,
		})
	})
}
