package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/nodeimage"
)

const (
	// Archives of container images. The scripts of package ssh/remote check for images/node.tar on a host, and import
	// all archives in images/.
	nodeImages         = "images/node.tar"
	controlPlaneImages = "images/control-plane.tar"
)

// BuildOptions of a bundle. `slipway bundle build` fills them in from its flags.
type BuildOptions struct {
	// KubernetesVersion is the version of kubelet, kubeadm and the images. Default: nodeimage.DefaultVersion.
	KubernetesVersion string
	// Refresh installs the updates of Debian.
	Refresh bool
	// CacheDir contains the cached results of steps. Default: as for node images.
	CacheDir string
	// Progress receives a line for each step. Default: no output.
	Progress io.Writer
}

// Build builds a bundle for the architecture of this machine and stores it. The first build of a version takes minutes
// and needs the network; results are shared with node images. Missing programs and unknown versions are faults of kind
// Invalid. `slipway bundle build` calls it.
func (s Store) Build(ctx context.Context, o BuildOptions) (Bundle, error) {
	if o.KubernetesVersion == "" {
		o.KubernetesVersion = nodeimage.DefaultVersion
	}
	var out Bundle
	err := nodeimage.BuildHostParts(ctx, nodeimage.Options{
		KubernetesVersion: o.KubernetesVersion, Refresh: o.Refresh, CacheDir: o.CacheDir, Progress: o.Progress,
	}, additionalPackages(), func(parts nodeimage.HostParts) (err error) {
		out, err = s.place(func(dir string) error {
			if err := writeParts(dir, parts); err != nil {
				return err
			}
			m, err := describe(dir, Manifest{KubernetesVersion: o.KubernetesVersion, Architecture: runtime.GOARCH, PauseImage: parts.PauseImage})
			if err != nil {
				return err
			}
			return writeManifest(dir, m)
		})
		return err
	})
	if err != nil {
		return Bundle{}, fmt.Errorf("building a bundle: %w", err)
	}
	return out, nil
}

// writeParts writes the files of a bundle.
func writeParts(dir string, parts nodeimage.HostParts) error {
	for name, file := range parts.Programs {
		if err := copyFile(filepath.Join(dir, "bin", name), file, 0o755); err != nil {
			return err
		}
	}
	for to, file := range map[string]string{nodeImages: parts.NodeImages, controlPlaneImages: parts.ControlPlaneImages} {
		if err := copyFile(filepath.Join(dir, filepath.FromSlash(to)), file, 0o644); err != nil {
			return err
		}
	}
	from, err := openUserland(parts.Userland)
	if err != nil {
		return err
	}
	defer from.close()
	additional, err := openUserland(parts.Additional)
	if err != nil {
		return err
	}
	defer additional.close()
	files, err := debianFiles(from, additional)
	if err != nil {
		return err
	}
	for to, data := range files {
		file := filepath.Join(dir, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file to a new one.
func copyFile(to, from string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// debianPrograms returns the programs of Debian in a bundle. Hosts with programs of the same names use their own,
// except for runc.
func debianPrograms() []string {
	return []string{"/usr/sbin/runc", "/usr/sbin/conntrack", "/usr/sbin/ethtool", "/usr/bin/socat", "/bin/ip", "/sbin/tc", "/usr/sbin/ipset", "/usr/sbin/nft", "/usr/sbin/xtables-nft-multi"}
}

// additionalPackages are the packages of Debian that only hosts need, and additionalPrograms their programs: keepalived
// holds the virtual IP address of a control plane.
func additionalPackages() []string { return []string{"keepalived"} }

func additionalPrograms() []string { return []string{"/usr/sbin/keepalived"} }

// debianFiles returns the programs of Debian, the CNI plugins and the plugins of iptables with their libraries, by path
// in the bundle. A library in both userlands is the one of the first. Build compiles the other programs with package
// nodeimage (writeParts).
func debianFiles(from, additional *userland) (map[string][]byte, error) {
	c := &collector{from: from, files: map[string][]byte{}}
	for _, name := range debianPrograms() {
		if err := c.addFile("bin/"+path.Base(name), name); err != nil {
			return nil, err
		}
	}
	plugins := from.list("/usr/lib/cni")
	if !slices.Contains(plugins, "loopback") {
		return nil, errors.New("the Debian system has no CNI plugins")
	}
	for _, name := range plugins {
		if err := c.addFile("cni/"+name, "/usr/lib/cni/"+name); err != nil {
			return nil, err
		}
	}
	for _, dir := range c.libraryDirs() {
		for _, name := range from.list(dir + "/xtables") {
			if err := c.addFile("lib/xtables/"+name, dir+"/xtables/"+name); err != nil {
				return nil, err
			}
		}
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			c.files["bin/"+family+suffix] = packetFilterCommand(family + suffix)
		}
	}
	c.from = additional
	for _, name := range additionalPrograms() {
		if err := c.addFile("bin/"+path.Base(name), name); err != nil {
			return nil, err
		}
	}
	return c.files, nil
}

func (c *collector) addFile(to, name string) error {
	data, err := c.from.read(name)
	if err != nil {
		return err
	}
	return c.add(to, data)
}

// packetFilterCommand returns the script for one of the commands of iptables, which look for their plugins in a
// directory that only the environment can change. The paths are those that the scripts of package ssh/remote create on
// a host.
func packetFilterCommand(name string) []byte {
	return []byte(strings.ReplaceAll(`#!/bin/sh
XTABLES_LIBDIR=/var/lib/slipway/lib/xtables
export XTABLES_LIBDIR
exec /var/lib/slipway/current/bin/xtables-nft-multi NAME "$@"
`, "NAME", name))
}
