package move_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

var source *apiserver.Server // set once, by TestMain

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, apiserver.Options{}, func(s *apiserver.Server) { source = s }))
}

func liveClient(t *testing.T, s *apiserver.Server) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), localv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fill creates a simulated Cluster with a Secret, as its controllers would have left them.
func fill(t *testing.T, c client.Client) {
	t.Helper()
	ctx := t.Context()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "live", Name: "a", Finalizers: []string{clusterv1.ClusterFinalizer}}}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group, Kind: "LocalCluster", Name: "a"}
	create := func(o client.Object) {
		t.Helper()
		if err := c.Create(ctx, o, client.FieldOwner("kubectl")); err != nil {
			t.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "live"}})
	create(cluster)
	owner := []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "a", UID: cluster.UID}}
	local := &localv1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "live", Name: "a", OwnerReferences: owner}}
	local.Spec.Backend.Simulated = &localv1.SimulatedCluster{}
	create(local)
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "live", Name: "a-kubeconfig", OwnerReferences: owner}, Data: map[string][]byte{"value": []byte("x")}})
	yes := true
	cluster.Status.Initialization.InfrastructureProvisioned, cluster.Status.Initialization.ControlPlaneInitialized = &yes, &yes
	if err := c.Status().Update(ctx, cluster); err != nil {
		t.Fatal(err)
	}
}

// held is what a management cluster has of the namespace; the owner of each object has to be there.
func heldBy(t *testing.T, c client.Client) []string {
	t.Helper()
	objects, err := move.Snapshot(t.Context(), c, graph.Scope{Namespace: "live"})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range objects {
		out = append(out, graph.IDOf(o).String())
		for _, ref := range o.GetOwnerReferences() {
			if !slices.ContainsFunc(objects, func(p *unstructured.Unstructured) bool { return p.GetUID() == ref.UID }) {
				t.Errorf("the owner of %s is not there", graph.IDOf(o))
			}
		}
	}
	slices.Sort(out)
	return out
}

// provision sets the status again, as the controllers at the target would.
func provision(t *testing.T, c client.Client) {
	t.Helper()
	var cluster clusterv1.Cluster
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "live", Name: "a"}, &cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.Spec.Paused != nil || !slices.Contains(cluster.Finalizers, clusterv1.ClusterFinalizer) {
		t.Errorf("paused %v, finalizers %v", cluster.Spec.Paused, cluster.Finalizers)
	}
	if !slices.ContainsFunc(cluster.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "kubectl" }) {
		t.Error("the owner of the fields is lost")
	}
	yes := true
	cluster.Status.Initialization.InfrastructureProvisioned, cluster.Status.Initialization.ControlPlaneInitialized = &yes, &yes
	if err := c.Status().Update(t.Context(), &cluster); err != nil {
		t.Fatal(err)
	}
}

// MV-01, MV-05, MV-07, MV-09, MV-10: there and back between two real API servers with the real kinds, killed on the way.
func TestBetweenServers(t *testing.T) {
	kinds := []string{"Cluster", "ClusterClass", "Machine", "LocalCluster"}
	if err := source.Install(t.Context(), apiserver.Options{Objects: apiserver.CRDs(t, kinds...)}); err != nil {
		t.Fatal(err)
	}
	other := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t, kinds...)})
	here, there := liveClient(t, source), liveClient(t, other)
	fill(t, here)
	want := []string{"Cluster live/a", "LocalCluster live/a", "Secret live/a-kubeconfig"}
	for _, kill := range []int{0, 4, 8, 11, 13, 16, 18, 20} {
		p := &process{killAt: kill}
		run := func() error {
			_, err := move.New(p.through(here), p.through(there), move.Options{Scope: graph.Scope{Namespace: "live"}}).Run(t.Context())
			return err
		}
		err := run()
		if errors.Is(err, errKilled) {
			*p = process{}
			err = run()
		}
		if err != nil {
			t.Fatalf("write %d: %v", kill, err)
		}
		if got := heldBy(t, here); len(got) > 0 {
			t.Fatalf("write %d: left behind: %s", kill, strings.Join(got, ", "))
		}
		if diff := cmp.Diff(want, heldBy(t, there)); diff != "" {
			t.Fatalf("write %d:\n%s", kill, diff)
		}
		provision(t, there)
		here, there = there, here
	}
}

// foreignCRD is the CRD of a provider that was applied with kubectl, without clusterctl's label.
func foreignCRD(labels map[string]string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "fooclusters.foo.example.org", Labels: labels}}
	crd.Spec.Group, crd.Spec.Scope = "foo.example.org", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "fooclusters", Singular: "foocluster", Kind: "FooCluster", ListKind: "FooClusterList"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve},
	}}}
	return crd
}

