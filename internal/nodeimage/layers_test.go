package nodeimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestWriteLayer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program-0123")
	if err := os.WriteFile(file, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	entries := func() []entry {
		return []entry{
			{name: "usr/bin/x", mode: 0o755, file: file},
			{name: "etc/y", mode: 0o644, data: []byte("text")},
			{name: "usr/bin/z", link: "x"},
		}
	}
	var first, second bytes.Buffer
	if err := writeLayer(&first, entries()); err != nil {
		t.Fatal(err)
	}
	reversed := entries()
	reversed[0], reversed[2] = reversed[2], reversed[0]
	if err := writeLayer(&second, reversed); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the order of entries changes the layer")
	}
	want := []string{"etc/ 755", "etc/y 644 text", "usr/ 755", "usr/bin/ 755", "usr/bin/x 755 code", "usr/bin/z 777 -> x"}
	if diff := cmp.Diff(want, listing(t, &first)); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
	if err := writeLayer(io.Discard, []entry{{name: "gone", file: file + "?"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there gave %v", err)
	}
}

func listing(t *testing.T, r io.Reader) []string {
	t.Helper()
	var out []string
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s %o", h.Name, h.Mode)
		switch h.Typeflag {
		case tar.TypeSymlink:
			line += " -> " + h.Linkname
		case tar.TypeReg:
			text, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			line += " " + string(text)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
			line += " not reproducible"
		}
		out = append(out, line)
	}
}

func TestTreeAndLinks(t *testing.T) {
	tree := fstest.MapFS{"root/bin/run": {Data: []byte("#!/bin/sh\n")}, "root/etc/conf": {Data: []byte("x=1\n")}, "other": {}}
	got, err := treeEntries(tree, "root")
	if err != nil {
		t.Fatal(err)
	}
	want := []entry{{name: "bin/run", mode: 0o755, data: []byte("#!/bin/sh\n")}, {name: "etc/conf", mode: 0o644, data: []byte("x=1\n")}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	links, err := linkEntries("# why\netc/a /dev/null\n")
	if diff := cmp.Diff([]entry{{name: "etc/a", link: "/dev/null"}}, links, cmp.AllowUnexported(entry{})); diff != "" || err != nil {
		t.Errorf("error %v, links (-want +got):\n%s", err, diff)
	}
	if _, err := linkEntries("etc/a\n"); err == nil {
		t.Error("a link without a target was accepted")
	}
}

// Every file of the real tree, with the real links, makes one layer without two entries of one name.
func TestEmbeddedTree(t *testing.T) {
	b := builder{plan: plan{versions: versions{Pause: "3.10.2"}}}
	entries, err := b.nodeFiles()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]entry{}
	for _, e := range entries {
		if _, twice := seen[e.name]; twice {
			t.Errorf("%s is there twice", e.name)
		}
		seen[e.name] = e
		if bytes.Contains(e.data, []byte("@PAUSE@")) {
			t.Errorf("%s names no pause image", e.name)
		}
	}
	for name, mode := range map[string]int64{"usr/lib/slipway/entrypoint": 0o755, "usr/bin/kubeadm": 0o755, "etc/systemd/system/kubelet.service": 0o644} {
		if seen[name].mode != mode {
			t.Errorf("%s has mode %o, want %o", name, seen[name].mode, mode)
		}
	}
	if e, ok := seen["etc/machine-id"]; !ok || len(e.data) != 0 {
		t.Error("all nodes would have one machine-id")
	}
	if !bytes.Contains(seen["usr/lib/slipway/containerd.toml"].data, []byte(`sandbox = "slipway.dev/pause:3.10.2"`)) {
		t.Error("containerd would pull its pause image")
	}
}

