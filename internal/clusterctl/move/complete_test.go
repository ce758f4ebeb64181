package move_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
)

// ready is a Cluster of the foreign provider.
func ready(kind string) client.Object {
	return object(core, "Cluster", "f", set(map[string]any{"apiGroup": "foo.example.org", "kind": kind, "name": "f"}, "spec", "infrastructureRef"),
		set(map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true}, "status", "initialization"))
}

func global(o *unstructured.Unstructured) { o.SetNamespace("") }

func ownedByTwo(a, b metav1.OwnerReference) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetOwnerReferences([]metav1.OwnerReference{a, b}) }
}

func ref(apiVersion, kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(kind + "-" + name)}
}

// MV-01, MV-02: objects of kinds without clusterctl's label go along where a label of a contract or of a provider marks the kind. Everything else
// that is linked to what moves is a problem of a move, of an export and of a backup, and all problems are reported at once.
func TestCompleteOrRefused(t *testing.T) {
	subnetLabel := "label CustomResourceDefinition foosubnets.foo.example.org with clusterctl.cluster.x-k8s.io"
	cases := map[string]struct {
		reason         string
		source, target []client.Object
		want           []string // problems; none: it is complete
		also           []string // at the target
		not            string   // is no problem
		moves          bool     // only a move is refused: what is saved to files is not deleted
	}{
		"labels of contract and provider": {
			reason: "a CRD that was applied with kubectl has one of these labels",
			source: []client.Object{ready("FooCluster"), object(foo, "FooCluster", "f", ownedBy(core, "Cluster", "f")), object(foo, "FooNetwork", "f", ownedBy(foo, "FooCluster", "f"))},
			also:   []string{"FooCluster ns/f of Cluster/f", "FooNetwork ns/f of FooCluster/f"},
		},
		"reference": {
			reason: "the source's garbage collector would delete the infrastructure",
			source: []client.Object{ready("FooSubnet"), object(foo, "FooSubnet", "f", ownedBy(core, "Cluster", "f"))},
			want:   []string{"Cluster ns/f refers to FooSubnet ns/f of foo.example.org, which does not move: " + subnetLabel},
		},
		"reference to nothing": {reason: "what does not exist is not lost", source: []client.Object{ready("FooSubnet")}},
		"reference to what is there": {
			reason: "the target has it already",
			source: []client.Object{ready("FooSubnet"), object(foo, "FooSubnet", "f")},
			target: []client.Object{object(foo, "FooSubnet", "f")},
		},
		"reference to a global object": {reason: "cluster-scoped objects stay", source: []client.Object{ready("FooIdentity"), object(foo, "FooIdentity", "f", global)}},
		"owner": {
			reason: "the owner at the source would create it again",
			source: []client.Object{object(foo, "FooGroup", "g"), object(core, "Machine", "x", ownedByTwo(ref(core, "Cluster", "a"), ref(foo, "FooGroup", "g")), set("node", "status", "nodeRef", "name"))},
			want:   []string{"Machine ns/x is owned by FooGroup ns/g of foo.example.org, which does not move: label CustomResourceDefinition foogroups.foo.example.org with"},
		},
		"owner that is gone": {
			reason: "an owner of another UID does not exist any more",
			source: []client.Object{object(core, "Machine", "x", ownedByTwo(ref(core, "Cluster", "a"), ref(foo, "FooGroup", "g")), set("node", "status", "nodeRef", "name"))},
		},
		"dependents": {
			reason: "what belongs to what moves would be deleted at the source, and what belongs to that, too",
			source: []client.Object{object(foo, "FooSubnet", "s", ownedBy(infra, "InfraCluster", "a")), object(foo, "FooGroup", "g", ownedBy(foo, "FooSubnet", "s")), object(foo, "FooGroup", "h", ownedBy(foo, "FooSubnet", "s"))},
			want: []string{
				"InfraCluster ns/a owns FooSubnet ns/s of foo.example.org, which does not move: " + subnetLabel,
				"FooSubnet ns/s owns FooGroup ns/g of foo.example.org (and 1 more of this kind), which does not move",
			},
		},
		"dependents of built-in kinds": {
			reason: "the garbage collector of the source would delete them; it would delete what they own themselves, too, which is not repeated",
			source: []client.Object{
				object("apps/v1", "Deployment", "d", ownedBy(infra, "InfraCluster", "a")), object("apps/v1", "ReplicaSet", "d-1", ownedBy("apps/v1", "Deployment", "d")),
				object("v1", "Service", "s", ownedBy(core, "Cluster", "a")), object("v1", "Service", "t", ownedBy(core, "Cluster", "a")),
				object("v1", "PersistentVolumeClaim", "p", ownedBy(foo, "FooSubnet", "s")), object(foo, "FooSubnet", "s", ownedBy(infra, "InfraCluster", "a")),
				object("apps/v1", "Deployment", "other"), object("v1", "ConfigMap", "owned", ownedBy(core, "Cluster", "a")),
			},
			want: []string{
				"\n  - Cluster ns/a owns Service ns/s of the core API group (and 1 more of this kind), which does not move: remove the owner reference to retain the object in the source, or delete the object: the garbage collector deletes it after the move",
				"\n  - InfraCluster ns/a owns Deployment ns/d of apps, which does not move: remove the owner reference",
				"\n  - FooSubnet ns/s owns PersistentVolumeClaim ns/p of the core API group, which does not move: remove the owner reference",
			},
			not:   "ReplicaSet",
			moves: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source, target := management(nil, world(tc.source...)...), management(nil, tc.target...)
			p := &process{}
			o := instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})
			attempts := map[string]func() error{
				"backup":    func() error { _, err := move.Snapshot(t.Context(), source, o.Scope); return err },
				"directory": func() error { _, err := move.PlanExport(t.Context(), source, o); return err },
				"move":      func() error { _, err := move.New(p.through(source), p.through(target), o).Run(t.Context()); return err },
			}
			for _, way := range []string{"backup", "directory", "move"} {
				err := attempts[way]()
				if tc.not != "" && err != nil && strings.Contains(err.Error(), tc.not) {
					t.Errorf("%s: %s: %v", way, tc.reason, err)
				}
				if tc.moves && way != "move" {
					if err != nil && strings.Contains(err.Error(), "garbage collector") {
						t.Errorf("%s: it deletes nothing: %v", way, err)
					}
					continue
				}
				if len(tc.want) == 0 && err != nil && (way == "move" || len(tc.target) == 0) {
					t.Errorf("%s: %s: %v", way, tc.reason, err)
				}
				for _, want := range tc.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %s: got %v, want %s", way, tc.reason, err, want)
					}
				}
			}
			if len(tc.want) > 0 && p.writes > 0 {
				t.Errorf("%d writes before the refusal", p.writes)
			}
			for _, want := range tc.also {
				if got := contents(t, target); !slices.Contains(got, want) {
					t.Errorf("the target lacks %s: %q", want, got)
				}
			}
		})
	}
}

