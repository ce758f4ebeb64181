package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
)

// SSH kinds with special treatment. SSHHosts are in a namespace of the operator, so that a move follows their claims.
const (
	SSHHost    = "SSHHost"
	SSHMachine = "SSHMachine"
)

// IsSSH reports whether the ID has the given kind of the SSH provider. Packages move and transfer call it as well.
func (i ID) IsSSH(kind string) bool {
	return i.Group == infrav1.GroupVersion.Group && i.Kind == kind
}

// MachineOf returns the SSHMachine that has claimed an SSHHost, and whether there is one. A claim reserves the host for
// one SSHMachine; the SSHMachine has the same claim ID in its spec. Packages move and transfer find the SSHMachine of a
// host with it.
func MachineOf(host *unstructured.Unstructured) (machine ID, claimID string, claimed bool) {
	claim, claimed, _ := unstructured.NestedMap(host.UnstructuredContent(), "status", "claim")
	namespace, _ := claim["namespace"].(string)
	name, _ := claim["name"].(string)
	claimID, _ = claim["claimID"].(string)
	return ID{infrav1.GroupVersion.Group, SSHMachine, namespace, name}, claimID, claimed
}

// CredentialsOf returns the Secrets with the credentials of an SSHHost and its jump host. [Build] links these Secrets,
// and a move checks that they exist.
func CredentialsOf(host *unstructured.Unstructured) []ID {
	var out []ID
	for _, path := range [][]string{{"spec"}, {"spec", "jump"}} {
		if name := field(host, append(path, "credentialsRef", "name")...); name != "" {
			out = append(out, ID{Kind: "Secret", Namespace: host.GetNamespace(), Name: name})
		}
	}
	return out
}

// linkHost links an SSHHost to the SSHMachine that has claimed it. The SSHMachine must have the claim ID, because users
// can create one with any name. [Build] calls it.
func (g *Graph) linkHost(n *Node) {
	id, claimID, _ := MachineOf(n.Unstructured)
	if machine := g.byID[id]; machine != nil && claimID != "" && field(machine.Unstructured, "spec", "claimID") == claimID {
		n.boundToParents = true
		n.belongsTo(machine)
	}
}

// movesOnlyWithMachine reports whether an SSHHost is in use, so that its labels do not matter: it moves with its
// SSHMachine. The controller sets a label for `clusterctl move` then.
func (n *Node) movesOnlyWithMachine() bool {
	if !n.ID.IsSSH(SSHHost) || n.Saved {
		return false
	}
	_, _, claimed := MachineOf(n.Unstructured)
	return claimed || n.GetLabels()[MoveHierarchyLabel] == infrastructure.MoveInUse
}

// isOfHost reports whether an object is an SSHHost, or a Secret that an SSHHost owns. [Graph.Select] calls it.
func (n *Node) isOfHost() bool {
	return n.ID.IsSSH(SSHHost) || n.ID.Kind == "Secret" && slices.ContainsFunc(n.Owners, func(o *Node) bool { return o.ID.IsSSH(SSHHost) })
}

// sharedCredentials returns an SSHHost that does not move and has its credentials in a Secret that another SSHHost
// owns, with which the Secret would be deleted. [Graph.Select] rejects such a Secret.
func (n *Node) sharedCredentials() *Node {
	for _, p := range n.parents {
		if p.ID.IsSSH(SSHHost) && len(p.roots) == 0 && !slices.Contains(n.Owners, p) {
			return p
		}
	}
	return nil
}

// IsPausable reports whether a move pauses an object: the Clusters and ClusterClasses, from which other objects learn
// it, and the SSHHosts. Package move pauses and resumes the objects for which it returns true.
func (i ID) IsPausable() bool { return i.IsCore(Cluster) || i.IsCore(clusterClass) || i.IsSSH(SSHHost) }

// InPauseOrder returns the IDs that a move pauses or resumes in this order: SSHHosts are known before the Clusters
// whose machines use them, and classes before the Clusters of them. Package move pauses and resumes with it.
func InPauseOrder[T any](all []T, id func(T) ID) (out [][]T) {
	for _, is := range []func(ID) bool{
		func(i ID) bool { return i.IsSSH(SSHHost) }, func(i ID) bool { return i.IsCore(clusterClass) }, func(i ID) bool { return i.IsCore(Cluster) },
	} {
		out = append(out, slices.DeleteFunc(slices.Clone(all), func(t T) bool { return !is(id(t)) }))
	}
	return out
}
