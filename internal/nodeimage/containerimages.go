package nodeimage

import (
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// containerImage is an image to preload: its layers on disk, lowest first, and its container configuration. A node
// image build and [BuildHostParts] write them to archives.
type containerImage struct {
	ref    string
	layers []string
	config v1.Config
}

// searchPath is the PATH of an image; kubeadm's static Pods name their programs without a directory.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// imageLayers contains the layers of the container images.
type imageLayers struct {
	// network is the userland for programs that configure packet filters.
	network string
	// programs are layers with one program each, by the program's name.
	programs map[string]string
}

// kubeadmRepository is kubeadm's default image repository. Nodes have the images of this build under these names, too,
// so that manifests written for other machines work unchanged and nothing is pulled.
const kubeadmRepository = "registry.k8s.io"

// kubeadmRef returns the name of an image in kubeadm's default repository, and an empty string for an image that
// kubeadm does not use.
func kubeadmRef(ref string) string {
	name, of := strings.CutPrefix(ref, repository+"/")
	switch {
	case !of, ref == flannelImage, ref == busyboxImage, ref == repository+"/kube-proxy:"+KubeProxyTag:
		return ""
	case strings.HasPrefix(name, "coredns:"):
		name = "coredns/" + name
	}
	return kubeadmRepository + "/" + name
}

// containerImages returns the images that a build preloads into a node image, once for each of their names.
func containerImages(v versions, p imageLayers, controlPlane bool) []containerImage {
	var out []containerImage
	for _, image := range ownImages(v, p, controlPlane) {
		out = append(out, image)
		if ref := kubeadmRef(image.ref); ref != "" {
			image.ref = ref
			out = append(out, image)
		}
	}
	return out
}

func ownImages(v versions, p imageLayers, controlPlane bool) []containerImage {
	onPath, dns := v1.Config{Env: []string{searchPath}}, v1.Config{Entrypoint: []string{"/coredns"}, WorkingDir: "/"}
	out := []containerImage{
		{ref: v.pause(), layers: []string{p.programs["pause"]}, config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}},
		{ref: v.kube("kube-proxy"), layers: []string{p.network, p.programs["kube-proxy"]}, config: onPath},
		{ref: repository + "/kube-proxy:" + KubeProxyTag, layers: []string{p.network, p.programs["kube-proxy"]}, config: onPath},
		{ref: v.coredns(), layers: []string{p.programs["coredns"]}, config: dns},
		{ref: flannelImage, layers: []string{p.network, p.programs["flannel"]}, config: v1.Config{Env: []string{searchPath}, Entrypoint: []string{"/opt/bin/flanneld"}}},
		{ref: busyboxImage, layers: []string{p.programs["busybox"]}, config: v1.Config{Env: []string{searchPath}, Cmd: []string{"sh"}}},
	}
	if v.OwnKubeProxy != "" {
		out = append(out, containerImage{ref: repository + "/kube-proxy:" + v.OwnKubeProxy, layers: []string{p.network, p.programs[ownKubeProxy]}, config: onPath})
	}
	if v.OwnCoreDNS != "" {
		out = append(out, containerImage{ref: corednsRef(v.OwnCoreDNS), layers: []string{p.programs[ownCoreDNS]}, config: dns})
	}
	if controlPlane {
		for _, name := range controlPlaneNames() {
			out = append(out, containerImage{ref: v.kube(name), layers: []string{p.programs[name]}, config: onPath})
		}
		out = append(out, containerImage{ref: v.etcd(), layers: []string{p.programs["etcd"]}, config: onPath})
	}
	return out
}

// programPath returns the path of a program in its image. The manifests of kubeadm and of the add-ons use these paths,
// so they must not change.
func programPath(name string) string {
	switch name {
	case "pause":
		return name
	case "coredns", ownCoreDNS:
		return "coredns"
	case ownKubeProxy:
		name = "kube-proxy"
	case "flanneld", "cniconf":
		return "opt/bin/" + name
	}
	return "usr/local/bin/" + name
}

// packetFilterLinks returns the links for the iptables commands. Debian creates them when the package is installed,
// which does not happen for an extracted userland.
func packetFilterLinks() []entry {
	out := []entry{
		{name: "etc/nsswitch.conf", mode: 0o644, data: []byte("hosts: files dns\n")},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/bin/sh\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\n")},
	}
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			out = append(out, entry{name: "usr/sbin/" + name + suffix, link: "xtables-nft-multi"})
		}
	}
	return out
}

// busyboxEntries returns the files of the busybox image: the program and a link for each applet.
func busyboxEntries(program []byte, applets string) []entry {
	out := []entry{
		{name: "bin/busybox", mode: 0o755, data: program},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nnogroup:x:65534:\n")},
	}
	for _, applet := range contentLines(applets) {
		if applet != "busybox" && !strings.ContainsAny(applet, "/ ") {
			out = append(out, entry{name: "bin/" + applet, link: "busybox"})
		}
	}
	return out
}

// layeredImage returns an image with the given layers and configuration. Builds call it for the base image, and
// archives of container images for each image.
func layeredImage(layers []string, config v1.Config, arch string) (v1.Image, error) {
	img := empty.Image
	for _, file := range layers {
		l, err := newLayer(file)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			return nil, err
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", arch, config
	return mutate.ConfigFile(img, file)
}