// MV-01, MV-02: the infrastructure of a foreign provider, whose CRD lacks clusterctl's label, goes along where a label of a contract marks the
// kind. Where none does, the move and the backup are refused, and nothing is written.
func TestForeignProvider(t *testing.T) {
	kinds := []string{"Cluster", "ClusterClass", "Machine", "LocalCluster"}
	for name, labels := range map[string]map[string]string{"contract": {"cluster.x-k8s.io/v1beta2": "v1"}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			here := liveClient(t, apiserver.Start(t, apiserver.Options{Objects: append(apiserver.CRDs(t, kinds...), foreignCRD(labels))}))
			there := liveClient(t, apiserver.Start(t, apiserver.Options{Objects: append(apiserver.CRDs(t, kinds...), foreignCRD(labels))}))
			fill(t, here)
			foreign := object("foo.example.org/v1", "FooCluster", "m", finalizer, func(o *unstructured.Unstructured) { o.SetNamespace("live"); o.SetUID("") })
			var owner clusterv1.Cluster
			if err := here.Get(t.Context(), client.ObjectKey{Namespace: "live", Name: "a"}, &owner); err != nil {
				t.Fatal(err)
			}
			foreign.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "a", UID: owner.UID}})
			if err := here.Create(t.Context(), foreign); err != nil {
				t.Fatal(err)
			}
			p := &process{}
			_, err := move.New(p.through(here), p.through(there), move.Options{Scope: graph.Scope{Namespace: "live"}}).Run(t.Context())
			left := object("foo.example.org/v1", "FooCluster", "m")
			if labels == nil {
				_, backup := move.Snapshot(t.Context(), here, graph.Scope{Namespace: "live"})
				for _, err := range []error{err, backup} {
					if err == nil || !strings.Contains(err.Error(), "Cluster live/a owns FooCluster live/m of foo.example.org, which does not move: label CustomResourceDefinition fooclusters.foo.example.org with") {
						t.Error(err)
					}
				}
				if err := here.Get(t.Context(), client.ObjectKeyFromObject(foreign), left); err != nil || left.GetDeletionTimestamp() != nil || p.writes > 0 {
					t.Errorf("%v, deleted %v, %d writes", err, left.GetDeletionTimestamp(), p.writes)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"Cluster live/a", "FooCluster live/m", "LocalCluster live/a", "Secret live/a-kubeconfig"}, heldBy(t, there)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// MV-08: controllers at the target write what has just been created there, between its creation and the next write of the move.
func TestTargetIsWrittenMeanwhile(t *testing.T) {
	kinds := []string{"Cluster", "ClusterClass", "Machine", "LocalCluster"}
	servers := []*apiserver.Server{apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t, kinds...)}), apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t, kinds...)})}
	here, there := liveClient(t, servers[0]), liveClient(t, servers[1])
	fill(t, here)
	restored := &localv1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "live", Name: "restored", Labels: map[string]string{clusterv1.ClusterNameLabel: "a"}}}
	restored.Spec.Backend.Simulated = &localv1.SimulatedCluster{}
	var owner clusterv1.Cluster
	if err := here.Get(t.Context(), client.ObjectKey{Namespace: "live", Name: "a"}, &owner); err != nil {
		t.Fatal(err)
	}
	restored.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "a", UID: owner.UID}}
	if err := here.Create(t.Context(), restored, client.FieldOwner("slipway-move")); err != nil { // as it is created from files
		t.Fatal(err)
	}
	disturbed := interceptor.NewClient(there, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := c.Create(ctx, o, opts...); err != nil || o.GetNamespace() != "live" {
				return err
			}
			other, _ := o.DeepCopyObject().(client.Object)
			return c.Patch(ctx, other, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"controller":"was here"}}}`)), client.FieldOwner("controller"))
		},
	})
	if _, err := move.New(here, disturbed, move.Options{Scope: graph.Scope{Namespace: "live"}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var cluster clusterv1.Cluster
	if err := there.Get(t.Context(), client.ObjectKey{Namespace: "live", Name: "a"}, &cluster); err != nil {
		t.Fatal(err)
	}
	for _, manager := range []string{"kubectl", "controller"} {
		if !slices.ContainsFunc(cluster.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == manager }) {
			t.Errorf("the fields of %s have lost their manager", manager)
		}
	}
	if err := there.Get(t.Context(), client.ObjectKeyFromObject(restored), restored); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{&cluster, restored} {
		if kube.IsArriving(o) {
			t.Errorf("%T has arrived and still arrives, so that its controller never says that it is paused: %v", o, o.GetManagedFields())
		}
	}
}
