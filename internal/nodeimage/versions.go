package nodeimage

import (
	"fmt"
	"regexp"

	"github.com/slipwayhq/slipway/config/classes"
)

// Versions of components that are not part of Kubernetes, chosen by Slipway. A change requires the checksums of the new
// modules in known.sum.
const (
	// flannelVersion is the version of the network add-on's program and image.
	flannelVersion = classes.FlannelVersion
	// containerdVersion is the version of the container runtime, for every version of Kubernetes.
	containerdVersion = "v2.2.9"
	// busyboxVersion is the version of the test image, as in bookworm.
	busyboxVersion = "1.35.0"
	// debianSuite is the Debian release of the userland. Newer ones have a systemd without cgroup v1.
	debianSuite = "bookworm"
)

// versions contains the versions that depend on the version of Kubernetes. They are read from kubeadm's source, so that
// the image names that kubeadm uses match the preloaded images.
type versions struct {
	// Kubernetes and CoreDNS have a leading v; Pause and Etcd are image tags without one.
	Kubernetes, CoreDNS, Pause, Etcd string
	// OwnCoreDNS is the CoreDNS version for control planes of Slipway's own version, empty if it equals CoreDNS.
	// OwnKubeProxy is the Kubernetes version for them, empty if it equals Kubernetes.
	OwnCoreDNS, OwnKubeProxy string
}

// versionsOf parses the versions from the source of kubeadm's constants. The plan of a build calls it.
func versionsOf(kubernetes, source string) (versions, error) {
	v := versions{Kubernetes: kubernetes}
	for _, c := range []struct {
		name string
		to   *string
	}{{"CoreDNSVersion", &v.CoreDNS}, {"PauseVersion", &v.Pause}, {"DefaultEtcdVersion", &v.Etcd}} {
		m := regexp.MustCompile(`(?m)^\s*` + c.name + `\s*=\s*"([^"]+)"`).FindStringSubmatch(source)
		if m == nil {
			return versions{}, fmt.Errorf("kubeadm %s has no constant for its %s: this version of Kubernetes is not supported", kubernetes, c.name)
		}
		*c.to = m[1]
	}
	return v, nil
}

// The following methods return the names of the preloaded images.

func (v versions) pause() string        { return repository + "/pause:" + v.Pause }
func (v versions) coredns() string      { return corednsRef(v.CoreDNS) }
func (v versions) etcd() string         { return repository + "/etcd:" + v.Etcd }
func (v versions) kube(p string) string { return repository + "/" + p + ":" + v.Kubernetes }

func corednsRef(version string) string { return repository + "/coredns:" + version }

// KubeProxyTag is the tag of the kube-proxy of the node's own version in every node image. Hosted control planes use
// it, so that each node runs its own image while nodes have different versions.
const KubeProxyTag = "node"

// flannelImage is the name of the network add-on's image in every node. The manifest in config/classes contains the
// name.
const flannelImage = repository + "/flannel:" + flannelVersion

// busyboxImage is the name of a small image in every node, for trying out a cluster. The quick start and the examples
// contain the name.
const busyboxImage = repository + "/busybox:" + busyboxVersion