// MV-01: a move by an account that may not list a built-in kind is refused, with one sentence for all such kinds.
func TestBuiltInKindsThatCannotBeListed(t *testing.T) {
	hidden := interceptor.NewClient(management(nil, world()...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if gvk := l.GetObjectKind().GroupVersionKind(); gvk.Group == "apps" {
				return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: gvk.Kind}, "", errors.New("no role"))
			}
			return c.List(ctx, l, opts...)
		},
	})
	p := &process{}
	_, err := move.New(p.through(hidden), p.through(management(nil)), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context())
	want := "\n  - the account is not allowed to list DaemonSets, Deployments, ReplicaSets and StatefulSets in namespace ns of the source, but the moved objects may own some of them, " +
		"which the garbage collector would delete: use an account that is allowed to list them"
	if err == nil || !strings.HasSuffix(err.Error(), want) || p.writes > 0 {
		t.Errorf("got %v after %d writes, want %s", err, p.writes, want)
	}
}

// MV-08: credentials that belong to a cluster-scoped identity stay at the source and are not changed at the target, and so does a Secret that is
// merely named like a Cluster. An owner that both sides have owns the copy, too.
func TestWhatOthersUseStays(t *testing.T) {
	identity := func() client.Object { return object(infra, "Identity", "id", global) }
	source := management(nil, world(identity(), object("v1", "Secret", "id-cred", ownedBy(infra, "Identity", "id"), set("c291cmNl", "data", "k")),
		object("v1", "Secret", "a-db-password"))...)
	target := management(nil, identity(), object("v1", "Secret", "id-cred", set("dGFyZ2V0", "data", "k")))
	p := &process{}
	if _, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap ns/other", "Identity id", "Secret ns/a-db-password", "Secret ns/id-cred of Identity/id"}
	if diff := gocmp.Diff(want, contents(t, source)); diff != "" {
		t.Error("source:", diff)
	}
	there := object("v1", "Secret", "id-cred")
	if err := target.Get(t.Context(), client.ObjectKeyFromObject(there), there); err != nil {
		t.Fatal(err)
	}
	if value, _, _ := unstructured.NestedString(there.Object, "data", "k"); value != "dGFyZ2V0" {
		t.Errorf("the target's credentials were changed to %q", value)
	}
	if got := contents(t, target); slices.Contains(got, "Secret ns/a-db-password") {
		t.Error("the Secret of another program went along:", got)
	}
}

