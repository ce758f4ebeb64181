package rootcause

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var now = time.Date(2026, 11, 28, 18, 0, 0, 0, time.UTC)

// groups has the API groups of the kinds in tests. Kinds that are not listed are of Cluster API's core.
var groups = map[string]string{
	"LocalCluster": "infrastructure.slipway.dev/v1alpha1", "LocalMachine": "infrastructure.slipway.dev/v1alpha1",
	"LocalMachineTemplate": "infrastructure.slipway.dev/v1alpha1",
	"SSHHost":              "infrastructure.slipway.dev/v1alpha1", "SSHMachine": "infrastructure.slipway.dev/v1alpha1", "SSHCluster": "infrastructure.slipway.dev/v1alpha1",
	"HostedControlPlane": "controlplane.slipway.dev/v1alpha1", "KubeadmControlPlane": "controlplane.cluster.x-k8s.io/v1beta2",
	"KubeadmConfig": "bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate": "bootstrap.cluster.x-k8s.io/v1beta2",
	"FooCluster": "infrastructure.foo.dev/v1", "FooMachine": "infrastructure.foo.dev/v1", "FooMachinePool": "infrastructure.foo.dev/v1",
	"ExtensionConfig": "runtime.cluster.x-k8s.io/v1beta2", "ClusterResourceSet": "addons.cluster.x-k8s.io/v1beta2",
	"Secret": "v1", "ConfigMap": "v1",
}

func versionOf(kind string) string {
	if version := groups[kind]; version != "" {
		return version
	}
	return "cluster.x-k8s.io/v1beta2"
}

// refTo returns the reference to an object of the namespace ns: "Kind name".
func refTo(object string) Ref {
	kind, name, _ := strings.Cut(object, " ")
	group, _, grouped := strings.Cut(versionOf(kind), "/")
	if !grouped {
		group = ""
	}
	ref := Ref{Group: group, Kind: kind, Namespace: "ns", Name: name}
	if kind == "ExtensionConfig" {
		ref.Namespace = ""
	}
	return ref
}

type option func(u *unstructured.Unstructured)

// thing returns an object, "Kind name", that was created an hour ago. It has a status.
func thing(object string, options ...option) *unstructured.Unstructured {
	ref := refTo(object)
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"observedGeneration": int64(1)}}}
	u.SetAPIVersion(versionOf(ref.Kind))
	u.SetKind(ref.Kind)
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	u.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
	u.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "c"})
	for _, o := range options {
		o(u)
	}
	return u
}

// cond adds a condition that changed some minutes ago.
func cond(conditionType, status, reason, message string, minutes int) option {
	return func(u *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		list = append(list, map[string]any{
			"type": conditionType, "status": status, "reason": reason, "message": message,
			"lastTransitionTime": now.Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339),
		})
		_ = unstructured.SetNestedSlice(u.Object, list, "status", "conditions")
	}
}

func bad(conditionType, reason, message string, minutes int) option {
	return cond(conditionType, "False", reason, message, minutes)
}

func owner(object string) option {
	return func(u *unstructured.Unstructured) {
		ref := refTo(object)
		yes := true
		u.SetOwnerReferences(append(u.GetOwnerReferences(), metav1.OwnerReference{APIVersion: versionOf(ref.Kind), Kind: ref.Kind, Name: ref.Name, UID: "u", Controller: &yes}))
	}
}

func refers(object string, path ...string) option {
	return func(u *unstructured.Unstructured) {
		ref := refTo(object)
		_ = unstructured.SetNestedField(u.Object, map[string]any{"apiGroup": ref.Group, "kind": ref.Kind, "name": ref.Name}, append([]string{"spec"}, path...)...)
	}
}

func infrastructure(object string) option { return refers(object, "infrastructureRef") }
func bootstrap(object string) option      { return refers(object, "bootstrap", "configRef") }
func plane(object string) option          { return refers(object, "controlPlaneRef") }

func field(value any, path ...string) option {
	return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, path...) }
}

func deleted(minutes int, finalizers ...string) option {
	return func(u *unstructured.Unstructured) {
		at := metav1.NewTime(now.Add(-time.Duration(minutes) * time.Minute))
		u.SetDeletionTimestamp(&at)
		u.SetFinalizers(finalizers)
	}
}

func newTime(at time.Time) *metav1.Time {
	t := metav1.NewTime(at)
	return &t
}

func noStatus() option {
	return func(u *unstructured.Unstructured) { delete(u.Object, "status") }
}

func labelled(labels map[string]string) option {
	return func(u *unstructured.Unstructured) { u.SetLabels(labels) }
}

func unlabelled(u *unstructured.Unstructured) { u.SetLabels(nil) }

func annotated(key, value string) option {
	return func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{key: value}) }
}

// healthCheck returns a MachineHealthCheck for the workers, with a timeout of five minutes for Nodes that are not ready.
func healthCheck(options ...option) *unstructured.Unstructured {
	return thing("MachineHealthCheck c-workers", append([]option{
		owner("Cluster c"),
		field("c", "spec", "clusterName"),
		field(map[string]any{"matchLabels": map[string]any{"cluster.x-k8s.io/cluster-name": "c"}}, "spec", "selector"),
		field([]any{map[string]any{"type": "Ready", "status": "Unknown", "timeoutSeconds": int64(300)}}, "spec", "checks", "unhealthyNodeConditions"),
		field([]any{map[string]any{"type": "InfrastructureReady", "status": "False", "timeoutSeconds": int64(600)}}, "spec", "checks", "unhealthyMachineConditions"),
	}, options...)...)
}

// memory returns a graph of objects.
func memory(objects ...*unstructured.Unstructured) *Memory {
	m := &Memory{}
	for _, o := range objects {
		m.Add(o)
	}
	return m
}

// path returns the objects of a chain.
func path(c Chain) string {
	var names []string
	for _, l := range c.Links {
		names = append(names, l.Object.String())
	}
	return strings.Join(names, " > ")
}

// checkExplained fails if nothing explains an object.
func checkExplained(t *testing.T, g Graph, of string) Chain {
	t.Helper()
	c, found := Explain(g, refTo(of), now)
	if !found {
		t.Fatalf("nothing explains %s", of)
	}
	return c
}

const minute = time.Minute
