package mirror_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

func clusterKind() schema.GroupKind {
	return schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Cluster"}
}

func newMirror(t *testing.T, api *mirrortest.API, o mirror.Options) *mirror.Mirror {
	t.Helper()
	m, err := mirror.New(api.Config(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLoad(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a")+"\n---\n"+mirrortest.Cluster("other", "b"))
	api.Put(t, "{apiVersion: infra.example.com/v1, kind: FooMachine, metadata: {namespace: team, name: foo}}\n---\n{apiVersion: infra.example.com/v1, kind: Other, metadata: {namespace: team, name: other}}")
	m := newMirror(t, api, mirror.Options{})
	if err := m.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[schema.GroupKind]int{
		clusterKind(): 2, {Group: clusterv1.GroupVersion.Group, Kind: "Machine"}: 4,
		{Group: "infra.example.com", Kind: "FooMachine"}: 1, // by the label of its CRD
		{Group: "infra.example.com", Kind: "Other"}:      0,
	} {
		if got := len(m.Store.Objects(kind, "")); got != want {
			t.Errorf("%s: %d objects, want %d", kind, got, want)
		}
	}
	if s := m.Status(); !s.Synced || len(s.Unreadable) > 0 || s.Err != nil {
		t.Errorf("the status is %+v", s)
	}
	requests := map[string]int{}
	for _, r := range api.Requests() {
		if requests[r]++; requests[r] > 1 {
			t.Errorf("request %s is sent again", r)
		}
		if strings.Contains(r, "secrets") || strings.Contains(r, "configmaps") || !strings.HasPrefix(r, "GET ") {
			t.Errorf("request %s", r)
		}
	}
}

func TestLoadNamespace(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a")+"\n---\n"+mirrortest.Cluster("other", "b"))
	m := newMirror(t, api, mirror.Options{Namespace: "team"})
	if err := m.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(m.Store.Objects(clusterKind(), "")); got != 1 {
		t.Errorf("%d clusters", got)
	}
}

func TestUnreadableKinds(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Forbid("customresourcedefinitions")
	api.Forbid("localmachines")
	m := newMirror(t, api, mirror.Options{})
	if err := m.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []mirror.Unreadable{{Kind: schema.GroupKind{Group: "infrastructure.slipway.dev", Kind: "LocalMachine"}, Reason: "you may not list and watch this kind"}}
	if diff := cmp.Diff(want, m.Status().Unreadable); diff != "" {
		t.Error(diff)
	}
	api.Forbid("clusters")
	if err := newMirror(t, api, mirror.Options{}).Load(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("forbidden Clusters: %v", err)
	}
}

// An object is missing only if all objects of its kind are copied.
func TestIsMissing(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Forbid("localmachines")
	m := newMirror(t, api, mirror.Options{})
	machine := rootcause.Ref{Group: "cluster.x-k8s.io", Kind: "Machine", Namespace: "team", Name: "none"}
	if m.Store.IsMissing(machine) {
		t.Error("an object is missing before the kinds are read")
	}
	if err := m.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	exists, unreadable, unknown := machine, machine, machine
	exists.Name = "a-cp"
	unreadable.Group, unreadable.Kind = "infrastructure.slipway.dev", "LocalMachine"
	unknown.Kind = "Thing"
	for of, want := range map[rootcause.Ref]bool{machine: true, exists: false, unreadable: false, unknown: false} {
		if got := m.Store.IsMissing(of); got != want {
			t.Errorf("%s is missing: %t", of, got)
		}
	}
}

func TestTrim(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Put(t, `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata:
  namespace: team
  name: long
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", kept: "yes"}
  managedFields: [{manager: provider, operation: Update, subresource: status, fieldsV1: {f:status: {}}}, {manager: kubectl, operation: Apply, fieldsV1: {f:spec: {}}}]
spec: {files: [{content: "`+strings.Repeat("x", 5000)+`"}]}
status: {conditions: [{type: Ready, status: "True"}], deprecated: {v1beta1: {conditions: [{type: Ready}]}}}`)
	m := newMirror(t, api, mirror.Options{})
	if err := m.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	u, ok := m.Store.Get(rootcause.Ref{Group: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Namespace: "team", Name: "long"})
	if !ok {
		t.Fatal("the object is missing")
	}
	if diff := cmp.Diff(map[string]string{"kept": "yes"}, u.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]metav1.ManagedFieldsEntry{{Manager: "provider", Operation: "Update", Subresource: "status"}}, u.GetManagedFields()); diff != "" {
		t.Error(diff)
	}
	files, _, _ := unstructured.NestedSlice(u.Object, "spec", "files")
	if content := files[0].(map[string]any)["content"].(string); len(content) > 1100 {
		t.Errorf("the content has %d bytes", len(content))
	}
	if _, found, _ := unstructured.NestedMap(u.Object, "status", "deprecated"); found {
		t.Error("deprecated conditions remain")
	}
}

// A change is reported if the stored content differs, in whatever order the conditions are written.
func TestPut(t *testing.T) {
	object := func(version, label, conditions string) *unstructured.Unstructured {
		return mirrortest.Objects(`{apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachine, metadata: {namespace: team, name: m, uid: u, resourceVersion: "` + version + `", labels: {team: ` + label + `},
  managedFields: [{manager: m, operation: Update, subresource: status, time: "2026-05-04T11:00:0` + version + `Z"}]}, status: {conditions: [` + conditions + `]}}`)[0]
	}
	const ready, paused = `{type: Ready, status: "True"}`, `{type: Paused, status: "False"}`
	reported := 0
	s := mirror.NewStore(func(mirror.Change) { reported++ })
	for _, c := range []struct {
		what    string
		object  *unstructured.Unstructured
		changes int
	}{
		{"a new object", object("1", "a", ready+","+paused), 1},
		{"the same version", object("1", "b", paused), 0},
		{"another version with the same content", object("2", "a", ready+","+paused), 0},
		{"another order of the conditions", object("3", "a", paused+","+ready), 0},
		{"a condition less", object("4", "a", ready), 1},
		{"another status", object("5", "a", `{type: Ready, status: "False"}`), 1},
		{"another label", object("6", "b", `{type: Ready, status: "False"}`), 1},
	} {
		reported = 0
		s.Put(c.object)
		if reported != c.changes {
			t.Errorf("%s: %d changes are reported, want %d", c.what, reported, c.changes)
		}
	}
	u, _ := s.Get(rootcause.Ref{Group: "infrastructure.slipway.dev", Kind: "LocalMachine", Namespace: "team", Name: "m"})
	s.Put(object("7", "b", `{type: Ready, status: "False"}`))
	if now, _ := s.Get(rootcause.RefOf(u)); now.GetResourceVersion() != "7" {
		t.Errorf("the resource version is %s", now.GetResourceVersion())
	}
}

// The tree of a cluster is the same from the copy and from the API.
func TestReader(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	m := newMirror(t, api, mirror.Options{})
	if err := m.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(api.Requests())
	s, err := describe.Read(t.Context(), m.Reader(), client.ObjectKey{Namespace: "team", Name: "a"}, describe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if root := describe.Build(s, describe.Options{}); root.Find("Machine", "a-md-a-1") == nil || root.Find("LocalCluster", "a") == nil {
		t.Errorf("the tree lacks objects:\n%s", describe.Render(root, describe.Style{}))
	}
	if got := api.Requests()[before:]; len(got) > 0 {
		t.Errorf("requests for copied kinds: %v", got)
	}
	if _, err := describe.Read(t.Context(), m.Reader(), client.ObjectKey{Namespace: "team", Name: "b"}, describe.Options{}); !apierrors.IsNotFound(err) {
		t.Errorf("a missing cluster: %v", err)
	}
}

func TestClustersOf(t *testing.T) {
	s := mirror.NewStore(nil)
	for _, u := range mirrortest.Objects(mirrortest.Cluster("team", "a")) {
		s.Put(u)
	}
	parse := func(text string) *unstructured.Unstructured { return mirrortest.Objects(text)[0] }
	a := []fleet.Key{{Namespace: "team", Name: "a"}}
	for name, tc := range map[string]struct {
		object string
		want   []fleet.Key
	}{
		"cluster": {"{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {namespace: team, name: a}}", a},
		"label":   {"{apiVersion: x/v1, kind: X, metadata: {namespace: team, name: x, labels: {cluster.x-k8s.io/cluster-name: a}}}", a},
		"spec":    {"{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineHealthCheck, metadata: {namespace: team, name: x}, spec: {clusterName: a}}", a},
		"owner":   {"{apiVersion: x/v1, kind: X, metadata: {namespace: team, name: x, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: a-cp}]}}", a},
		"class":   {"{apiVersion: cluster.x-k8s.io/v1beta2, kind: ClusterClass, metadata: {namespace: team, name: local}}", a},
		"foreign": {"{apiVersion: x/v1, kind: X, metadata: {namespace: team, name: x}}", nil},
	} {
		if diff := cmp.Diff(tc.want, s.ClustersOf(parse(tc.object))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	// A cycle of owners ends.
	for _, pair := range [][2]string{{"x", "y"}, {"y", "x"}} {
		s.Put(parse("{apiVersion: x/v1, kind: X, metadata: {namespace: team, name: " + pair[0] + ", ownerReferences: [{apiVersion: x/v1, kind: X, name: " + pair[1] + "}]}}"))
	}
	u, _ := s.Get(rootcause.Ref{Group: "x", Kind: "X", Namespace: "team", Name: "x"})
	if got := s.ClustersOf(u); got != nil {
		t.Errorf("a cycle belongs to %v", got)
	}
}

func TestRun(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	changes := make(chan mirror.Change, 1000)
	m := newMirror(t, api, mirror.Options{OnChange: func(c mirror.Change) { changes <- c }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { m.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	wait := func(what string, matches func(mirror.Change) bool) {
		t.Helper()
		limit := time.After(time.Minute)
		for {
			select {
			case c := <-changes:
				if matches(c) {
					return
				}
			case <-limit:
				t.Fatalf("no change: %s; %+v", what, m.Status())
			}
		}
	}
	wait("the first list", func(c mirror.Change) bool { return c.Of.Kind == "Cluster" })
	api.Put(t, mirrortest.Cluster("team", "b"))
	wait("an added object", func(c mirror.Change) bool { return c.Of.Kind == "Machine" && c.Of.Name == "b-cp" })
	api.Delete("machines", "team", "b-cp")
	wait("a deleted object", func(c mirror.Change) bool {
		return c.Deleted && c.Of.Name == "b-cp" && c.Object.GetKind() == "Machine"
	})
	if _, ok := m.Store.Get(rootcause.Ref{Group: clusterv1.GroupVersion.Group, Kind: "Machine", Namespace: "team", Name: "b-cp"}); ok {
		t.Error("the deleted object is still in the Store")
	}
}

// Selected kinds are read alone, also if the Clusters cannot be read.
func TestLoadSomeKinds(t *testing.T) {
	machine := schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Machine"}
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Forbid("clusters")
	m := newMirror(t, api, mirror.Options{Kinds: []schema.GroupKind{machine}, Required: machine})
	if err := m.Load(t.Context()); err != nil || len(m.Store.Objects(machine, "")) != 2 {
		t.Errorf("%d Machines, %v", len(m.Store.Objects(machine, "")), err)
	}
	if kinds := m.Kinds(); len(kinds) != 1 || len(m.Status().Unreadable) > 0 {
		t.Errorf("the kinds are %v, the status is %+v", kinds, m.Status())
	}
	api.Forbid("machines")
	m = newMirror(t, api, mirror.Options{Kinds: []schema.GroupKind{machine}, Required: machine})
	if err := m.Load(t.Context()); !apierrors.IsForbidden(err) || !apierrors.IsForbidden(m.ErrorOf(machine)) {
		t.Errorf("forbidden Machines: %v, %v", err, m.ErrorOf(machine))
	}
}

func TestChangedClusters(t *testing.T) {
	var changes mirror.Changes
	s := mirror.NewStore(changes.Add)
	for _, u := range mirrortest.Objects(mirrortest.Cluster("team", "b") + "\n---\n" + mirrortest.Cluster("team", "a")) {
		s.Put(u)
	}
	want := []fleet.Key{{Namespace: "team", Name: "a"}, {Namespace: "team", Name: "b"}}
	if diff := cmp.Diff(want, s.ChangedClusters(changes.Take())); diff != "" {
		t.Error(diff)
	}
	s.Drop(rootcause.Ref{Group: clusterv1.GroupVersion.Group, Kind: "Machine", Namespace: "team", Name: "b-cp"})
	if diff := cmp.Diff(want[1:], s.ChangedClusters(changes.Take())); diff != "" {
		t.Errorf("after a deletion:\n%s", diff)
	}
	if left := changes.Take(); len(left) > 0 {
		t.Errorf("%d changes are taken twice", len(left))
	}
}