// An owner that is not of Cluster API and that both management clusters have is the owner at the target, too.
func TestOwnerOnBothSides(t *testing.T) {
	group := func() client.Object { return object(foo, "FooGroup", "g") }
	source := management(nil, world(group(), object("v1", "ConfigMap", "x", ownedByTwo(ref(core, "Cluster", "a"), ref(foo, "FooGroup", "g"))))...)
	target := management(nil, group())
	p := &process{}
	if _, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, target); !slices.Contains(got, "ConfigMap ns/x of Cluster/a of FooGroup/g") {
		t.Error(got)
	}
}

// MV-12: files of a namespace have the ClusterClass of another namespace that its Clusters are of, and its templates.
func TestClassOfAnotherNamespaceIsSaved(t *testing.T) {
	elsewhere := func(o *unstructured.Unstructured) { o.SetNamespace("classes") }
	c := object(core, "Cluster", "b", set(map[string]any{"classRef": map[string]any{"name": "shared", "namespace": "classes"}}, "spec", "topology"),
		set(map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true}, "status", "initialization"))
	source := management(nil, world(c, object(core, "ClusterClass", "shared", elsewhere,
		set(map[string]any{"templateRef": map[string]any{"apiVersion": infra, "kind": "InfraClusterTemplate", "name": "st"}}, "spec", "infrastructure")),
		object(infra, "InfraClusterTemplate", "st", elsewhere, ownedBy(core, "ClusterClass", "shared")), object(core, "ClusterClass", "unused", elsewhere))...)
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := move.ToDirectory(t.Context(), source, dir, instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})); err != nil {
		t.Fatal(err)
	}
	target := management(nil)
	p := &process{}
	if _, err := move.FromDirectory(t.Context(), p.through(target), dir, move.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	want := lines(clusterA, classOfA, []string{"Cluster ns/b", "ClusterClass classes/shared", "InfraClusterTemplate classes/st of ClusterClass/shared"})
	if diff := gocmp.Diff(want, contents(t, target)); diff != "" {
		t.Error(diff)
	}
}

// A namespace that does not exist is told from one without Clusters.
func TestNamespaceIsMissing(t *testing.T) {
	for namespace, want := range map[string]string{"default": "there is nothing that could be moved in this namespace", "nope": "there is no such namespace at the source"} {
		_, err := move.New(management(nil), management(nil), instant(move.Options{Scope: graph.Scope{Namespace: namespace}})).Plan(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", namespace, err, want)
		}
	}
}
