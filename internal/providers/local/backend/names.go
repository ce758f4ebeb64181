package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// Labels of everything that a backend makes on the host.
const (
	// LabelInstance is the management cluster that made it.
	LabelInstance = "dev.slipway.instance"
	// LabelCluster is the namespace and name of the Cluster, joined by a slash.
	LabelCluster = "dev.slipway.cluster"
	// LabelObject is the namespace and name of the LocalCluster or LocalMachine, joined by a slash.
	LabelObject = "dev.slipway.object"
	// LabelUID is the UID of that object.
	LabelUID = "dev.slipway.uid"
	// LabelAddress is the address that a node keeps over restarts.
	LabelAddress = "dev.slipway.address"
	// LabelControlPlane is there, and "true", where the node runs a control plane.
	LabelControlPlane = "dev.slipway.control-plane"
	// LabelVersion is the Kubernetes version that a node image carries, by package nodeimage.
	LabelVersion = "dev.slipway.node.kubernetes"
)

// maxName is the longest name of a host (and a container, for which it is our choice).
const maxName = 63

// providerPrefix begins every provider ID of this provider.
const providerPrefix = "slipway:///"

// NetworkName returns the name of a LocalCluster's network, the same on every call.
func NetworkName(instance string, o types.NamespacedName) string { return engineName(instance, o) }

// MachineName returns the name of a LocalMachine's machine, the same on every call. It holds no UID: after a move
// or a restore the object has another one and is still about the same machine.
func MachineName(instance string, o types.NamespacedName) string { return engineName(instance, o) }

func engineName(instance string, o types.NamespacedName) string {
	return fit("slipway-"+o.Namespace+"-"+o.Name, digest(instance, o.Namespace, o.Name), true)
}

// Hostname returns the host name, which is also the Node's name, of a LocalMachine: the object's name where that is
// a host name, else one made from it.
func Hostname(name string) string {
	return fit(strings.ReplaceAll(name, ".", "-"), digest(name), strings.Contains(name, "."))
}

// ProviderID returns the identifier that the Node of a machine carries.
func ProviderID(machineName string) string { return providerPrefix + machineName }

// MachineOf returns the name of the machine that the provider ID of a LocalMachine stands for, and false if it is not
// one that this LocalMachine can have, here or in another management cluster. Whoever may write a LocalMachine chooses
// the ID, so that only what is certainly a name, and this object's, ever gets into a question to the engine.
func MachineOf(providerID string, o types.NamespacedName) (string, bool) {
	name, ok := strings.CutPrefix(providerID, providerPrefix)
	return name, ok && isNameOf(name, o)
}

// MachineNameOf returns the name in the provider ID of a LocalMachine, where there is one: it outlives a move to another
// management cluster. It returns an empty one for an ID that this object cannot have.
func MachineNameOf(instance, providerID string, o types.NamespacedName) string {
	if providerID == "" {
		return MachineName(instance, o)
	}
	name, ok := MachineOf(providerID, o)
	if !ok {
		return ""
	}
	return name
}

// isNameOf reports whether the name is that of the object's machine or network in some instance: all but the digest
// at its end follows from the object.
func isNameOf(name string, o types.NamespacedName) bool {
	like := engineName("", o)
	if len(name) != len(like) {
		return false
	}
	stem := len(like) - digestLen
	return name[:stem] == like[:stem] && strings.Trim(name[stem:], "0123456789abcdef") == ""
}

// Ref says which machine or network is meant: the one that belongs to the object. Name and ID are where to look for
// it; they may come from a field that others write, so that what is found there counts only if [Ref.Names] says so.
type Ref struct {
	// Object is the LocalMachine or LocalCluster.
	Object types.NamespacedName
	// Name that it is expected to have.
	Name string
	// ID that it had when it was looked at before; empty: any.
	ID string
	// ControlPlane tells that the machine runs a control plane, so that it can be looked for before there is one.
	ControlPlane bool
	// Cluster is the name of the Cluster that the object says it belongs to. It may come from others too.
	Cluster string
}

// Names reports whether something with this name and these labels was made for the object: by some instance, for an object of
// that namespace and name, with a name that the object can have. Whether it is this instance's is not said with that: see
// package custody. The object's UID is not looked at: after a move or a restore it has another one. Nor does the name have to be
// that of the maker: an object that was restored into another management cluster keeps its provider ID, and so the name.
func (r Ref) Names(name string, labels map[string]string) bool {
	return labels[LabelInstance] != "" && labels[LabelObject] == r.Object.String() && isNameOf(name, r.Object)
}

// Labels returns those of what is made for the object by the instance.
func (o Owner) Labels(instance string) map[string]string {
	return map[string]string{
		LabelInstance: instance, LabelCluster: o.Object.Namespace + "/" + o.Cluster, LabelObject: o.Object.String(), LabelUID: string(o.UID),
	}
}

// ImageRepository is the first part of the names of the images that `slipway image build` makes, and of those in them.
const ImageRepository = "slipway.dev"

// DefaultImage returns the name of the node image that `slipway image build` makes for a Kubernetes version, which
// has a leading v. Nodes that run a control plane need more programs than others.
func DefaultImage(version string, controlPlane bool) string {
	if controlPlane {
		return ImageRepository + "/node-control-plane:" + version
	}
	return ImageRepository + "/node:" + version
}

// fit makes a name of at most 63 characters; sum makes it unique where the name alone does not.
func fit(name, sum string, always bool) string {
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

// PoolAnnotation on a LocalMachine names the LocalMachinePool it was made for. It is not the owner reference, which
// passes to the Machine.
const PoolAnnotation = "infrastructure.slipway.dev/pool"

// ReasonMachineRemoved is the reason of the condition MachineProvisioned of a LocalMachine whose machine was removed
// after it was provisioned: it has to be replaced.
const ReasonMachineRemoved = contract.ReasonMachineRemoved
