package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// Labels of every resource that a backend creates on the host. They must not change, because the resources of existing
// clusters are found by them.
const (
	// LabelInstance is the management cluster that created the resource.
	LabelInstance = "dev.slipway.instance"
	// LabelCluster is the namespace and name of the Cluster, joined by a slash.
	LabelCluster = "dev.slipway.cluster"
	// LabelObject is the namespace and name of the LocalCluster or LocalMachine, joined by a slash.
	LabelObject = "dev.slipway.object"
	// LabelUID is the UID of that object.
	LabelUID = "dev.slipway.uid"
	// LabelAddress is the address that a node retains across restarts.
	LabelAddress = "dev.slipway.address"
	// LabelControlPlane is "true" if the node runs a control plane, and absent otherwise.
	LabelControlPlane = "dev.slipway.control-plane"
	// LabelVersion is the Kubernetes version in a node image. Package nodeimage sets it.
	LabelVersion = "dev.slipway.node.kubernetes"
)

// maxName is the maximum length of a host name. Container names have the same limit by choice.
const maxName = 63

// providerPrefix is the prefix of every provider ID of this provider.
const providerPrefix = "slipway:///"

// NetworkName returns the name of a LocalCluster's network. It is deterministic.
func NetworkName(instance string, o types.NamespacedName) string { return engineName(instance, o) }

// MachineName returns the name of a LocalMachine's machine. It is deterministic and does not depend on the UID, because
// a move or a restore gives the object a new UID but not a new machine. The result for an object must never change: the
// provider ID of existing Nodes contains it.
func MachineName(instance string, o types.NamespacedName) string { return engineName(instance, o) }

func engineName(instance string, o types.NamespacedName) string {
	return truncateName("slipway-"+o.Namespace+"-"+o.Name, digest(instance, o.Namespace, o.Name), true)
}

// Hostname returns the host name of a LocalMachine, which is also the name of the Node: the object's name if it is a
// valid host name, else a name derived from it. The LocalMachine controller sets it in [MachineSpec].
func Hostname(name string) string {
	return truncateName(strings.ReplaceAll(name, ".", "-"), digest(name), strings.Contains(name, "."))
}

// ProviderID returns the provider ID of the machine's Node. The LocalMachine controller writes it into spec.providerID
// before the machine exists.
func ProviderID(machineName string) string { return providerPrefix + machineName }

// parseProviderID returns the machine name in the provider ID of a LocalMachine, and false if this LocalMachine cannot
// have that name, here or in another management cluster. Authors of a LocalMachine choose its provider ID, so only a
// valid name of this object may be used in a request to the engine.
func parseProviderID(providerID string, o types.NamespacedName) (string, bool) {
	name, ok := strings.CutPrefix(providerID, providerPrefix)
	return name, ok && isNameOf(name, o)
}

// ResolveMachineName returns the machine name in the provider ID of a LocalMachine, which survives a move to another
// management cluster. Without a provider ID it returns [MachineName], and for a provider ID that this object cannot
// have an empty name. The controllers of LocalClusters and LocalMachines look up existing machines by this name.
func ResolveMachineName(instance, providerID string, o types.NamespacedName) string {
	if providerID == "" {
		return MachineName(instance, o)
	}
	if name, ok := parseProviderID(providerID, o); ok {
		return name
	}
	return ""
}

// isNameOf reports whether the name can be the name of the object's machine or network in any instance: everything
// except the digest at its end is derived from the object.
func isNameOf(name string, o types.NamespacedName) bool {
	like := engineName("", o)
	if len(name) != len(like) {
		return false
	}
	stem := len(like) - digestLen
	return name[:stem] == like[:stem] && strings.Trim(name[stem:], "0123456789abcdef") == ""
}

// Ref identifies the machine or network that belongs to an object. Name and ID only locate it. They may come from a
// field that other users can write, so a resource found by them is used only if [Ref.Matches] accepts it.
type Ref struct {
	// Object is the LocalMachine or LocalCluster.
	Object types.NamespacedName
	// Name is the expected name.
	Name string
	// ID is the ID observed earlier. Empty: any.
	ID string
	// ControlPlane is set if the machine runs a control plane, so that the lookup works before the machine exists.
	ControlPlane bool
	// Cluster is the name of the Cluster in the object's metadata, which other users can write, too.
	Cluster string
}

// ClusterKey returns the namespace and name of the Cluster.
func (r Ref) ClusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Object.Namespace, Name: r.Cluster}
}

// Matches reports whether a resource with this name and these labels was created for the object: by any instance, for
// an object of this namespace and name, with a name that the object can have. It does not check whether the resource
// belongs to this instance (see package hosttransfer). It ignores the UID of the object, which changes in a move or a
// restore. The name may be derived from another instance than the one that created the resource, because an object that
// is restored into another management cluster retains its provider ID and thereby the name. A backend calls it for each
// resource that it finds.
func (r Ref) Matches(name string, labels map[string]string) bool {
	return labels[LabelInstance] != "" && labels[LabelObject] == r.Object.String() && isNameOf(name, r.Object)
}

// Labels returns the labels of the resources that the instance creates for the object. A backend sets them when it
// creates a resource.
func (o Owner) Labels(instance string) map[string]string {
	return map[string]string{
		LabelInstance: instance, LabelCluster: o.Object.Namespace + "/" + o.Cluster, LabelObject: o.Object.String(), LabelUID: string(o.UID),
	}
}

// ImageRepository is the prefix of the names of the images that `slipway image build` builds, and of the images inside
// them.
const ImageRepository = "slipway.dev"

// DefaultImage returns the name of the node image that `slipway image build` builds for a Kubernetes version, which has
// a leading v. Package nodeimage computes the same names. Control plane nodes have their own image because they need
// more programs.
func DefaultImage(version string, controlPlane bool) string {
	if controlPlane {
		return ImageRepository + "/node-control-plane:" + version
	}
	return ImageRepository + "/node:" + version
}

// truncateName returns a name of at most 63 characters. It appends sum if the name is too long, or always.
func truncateName(name, sum string, always bool) string {
	if len(name) <= maxName && !always {
		return name
	}
	if room := maxName - len(sum) - 1; len(name) > room {
		name = strings.TrimRight(name[:room], "-.")
	}
	return name + "-" + sum
}

// digestLen is the length of a digest in a name.
const digestLen = 8

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return hex.EncodeToString(sum[:digestLen/2])
}

// PoolAnnotation on a LocalMachine names the LocalMachinePool that created it. The controller owner reference cannot
// serve this purpose, because it is transferred to the Machine.
const PoolAnnotation = "infrastructure.slipway.dev/pool"

// ReasonMachineRemoved is the reason of the condition MachineProvisioned of a LocalMachine whose machine was removed
// after it was provisioned, and which therefore has to be replaced. The LocalMachinePool controller recognizes it.
const ReasonMachineRemoved = contract.ReasonMachineRemoved
