package graph

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/version"
)

// BlockMove is the annotation of the clusterctl contract with which a provider blocks the move of an object.
const BlockMove = "clusterctl.cluster.x-k8s.io/block-move"

// Provider is an installed provider in an inventory. Package transfer reads it from the inventory, and package
// operate/backup from an archive.
type Provider struct{ Name, Type, Version, Namespace string }

// CheckItem returns the problems that prevent the move of an object. The plan of a move calls it for each object.
func CheckItem(i Item) []string {
	if i.Copy {
		return nil
	}
	var out []string
	add := func(format string, args ...any) { out = append(out, i.ID.String()+" "+fmt.Sprintf(format, args...)) }
	if i.GetDeletionTimestamp() != nil {
		add("is being deleted: wait until it is deleted, or check which finalizer prevents the deletion")
	}
	switch {
	case i.ID.IsCore(Cluster):
		checkCluster(i.Object.Unstructured, add)
	case i.ID.IsCore(clusterClass), i.ID.IsSSH(SSHHost):
		if IsClassPaused(i.Object.Unstructured) {
			add("is already paused: remove its annotation %s first", clusterv1.PausedAnnotation)
		}
	case i.ID.IsCore("Machine"):
		if field(i.Object.Unstructured, "status", "nodeRef", "name") == "" {
			add("has no Node yet: wait until its Node has joined the cluster")
		}
	}
	return out
}

func checkCluster(o *unstructured.Unstructured, add func(string, ...any)) {
	if IsClusterPaused(o) {
		add("is already paused: set spec.paused to false first")
	}
	if !isTrueAt(o, "status", "initialization", "infrastructureProvisioned") && !isTrueAt(o, "status", "infrastructureReady") {
		add("has no infrastructure yet: wait until it is provisioned")
	}
	if !IsInitialized(o) {
		add("has no control plane yet: wait until it is initialized")
	}
}

// IsInitialized reports whether the control plane of a Cluster is initialized. A move with data waits for it at the
// target.
func IsInitialized(o *unstructured.Unstructured) bool {
	return isTrueAt(o, "status", "initialization", "controlPlaneInitialized") || hasTrueCondition(o, "ControlPlaneInitialized")
}

// MissingProviders returns the providers that the target lacks, or has in an older version. It returns none if the
// target has no inventory; then only kinds are compared. The plan of a move and the restore of a backup call it.
func MissingProviders(source, target []Provider) []string {
	if len(target) == 0 {
		return nil
	}
	var out []string
	for _, s := range source {
		at := slices.IndexFunc(target, func(t Provider) bool { return t.Name == s.Name && t.Type == s.Type })
		if at < 0 {
			out = append(out, fmt.Sprintf("the target does not have %s %s %s: install it in the target first", s.Type, s.Name, s.Version))
			continue
		}
		want, err1 := version.ParseSemantic(s.Version)
		have, err2 := version.ParseSemantic(target[at].Version)
		if err1 != nil || err2 != nil || have.Compare(want) < 0 {
			out = append(out, fmt.Sprintf("the target has %s %s in version %s, but the source has version %s: upgrade the target first", s.Type, s.Name, target[at].Version, s.Version))
		}
	}
	return out
}

// BlockedObjects returns the objects that a provider still blocks. Before a move creates anything at the target, it
// waits until there are none. Move.awaitRelease (package move) calls it.
func BlockedObjects(items []Item) []string {
	var out []string
	for _, i := range items {
		if _, has := i.GetAnnotations()[BlockMove]; has {
			out = append(out, i.ID.String())
		}
	}
	return out
}

func field(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

func isTrueAt(o *unstructured.Unstructured, path ...string) bool {
	v, _, _ := unstructured.NestedBool(o.Object, path...)
	return v
}

func hasTrueCondition(o *unstructured.Unstructured, name string) bool {
	return ConditionStatus(o, name) == "True"
}

// ConditionStatus returns the status of a condition, or "" if the object does not have it. Package move checks with it
// whether the store of a policy is available.
func ConditionStatus(o *unstructured.Unstructured, name string) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range all {
		if c, ok := one.(map[string]any); ok && c["type"] == name {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}

// IsClusterPaused reports whether a Cluster is paused. The plan of a move rejects a Cluster at the target that is not
// paused.
func IsClusterPaused(o *unstructured.Unstructured) bool { return isTrueAt(o, "spec", "paused") }

// IsClassPaused reports whether an object has the paused annotation.
func IsClassPaused(o *unstructured.Unstructured) bool {
	_, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}

// UnobservedPauses returns the Clusters and SSHHosts whose controller has not reported the pause yet. After 15 seconds
// it returns none, because the controller may not be running. The wait for the pause calls it together with
// [BlockedObjects].
func UnobservedPauses(items []Item, waited time.Duration) []string {
	const enough = 15 * time.Second
	if waited >= enough {
		return nil
	}
	var out []string
	for _, i := range items {
		if (i.ID.IsCore(Cluster) || i.ID.IsSSH(SSHHost)) && !i.Copy && ConditionStatus(i.Object.Unstructured, clusterv1.PausedCondition) == "False" {
			out = append(out, i.ID.String())
		}
	}
	return out
}

// InfrastructureNamespaces returns the namespaces of infrastructure providers. A move also reads the Secrets of these
// namespaces, because identities of clusters may use them. Move.readObjects (package move) calls it.
func InfrastructureNamespaces(all []Provider) []string {
	var out []string
	for _, p := range all {
		if p.Type == "InfrastructureProvider" && !slices.Contains(out, p.Namespace) {
			out = append(out, p.Namespace)
		}
	}
	return out
}
