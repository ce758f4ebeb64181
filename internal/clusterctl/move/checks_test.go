package move_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
)

func installed(name, version string) client.Object {
	return object("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", name, set("CoreProvider", "type"), set(name, "providerName"), set(version, "version"))
}

func without(o client.Object, path ...string) client.Object {
	unstructured.RemoveNestedField(o.(*unstructured.Unstructured).Object, path...)
	return o
}

// MV-03, MV-04, MV-15: what is not whole, already paused, or not known to the target is refused, and nothing is written.
func TestRefusals(t *testing.T) {
	broken := func(n int, path ...string) []client.Object {
		all := cluster("b")
		without(all[n], path...)
		return all
	}
	cases := map[string]struct {
		source, target []client.Object
		versions       map[string]string
		want           string
	}{
		"no infrastructure": {source: broken(0, "status", "initialization", "infrastructureProvisioned"), want: "Cluster ns/b has no infrastructure yet"},
		"no control plane":  {source: broken(0, "status", "initialization", "controlPlaneInitialized"), want: "Cluster ns/b has no control plane yet"},
		"no node":           {source: broken(4, "status"), want: "Machine ns/b-1 has no Node yet"},
		"paused cluster": {
			source: []client.Object{object(core, "Cluster", "b", set(true, "spec", "paused"), set(map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true}, "status", "initialization"))},
			want:   "Cluster ns/b is already paused",
		},
		"paused class":             {source: []client.Object{object(core, "ClusterClass", "p", annotated("cluster.x-k8s.io/paused"))}, want: "ClusterClass ns/p is already paused"},
		"older provider":           {source: []client.Object{installed("core", "v1.14.2")}, target: []client.Object{installed("core", "v1.13.0")}, want: "in version v1.13.0, but the source has version v1.14.2: upgrade the target first"},
		"missing provider":         {source: []client.Object{installed("core", "v1.14.2")}, target: []client.Object{installed("else", "v1.13.0")}, want: "the target does not have CoreProvider core v1.14.2"},
		"missing kind":             {versions: map[string]string{"InfraMachine": "none"}, want: "the target does not have the kind InfraMachine"},
		"other version":            {versions: map[string]string{"InfraMachine": "infrastructure.example.org/v2"}, want: "the target does not have the kind InfraMachine"},
		"cluster is there, active": {target: []client.Object{object(core, "Cluster", "a")}, want: "the target has a Cluster ns/a already, which is not paused"},
		"control plane on the host": {
			source: []client.Object{object("controlplane.slipway.dev/v1alpha1", "HostedControlPlane", "a", ownedBy(core, "Cluster", "a"))},
			want:   "HostedControlPlane ns/a stands for something on the host of this management cluster",
		},
		"node on the host": {
			source: []client.Object{object("infrastructure.slipway.dev/v1alpha1", "LocalMachine", "a", ownedBy(core, "Cluster", "a"), set(map[string]any{}, "spec", "backend", "container"))},
			want:   "LocalMachine ns/a stands for something on the host of this management cluster",
		},
		"not a cluster there": {source: []client.Object{object("controlplane.slipway.dev/v1alpha1", "HostedControlPlane", "a", ownedBy(core, "Cluster", "a"), set(map[string]any{}, "spec", "backend", "simulated"))}, target: []client.Object{object(core, "Cluster", "a")}, want: "which is not paused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source, target := management(nil, world(tc.source...)...), management(tc.versions, tc.target...)
			p := &process{}
			_, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if p.writes != 0 {
				t.Errorf("%d writes before the refusal", p.writes)
			}
		})
	}
}

