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

// Capabilities contains the static properties of the control planes of a backend. Each backend returns its own, and the
// HostedControlPlane controller distinguishes backends only by these.
type Capabilities struct {
	// Kind is the adjective for such a control plane in messages: hosted or simulated.
	Kind string
	// Components means that it runs the Kubernetes components, which have CAs, keys, flags and security
	// settings. A control plane without components only signs certificates of its API.
	Components bool
	// Addons means that the controller applies the objects that kubeadm join and Pods need to the workload
	// cluster.
	Addons bool
	// Versions are the supported versions of Kubernetes. AnyVersion means that all versions are supported.
	Versions   []string
	AnyVersion bool
	// OwnEndpoints is set if the control plane chooses its endpoint itself and does not depend on the
	// infrastructure. If nil, it listens at the endpoint of the infrastructure, if the host permits this.
	OwnEndpoints *EndpointRange
	// Started is the state of the control plane after Start. If nil, an event follows when the API server is
	// ready.
	Started *ControlPlane
	// Denied is the reason why the operator does not permit such control planes, or empty.
	Denied string
	// Maximum limits the number of control planes. Setting is the path of this limit in the configuration.
	Maximum policy.Maximum
	Setting string
	// RunningReason is the reason of the condition ProcessRunning while the control plane runs.
	RunningReason string
	// RestartEffect describes the effect of a restart of this program on running control planes.
	RestartEffect string
	// InPods means that it runs in a Pod of the management cluster. Its versions are in the manager's image,
	// and its data is on a volume.
	InPods bool
	// EmptyStartEffect describes the effect of a start without the previous data. If empty, such a start is not
	// permitted.
	EmptyStartEffect string
}

// EndpointRange contains the host and the port range of control planes that choose their endpoint. The backend returns
// it in its [Capabilities].
type EndpointRange struct {
	Host        string
	First, Last uint16
	// SeparateEndpoint means that each control plane has a separate endpoint instead ([ControlPlane.Endpoint]) that
	// forwards to it.
	SeparateEndpoint bool
}

// DataLocation describes the location of the data, for use after "is not". The HostedControlPlane controller writes it
// into messages.
func (t Capabilities) DataLocation() string {
	if t.InPods {
		return "in this management cluster, which has no PersistentVolumeClaim of it"
	}
	if t.EmptyStartEffect != "" {
		return "on this host"
	}
	return "in the data directory of this manager, which may not be the one that had it"
}

// VersionSource returns the subject for messages about available versions.
func (t Capabilities) VersionSource() string {
	if t.InPods {
		return "The image of the manager"
	}
	return "This host"
}

// VersionToRun returns the version that a control plane should run: the wanted one, or for an existing control plane
// whose version is not available, a newer patch version of the same minor version. It returns false if neither is
// available. The HostedControlPlane controller calls it in each reconciliation, for its decision and its conditions.
func (t Capabilities) VersionToRun(want string, exists bool) (string, bool) {
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

// NotSupported returns a message with the reason why a control plane cannot run its version, and a remedy. The
// HostedControlPlane controller calls it for a wait and a condition.
func (t Capabilities) NotSupported(plane *hostedv1.HostedControlPlane) string {
	have, want, at, field := strings.Join(t.Versions, ", "), plane.Spec.Version, plane.Status.Version, versionField(plane)
	if versions.IsOlder(want, at) {
		return fmt.Sprintf("The control plane is at %s and cannot be downgraded to %s, because etcd has data of the newer version; set %s to %s", at, want, field, at)
	}
	if !versions.Valid(want) {
		return fmt.Sprintf("%q is not a Kubernetes version; set %s to one that this host has: %s", want, field, have)
	}
	if t.InPods {
		return fmt.Sprintf("Kubernetes %s is not in the image of the manager, which has %s; set %s to it, or ask the operator to install a release of slipway with %s", want, have, field, want)
	}
	text := fmt.Sprintf("Kubernetes %s is not available on this host, which has %s; the operator adds it with `slipway versions add %s`", want, have, want)
	if at != "" && field != specVersion {
		return text // the version of a Cluster with a class cannot be lowered
	}
	return text + fmt.Sprintf(", or set %s to one of these", field)
}

// LogText returns a hint for reading the log of a control plane, or an empty string if there is no command
// for it.
func (t Capabilities) LogText(plane *hostedv1.HostedControlPlane) string {
	if t.InPods {
		return ""
	}
	return fmt.Sprintf(" (`slipway logs control-plane %s -n %s` has its log)", plane.Name, plane.Namespace)
}

// versionField returns the field that sets the version of a control plane. For a Cluster with a class, this
// is the version of the topology.
func versionField(plane *hostedv1.HostedControlPlane) string {
	if _, owned := plane.Labels[clusterv1.ClusterTopologyOwnedLabel]; owned {
		return "spec.topology.version of Cluster " + plane.Labels[clusterv1.ClusterNameLabel]
	}
	return specVersion
}

const specVersion = "spec.version"

// DeniedEndpoint returns why a control plane that chooses its endpoint may not use the given one, or an empty string if
// it may. It must be the separate endpoint of the control plane, or in the port range for such control planes. The
// controller calls it before it starts a control plane.
func (t Capabilities) DeniedEndpoint(have ControlPlane, at netip.AddrPort) string {
	switch host, err := netip.ParseAddr(have.Endpoint.Host); {
	case !t.OwnEndpoints.SeparateEndpoint && at.Addr().String() == t.OwnEndpoints.Host && at.Port() >= t.OwnEndpoints.First && at.Port() <= t.OwnEndpoints.Last:
		return ""
	case !t.OwnEndpoints.SeparateEndpoint:
		return fmt.Sprintf("Control plane endpoint %s is not allowed: a %s control plane listens at %s, at a port that it chooses itself; create the cluster without an endpoint", at, t.Kind, t.OwnEndpoints.Host)
	case have.EndpointProblem != "":
		return have.EndpointProblem
	case err == nil && netip.AddrPortFrom(host, uint16(have.Endpoint.Port)) == at:
		return ""
	}
	return fmt.Sprintf("Control plane endpoint %s is not allowed: the Service of the control plane is reached at %s; create the cluster without an endpoint",
		at, net.JoinHostPort(have.Endpoint.Host, strconv.Itoa(int(have.Endpoint.Port))))
}
