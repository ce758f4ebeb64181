package backend

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/policy"
	versions "github.com/slipwayhq/slipway/internal/version"
)

// Terms are facts about the control planes of a backend: what the backend and the operator say, whatever there is already.
// Decisions know backends by them alone.
type Terms struct {
	// Kind is what such a control plane is called: a hosted, a simulated control plane.
	Kind string
	// Components tells that it runs those of Kubernetes: they have authorities, keys, flags and settings of security of their
	// own. One without signs certificates of its API and nothing else.
	Components bool
	// Addons tells that the workload cluster is given what kubeadm join and Pods need.
	Addons bool
	// Versions of Kubernetes that it can be of; with AnyVersion it can be of all.
	Versions   []string
	AnyVersion bool
	// Listens is where it listens, at a port that it chooses: nothing that it needs comes from the infrastructure. Nil: it
	// listens where it is told to, if the host allows that.
	Listens *Listens
	// Started is the control plane once Start has returned, where that is known; nil: an event tells when it answers.
	Started *ControlPlane
	// Denied is why the operator does not allow one to be started; empty: it is allowed.
	Denied string
	// Maximum is how many there may be, by the setting of that name.
	Maximum policy.Maximum
	Setting string
	// Running is the reason of the condition ProcessRunning while one runs.
	Running string
	// Continued says what becomes of one that was started before this program.
	Continued string
	// InPods tells that it runs in a Pod of the management cluster: its versions are those of the manager's image, and its data is on a
	// volume.
	InPods bool
	// Emptied says what becomes of one whose data is gone when it is started; empty: it must not be started.
	Emptied string
}

// Listens is the host and the ports from First to Last of control planes that choose where they listen.
type Listens struct {
	Host        string
	First, Last uint16
	// Elsewhere tells that each has an endpoint of its own instead ([ControlPlane.Endpoint]), which leads to where it listens.
	Elsewhere bool
}

// PlaceOfData is where the data of a control plane would be, after "is not".
func (t Terms) PlaceOfData() string {
	if t.InPods {
		return "in this management cluster, which has no PersistentVolumeClaim of it"
	}
	if t.Emptied != "" {
		return "on this host"
	}
	return "in the data directory of this manager, which may not be the one that had it"
}

// HolderOfVersions is what has the versions.
func (t Terms) HolderOfVersions() string {
	if t.InPods {
		return "The image of the manager"
	}
	return "This host"
}

// VersionToRun is the version that a control plane is to be of: the wanted one, or where that cannot be had and there is a control plane
// already, a newer patch version of the same minor version. False: neither can be had.
func (t Terms) VersionToRun(want string, exists bool) (string, bool) {
	if t.AnyVersion || slices.Contains(t.Versions, want) {
		return want, true
	}
	asked, err := versions.Parse(want)
	if err != nil || !exists {
		return want, false
	}
	for _, c := range t.Versions {
		if v, err := versions.Parse(c); err == nil && v.SameMinor(asked) && v.Compare(asked) > 0 {
			return c, true
		}
	}
	return want, false
}

// NotSupported says why a control plane cannot be of the version that it is to have, and what to do.
func (t Terms) NotSupported(plane *hostedv1.HostedControlPlane) string {
	have, want, at, field := strings.Join(t.Versions, ", "), plane.Spec.Version, plane.Status.Version, versionField(plane)
	if versions.IsOlder(want, at) {
		return fmt.Sprintf("The control plane is at %s and cannot go back to %s, because what etcd has was written by the newer one; set %s to %s", at, want, field, at)
	}
	if !versions.Valid(want) {
		return fmt.Sprintf("%q is not a Kubernetes version; set %s to one that this host has: %s", want, field, have)
	}
	if t.InPods {
		return fmt.Sprintf("Kubernetes %s is not in the image of the manager, which has %s; set %s to it, or ask the operator to install a release of slipway with %s", want, have, field, want)
	}
	text := fmt.Sprintf("Kubernetes %s is not available on this host, which has %s; the operator adds it with `slipway versions add %s`", want, have, want)
	if at != "" && field != specVersion {
		return text // the version of a Cluster with a class does not go back
	}
	return text + fmt.Sprintf(", or set %s to one of these", field)
}

// LogText says what shows the log of a control plane; empty: nothing of slipway does.
func (t Terms) LogText(plane *hostedv1.HostedControlPlane) string {
	if t.InPods {
		return ""
	}
	return fmt.Sprintf(" (`slipway logs control-plane %s -n %s` has its log)", plane.Name, plane.Namespace)
}

// versionField is where the version of a control plane is set: where its Cluster has a class, there alone.
func versionField(plane *hostedv1.HostedControlPlane) string {
	if _, owned := plane.Labels[clusterv1.ClusterTopologyOwnedLabel]; owned {
		return "spec.topology.version of Cluster " + plane.Labels[clusterv1.ClusterNameLabel]
	}
	return specVersion
}

const specVersion = "spec.version"

// DeniedEndpoint returns why a control plane that chooses where it listens may not have the endpoint, empty if it may: it has one of its own,
// or one of the ports that are kept for such control planes.
func (t Terms) DeniedEndpoint(have ControlPlane, at netip.AddrPort) string {
	switch host, err := netip.ParseAddr(have.Endpoint.Host); {
	case !t.Listens.Elsewhere && at.Addr().String() == t.Listens.Host && at.Port() >= t.Listens.First && at.Port() <= t.Listens.Last:
		return ""
	case !t.Listens.Elsewhere:
		return fmt.Sprintf("Control plane endpoint %s is not allowed: a %s control plane listens at %s, at a port that it chooses itself; create the cluster without an endpoint", at, t.Kind, t.Listens.Host)
	case have.EndpointProblem != "":
		return have.EndpointProblem
	case err == nil && netip.AddrPortFrom(host, uint16(have.Endpoint.Port)) == at:
		return ""
	}
	return fmt.Sprintf("Control plane endpoint %s is not allowed: the Service of the control plane is reached at %s; create the cluster without an endpoint",
		at, net.JoinHostPort(have.Endpoint.Host, strconv.Itoa(int(have.Endpoint.Port))))
}