// MV-15: the versions of what is built in say nothing of what the other side has installed: it is judged by kinds.
func TestBuiltInProvidersDoNotCount(t *testing.T) {
	builtIn := func() client.Object {
		o := installed("core", "v1.14.2")
		o.SetAnnotations(map[string]string{"clusterctl.slipway.dev/built-in": "true"})
		return o
	}
	for name, tc := range map[string]struct{ source, target client.Object }{
		"at the source": {builtIn(), installed("core", "v0.1.0")},
		"at the target": {installed("other", "v0.1.0"), builtIn()},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := management(nil, world(tc.source)...), management(nil, tc.target)
			p := &process{}
			if _, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// MV-06: a provider that does not let go is named, and everything is resumed; one that lets go is waited for.
func TestBlockMove(t *testing.T) {
	blocker := func() client.Object {
		return object(infra, "InfraCluster", "slow", ownedBy(core, "Cluster", "a"), annotated("clusterctl.cluster.x-k8s.io/block-move"))
	}
	source, target := management(nil, world(blocker())...), management(nil)
	before := contents(t, source)
	p := &process{}
	_, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "InfraCluster ns/slow") {
		t.Fatalf("got %v", err)
	}
	if diff := gocmp.Diff(before, contents(t, source)); diff != "" {
		t.Error("source:", diff)
	}
	if got := contents(t, target); len(got) > 0 {
		t.Error("target:", got)
	}
	o := move.Options{Scope: graph.Scope{Namespace: "ns"}, Report: func(line string) {
		if strings.Contains(line, "Waiting for the providers to release InfraCluster ns/slow") {
			live := blocker()
			live.SetAnnotations(nil)
			if err := source.Patch(t.Context(), live, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":null}}`))); err != nil {
				t.Error(err)
			}
		}
	}}
	if _, err := move.New(p.through(source), p.through(target), instant(o)).Run(t.Context()); err != nil {
		t.Error(err)
	}
	if got := contents(t, target); !slices.Contains(got, "InfraCluster ns/slow of Cluster/a") {
		t.Error("target:", got)
	}
}

// MV-01, MV-08: what the target has is updated; a global object that it has is left as it is, and stays at the source.
func TestExistingTarget(t *testing.T) {
	identity := func(size int64) client.Object {
		return object("infrastructure.example.org/v1", "Identity", "global", func(o *unstructured.Unstructured) { o.SetNamespace("") }, set(size, "spec", "size"))
	}
	there := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		object(infra, "InfraCluster", "a", set(int64(1), "spec", "size")), identity(7),
	}
	source, target := management(nil, world(identity(5))...), management(nil, there...)
	p := &process{}
	if _, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]int64{"InfraCluster a": 3, "Identity global": 7} {
		k, name, _ := strings.Cut(kind, " ")
		o := object(infra, k, name)
		key := client.ObjectKey{Namespace: map[string]string{"InfraCluster": "ns"}[k], Name: name}
		if err := target.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedInt64(o.Object, "spec", "size"); got != want {
			t.Errorf("%s: size %d, want %d", kind, got, want)
		}
	}
	if got := contents(t, source); !slices.Contains(got, "Identity global") {
		t.Error("the global object was deleted:", got)
	}
}

// MV-13: the dry run shows each step, and writes nothing.
func TestDryRun(t *testing.T) {
	source, target := management(nil, world()...), management(nil)
	p := &process{}
	plan, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns", Clusters: []string{"a"}}})).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"target: create Namespace ns", "both: write the journal ConfigMap slipway-move", "source: pause Cluster ns/a",
		"target: create ClusterClass ns/class (it stays at the source, too)", "target: create Cluster ns/a",
		"target: create InfraClusterTemplate ns/t (it stays at the source, too)", "target: create InfraCluster ns/a", "target: create Machine ns/a-1", "target: create Secret ns/a-ca",
		"target: create Secret ns/a-kubeconfig", "target: create InfraMachine ns/a-1", "target: read everything back and compare it with the source",
		"source: delete InfraMachine ns/a-1", "source: delete Secret ns/a-kubeconfig", "source: delete Secret ns/a-ca", "source: delete Machine ns/a-1",
		"source: delete InfraCluster ns/a", "source: delete Cluster ns/a", "target: resume Cluster ns/a", "both: delete the journal",
	}
	if diff := gocmp.Diff(want, plan.Steps()); diff != "" {
		t.Error(diff)
	}
	if p.writes != 0 {
		t.Errorf("%d writes", p.writes)
	}
}

// MV-14: a caller may change what is created, its namespace too.
func TestMutators(t *testing.T) {
	source, target := management(nil, world()...), management(nil)
	p := &process{}
	o := move.Options{Scope: graph.Scope{Namespace: "ns"}, Mutate: []func(*unstructured.Unstructured) error{func(o *unstructured.Unstructured) error {
		o.SetNamespace("other")
		return nil
	}}}
	if _, err := move.New(p.through(source), p.through(target), instant(o)).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, line := range lines(clusterA, classOfA) {
		want = append(want, strings.Replace(line, " ns/", " other/", 1))
	}
	if diff := gocmp.Diff(want, contents(t, target)); diff != "" {
		t.Error(diff)
	}
}
