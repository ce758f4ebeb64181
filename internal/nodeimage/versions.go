package nodeimage

import (
	"fmt"
	"regexp"

	"github.com/slipwayhq/slipway/config/addons/flannel"
)

// Versions of what does not come with Kubernetes.
const (
	// FlannelVersion is the version of the network add-on's program and image.
	FlannelVersion = flannel.Version
	// ContainerdVersion is that of the container runtime, for every version of Kubernetes.
	ContainerdVersion = "v2.2.9"
	// BusyboxVersion is the version of the test image; it is bookworm's.
	BusyboxVersion = "1.35.0"
	// debianSuite is the userland. A newer one has a systemd without cgroup v1.
	debianSuite = "bookworm"
)

// versions are the versions of everything in an image that follows from the version of Kubernetes: kubeadm has them
// in its source, so that the names it gives images are the names of the images that are there.
type versions struct {
	// Kubernetes and CoreDNS have a leading v; Pause and Etcd are image tags without one.
	Kubernetes, CoreDNS, Pause, Etcd string
	// OwnCoreDNS is the version that control planes of slipway's own version run; empty where that is CoreDNS. OwnKubeProxy is that
	// version of Kubernetes; empty where it is Kubernetes.
	OwnCoreDNS, OwnKubeProxy string
}

// versionsOf reads them from the source of kubeadm's constants.
func versionsOf(kubernetes, source string) (versions, error) {
	v := versions{Kubernetes: kubernetes}
	for _, c := range []struct {
		name string
		to   *string
	}{{"CoreDNSVersion", &v.CoreDNS}, {"PauseVersion", &v.Pause}, {"DefaultEtcdVersion", &v.Etcd}} {
		m := regexp.MustCompile(`(?m)^\s*` + c.name + `\s*=\s*"([^"]+)"`).FindStringSubmatch(source)
		if m == nil {
			return versions{}, fmt.Errorf("kubeadm %s does not say its %s: this version of Kubernetes is not known to this program", kubernetes, c.name)
		}
		*c.to = m[1]
	}
	return v, nil
}

// Names of the preloaded images.
func (v versions) pause() string        { return Repository + "/pause:" + v.Pause }
func (v versions) coredns() string      { return corednsRef(v.CoreDNS) }
func (v versions) etcd() string         { return Repository + "/etcd:" + v.Etcd }
func (v versions) kube(p string) string { return Repository + "/" + p + ":" + v.Kubernetes }

func corednsRef(version string) string { return Repository + "/coredns:" + version }

// KubeProxyTag is the tag of the kube-proxy of a node's own version, which every node image has: it is what hosted control
// planes run, so that no node needs the image of another version while the nodes are of several.
const KubeProxyTag = "node"

// FlannelImage is the name of the network add-on's image in every node.
const FlannelImage = Repository + "/flannel:" + FlannelVersion

// BusyboxImage is the name of a small image in every node, to try a cluster with.
const BusyboxImage = Repository + "/busybox:" + BusyboxVersion