func TestContainerImages(t *testing.T) {
	v := versions{Kubernetes: "v1.36.3", CoreDNS: "v1.14.2", Pause: "3.10.2", Etcd: "3.6.8-0"}
	worker := []string{"slipway.dev/pause:3.10.2", "slipway.dev/kube-proxy:v1.36.3", "slipway.dev/kube-proxy:node", "slipway.dev/coredns:v1.14.2", flannelImage, busyboxImage}
	control := []string{"slipway.dev/kube-apiserver:v1.36.3", "slipway.dev/kube-controller-manager:v1.36.3", "slipway.dev/kube-scheduler:v1.36.3", "slipway.dev/etcd:3.6.8-0"}
	for name, c := range map[string]struct {
		controlPlane bool
		want         []string
		reason       string
	}{
		"worker":        {false, worker, "the names that kubeadm gives images with imageRepository slipway.dev"},
		"control plane": {true, append(worker, control...), "and those of its static Pods"},
	} {
		var got []string
		for _, i := range ownImages(v, imageLayers{network: "n", programs: map[string]string{}}, c.controlPlane) {
			got = append(got, i.ref)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
	var usual []string
	for _, i := range containerImages(v, imageLayers{network: "n", programs: map[string]string{}}, true) {
		if ref, ok := strings.CutPrefix(i.ref, kubeadmRepository); ok {
			usual = append(usual, ref)
		}
	}
	want := []string{"/pause:3.10.2", "/kube-proxy:v1.36.3", "/coredns/coredns:v1.14.2", "/kube-apiserver:v1.36.3", "/kube-controller-manager:v1.36.3", "/kube-scheduler:v1.36.3", "/etcd:3.6.8-0"}
	if diff := cmp.Diff(want, usual); diff != "" {
		t.Errorf("the names that kubeadm gives images without imageRepository (-want +got):\n%s", diff)
	}
	v.OwnCoreDNS, v.OwnKubeProxy = "v1.14.6", "v1.37.0"
	got := ownImages(v, imageLayers{network: "n", programs: map[string]string{ownKubeProxy: "own"}}, false)
	if i := len(got) - 2; got[i].ref != "slipway.dev/kube-proxy:v1.37.0" || !slices.Contains(got[i].layers, "own") || got[i+1].ref != "slipway.dev/coredns:v1.14.6" {
		t.Errorf("an image of another version lacks what control planes of slipway's own version run on it: %v", got)
	}
	for name, want := range map[string]string{"pause": "pause", "coredns-own": "coredns", "coredns": "coredns", "kube-proxy": "usr/local/bin/kube-proxy", "kube-proxy-own": "usr/local/bin/kube-proxy", "flanneld": "opt/bin/flanneld", "etcd": "usr/local/bin/etcd"} {
		if got := programPath(name); got != want {
			t.Errorf("%s is at %s, the manifests look at %s", name, got, want)
		}
	}
}

func TestBusyboxEntries(t *testing.T) {
	var names []string
	for _, e := range busyboxEntries([]byte("code"), "[\nbusybox\nsh\nwget\n") {
		names = append(names, e.name+" "+e.link)
	}
	want := []string{"bin/busybox ", "etc/passwd ", "etc/group ", "bin/[ busybox", "bin/sh busybox", "bin/wget busybox"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// What is written for containerd is read back: names, layers that are shared, configuration.
func TestWriteArchive(t *testing.T) {
	dir := t.TempDir()
	layer := func(name string) string {
		file := filepath.Join(dir, name)
		var text bytes.Buffer
		if err := writeLayer(&text, []entry{{name: name, mode: 0o644, data: []byte(name)}}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	low := layer("low")
	archive := filepath.Join(dir, "images.tar")
	err := writeArchive(archive, []containerImage{
		{ref: "slipway.dev/a:1", layers: []string{low, layer("a")}, config: v1.Config{Entrypoint: []string{"/a"}}},
		{ref: "slipway.dev/b:2", layers: []string{low, layer("b")}},
	}, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		t.Fatal(err)
	}
	layers := map[string]int{}
	for _, m := range manifest {
		for _, l := range m.Layers {
			layers[l]++
		}
	}
	if len(manifest) != 2 || len(layers) != 3 {
		t.Errorf("%d images with %d different layers, want 2 with 3", len(manifest), len(layers))
	}
	data, err := tarFile(archive, manifest[0].Config)
	if err != nil || !bytes.Contains(data, []byte(`"architecture":"amd64"`)) {
		t.Errorf("configuration %s: %v", data, err)
	}
	if _, err := tarFile(archive, "absent"); err == nil {
		t.Error("a file that is not in the archive was found")
	}
}
