package nodeimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// HostParts are the results of a build for hosts that are not containers: the programs and container images of a node
// image, before they become one.
type HostParts struct {
	// PauseImage is the name of the image of a Pod's sandbox.
	PauseImage string
	// Programs are the files of the compiled programs of a node, by name.
	Programs map[string]string
	// Userland is a tar archive of the Debian system of nodes, and Additional one of the further packages of hosts.
	Userland, Additional string
	// NodeImages and ControlPlaneImages are archives of container images.
	NodeImages, ControlPlaneImages string
}

// BuildHostParts builds the parts for the version that the options name, with further packages of Debian that node
// images do not contain. It needs no Docker. The files belong to the cache, and use is called while the cache is
// locked. Missing programs and unknown versions are faults of kind Invalid. Package bundle calls it.
func BuildHostParts(ctx context.Context, o Options, packages []string, use func(HostParts) error) error {
	o.ControlPlane = true
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := checkPrerequisites(prerequisites(os.Geteuid() == 0), exec.LookPath); err != nil {
		return err
	}
	s := BuildCache{Dir: o.CacheDir, Progress: o.Progress}
	unlock, err := s.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	t, err := NewToolchain(ctx, s)
	if err != nil {
		return err
	}
	p, err := newPlan(ctx, t, o)
	if err != nil {
		return fmt.Errorf("building programs of Kubernetes %s: %w", o.KubernetesVersion, err)
	}
	b := builder{Options: o, plan: p, tools: t, store: s, built: map[string]string{}}
	parts, err := b.hostParts(ctx, packages)
	if err != nil {
		return fmt.Errorf("building programs of Kubernetes %s: %w", o.KubernetesVersion, err)
	}
	defer s.Sweep(time.Now())
	return use(parts)
}

func (b *builder) hostParts(ctx context.Context, packages []string) (HostParts, error) {
	system, network, err := b.compile(ctx)
	if err != nil {
		return HostParts{}, err
	}
	all, err := b.containerImages(ctx, network)
	if err != nil {
		return HostParts{}, err
	}
	out := HostParts{PauseImage: b.plan.versions.pause(), Userland: system, Programs: map[string]string{}}
	for _, name := range append(containerdNames(), "kubelet", "kubeadm") {
		out.Programs[name] = b.built[name]
	}
	further := userland{name: "debian-hosts.tar", packages: packages, variant: "extract", refreshedAt: b.plan.system.refreshedAt}
	if out.Additional, err = (debian{store: b.store, sources: machineSources("/")}).buildUserland(ctx, further); err != nil {
		return HostParts{}, err
	}
	node, controlPlane := splitImages(all, b.plan.versions)
	if out.NodeImages, err = b.archive(ctx, "images-node", node); err != nil {
		return HostParts{}, err
	}
	out.ControlPlaneImages, err = b.archive(ctx, "images-control-plane", controlPlane)
	return out, err
}

// splitImages separates the images that only control planes need.
func splitImages(all []containerImage, v versions) (node, controlPlane []containerImage) {
	of := map[string]bool{v.etcd(): true, kubeadmRef(v.etcd()): true}
	for _, name := range controlPlaneNames() {
		of[v.kube(name)], of[kubeadmRef(v.kube(name))] = true, true
	}
	for _, image := range all {
		if of[image.ref] {
			controlPlane = append(controlPlane, image)
		} else {
			node = append(node, image)
		}
	}
	return node, controlPlane
}

// archive returns an archive of container images from the cache.
func (b *builder) archive(ctx context.Context, name string, images []containerImage) (string, error) {
	parts := []string{layout}
	for _, image := range images {
		parts = append(parts, image.ref, fmt.Sprintf("%+v", image.config))
		for _, l := range image.layers {
			parts = append(parts, filepath.Base(l)) // contains the hash of its inputs
		}
	}
	return b.store.Run(ctx, BuildStep{Name: name + ".tar", Key: keyOf(parts...), Make: func(_ context.Context, file string) error {
		return writeArchive(file, images, runtime.GOARCH)
	}})
}
