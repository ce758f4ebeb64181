package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Link is a reference from an object that a move includes to another object. [Graph.UnselectedLinks] returns it, and
// package transfer resolves it to an object.
type Link struct {
	From, To ID
	// UID is the UID of an owner; empty if To is referenced in the spec of From.
	UID types.UID
	// Read means that To was read, but not selected.
	Read bool
}

// References returns the objects in the same namespace that the spec of an object refers to. A reference has a kind, a
// name, and a group or API version; Cluster API kinds also refer to Secrets and ConfigMaps without a group. [Build]
// follows them, and package transfer reads the objects of a ClusterClass with them.
func References(o *unstructured.Unstructured) []ID {
	from := IDOf(o)
	var out []ID
	visit(o.UnstructuredContent()["spec"], func(fields map[string]any) {
		kind, _ := fields["kind"].(string)
		name, _ := fields["name"].(string)
		group, typed := groupOf(fields)
		if kind == "" || name == "" || !typed && !isUntyped(from, kind) {
			return
		}
		out = append(out, ID{group, kind, from.Namespace, name})
	})
	return out
}

// groupOf returns the group in a reference, and whether it has one.
func groupOf(fields map[string]any) (string, bool) {
	if version, ok := fields["apiVersion"].(string); ok && version != "" {
		gv, err := schema.ParseGroupVersion(version)
		return gv.Group, err == nil
	}
	group, _ := fields["apiGroup"].(string)
	return group, group != ""
}

// isUntyped reports whether a kind without a group refers to a Secret or ConfigMap, as in the resources of a
// ClusterResourceSet.
func isUntyped(from ID, kind string) bool {
	return (from.Group == clusterv1.GroupVersion.Group || from.Group == addonsv1.GroupVersion.Group) && (kind == "Secret" || kind == "ConfigMap")
}

// secretsOf returns the names of Secrets that the spec of an object refers to: file contents and passwords of a
// KubeadmConfig, the bootstrap data of a Machine, the credentials of a store or an SSHHost.
func secretsOf(o *unstructured.Unstructured) []string {
	var out []string
	visit(o.UnstructuredContent()["spec"], func(fields map[string]any) {
		for _, key := range []string{"contentFrom", "passwdFrom"} {
			if from, ok := fields[key].(map[string]any); ok {
				name, _, _ := unstructured.NestedString(from, "secret", "name")
				out = append(out, name)
			}
		}
		for _, key := range []string{"dataSecretName", "credentialsSecretName"} {
			name, _ := fields[key].(string)
			out = append(out, name)
		}
	})
	if IDOf(o).IsSSH(SSHHost) {
		for _, id := range CredentialsOf(o) {
			out = append(out, id.Name)
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// visit calls do for every map in a value.
func visit(value any, do func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		do(v)
		for _, inner := range v {
			visit(inner, do)
		}
	case []any:
		for _, inner := range v {
			visit(inner, do)
		}
	}
}

// linkReferences adds links from the references in the spec of an object: the referenced object moves with the
// referring one. This includes restored objects, whose owner references are still missing. [Build] calls it.
func (g *Graph) linkReferences(n *Node) {
	for _, id := range References(n.Unstructured) {
		to := g.byID[id]
		if to == nil || to.ID.IsCore(Cluster) || to.ID.IsCore(clusterClass) || to.owns(n, 0) {
			continue
		}
		to.boundToParents = to.boundToParents || n.ID.IsCore(clusterResourceSet)
		to.belongsTo(n)
	}
	for _, name := range secretsOf(n.Unstructured) {
		if secret := g.byID[ID{Kind: "Secret", Namespace: n.ID.Namespace, Name: name}]; secret != nil && !secret.owns(n, 0) {
			secret.belongsTo(n)
		}
	}
}

// UnselectedLinks returns references and owner references of the selection to objects in the same namespace that are
// not selected. It ignores the owners of objects labelled to move alone, and of copied objects, which remain at the
// source together with their owners. Package transfer reports them as objects that stay behind.
func (g *Graph) UnselectedLinks(s Selection) []Link {
	chosen := map[ID]bool{}
	for _, i := range s.Items() {
		chosen[i.ID] = true
	}
	for id := range s.refused {
		chosen[id] = true // already reported as a problem
	}
	var out []Link
	for _, i := range s.Items() {
		if i.ID.Namespace == "" {
			continue
		}
		for _, to := range References(i.Unstructured) {
			global := ID{to.Group, to.Kind, "", to.Name}
			if !chosen[to] && g.byID[global] == nil {
				out = append(out, Link{From: i.ID, To: to, Read: g.byID[to] != nil})
			}
		}
		if !i.Copy && !i.isAlone() {
			out = append(out, g.unselectedOwners(i.Node, chosen)...)
		}
	}
	return out
}

func (g *Graph) unselectedOwners(n *Node, chosen map[ID]bool) []Link {
	var out []Link
	for _, ref := range n.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			continue
		}
		to := ID{gv.Group, ref.Kind, n.ID.Namespace, ref.Name}
		at := slices.IndexFunc(n.Owners, func(o *Node) bool { return o.GetUID() == ref.UID })
		switch {
		case at < 0 && (g.byID[to] != nil || g.byID[ID{to.Group, to.Kind, "", to.Name}] != nil):
			// An object with this name was read, and has another UID: the owner no longer exists.
		case at < 0:
			out = append(out, Link{From: n.ID, To: to, UID: ref.UID})
		case n.Owners[at].ID.Namespace != "" && !chosen[to]:
			out = append(out, Link{From: n.ID, To: to, UID: ref.UID, Read: true})
		}
	}
	return out
}

// isAlone reports whether an object moves only because of the label [MoveLabel].
func (n *Node) isAlone() bool { return len(n.roots) == 1 && n.roots[n] && !n.isRootByKind() }
