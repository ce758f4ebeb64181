package clusterresourceset

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 2 * time.Minute

// live is a management cluster with one workload cluster.
type live struct {
	t *testing.T
	client.Client
	workload client.Client
	setup    reconciler.Setup
	ctx      context.Context
	access   []byte
}

func start(t *testing.T) *live {
	t.Helper()
	objects := append(apiserver.CRDs(t, "Cluster", "ClusterResourceSet", "ClusterResourceSetBinding"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	management, workload := apiserver.Start(t, apiserver.Options{Objects: objects}), apiserver.Start(t, apiserver.Options{})
	scheme := newScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	l := &live{t: t}
	mgr, err := ctrl.NewManager(management.Config, manager.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Cache: cache.Options{DefaultTransform: kube.PruneManagedFields},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	l.must(err)
	clusters, err := slipwayworkload.New(slipwayworkload.Config{Management: mgr.GetClient()})
	l.must(err)
	l.must(clusters.SetupWithManager(mgr))
	l.setup = reconciler.Setup{Manager: mgr, Concurrency: 2}
	l.must(Add(l.setup, clusters, Settings{}))
	l.ctx = testkit.RunBackground(t, mgr.Start)
	l.Client, l.workload = management.Client(t, scheme), workload.Client(t, scheme)
	l.access, err = os.ReadFile(workload.Kubeconfig)
	l.must(err)
	return l
}

func (l *live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *live) eventually(what string, ok func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: not so", what)
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// get reads an object and reports whether it exists.
func (l *live) get(c client.Client, o client.Object) bool {
	l.t.Helper()
	err := c.Get(l.t.Context(), client.ObjectKeyFromObject(o), o)
	if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) { // or no one knows the kind yet
		l.must(err)
	}
	return err == nil
}

// condition is status and reason of ResourcesApplied.
func (l *live) condition(name string) string {
	l.t.Helper()
	s := &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	if l.get(l, s) {
		for _, c := range s.Status.Conditions {
			if c.Type == addonsv1.ClusterResourceSetResourcesAppliedCondition {
				return string(c.Status) + " " + c.Reason
			}
		}
	}
	return ""
}

// createCluster makes a Cluster of the name, which has no control plane yet.
func (l *live) createCluster(name string) {
	l.t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"cni": "a"}}}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i.example.com", Kind: "I", Name: name}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
	l.must(l.Create(l.t.Context(), c))
}

// initialize makes the workload cluster reachable: its kubeconfig, then the word that its control plane is there.
func (l *live) initialize(name string) {
	l.t.Helper()
	l.must(l.Create(l.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: name}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": l.access},
	}))
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	l.get(l, c)
	c.Status.Initialization.InfrastructureProvisioned, c.Status.Initialization.ControlPlaneInitialized = ptr.To(true), ptr.To(true)
	l.must(l.Status().Update(l.t.Context(), c))
}

// testManifest holds a kind of its own and an object of it, in the wrong order, and a Service in a Namespace of its own.
const testManifest = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: own}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: own}
`

func TestOverAPIServers(t *testing.T) { // RS-01 to RS-09, RC-07, OR-01
	l := start(t)
	l.createCluster("c")
	kinds := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kinds"}, Data: map[string]string{"a": testManifest}}
	once := set("ApplyOnce", func(s *addonsv1.ClusterResourceSet) {
		s.UID, s.Generation, s.Spec.Resources = "", 0, []addonsv1.ResourceRef{ref("ConfigMap", "kinds"), ref("Secret", "s")}
	})
	again := set("Reconcile", func(s *addonsv1.ClusterResourceSet) { s.UID, s.Generation, s.Name = "", 0, "again" })
	for _, o := range []client.Object{once, again} {
		l.must(l.Create(t.Context(), o))
	}
	l.eventually("what is missing is told", func() bool { return l.condition("set") == "False NotApplied" })
	cm, s := configMap("cm", "one"), secret("s", corev1.SecretTypeOpaque)
	cm.UID, s.UID = "", ""
	for _, o := range []client.Object{kinds, cm, s} {
		l.must(l.Create(t.Context(), o))
	}
	l.initialize("c")
	l.eventually("what can be applied is", func() bool {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "s"}}
		widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}}}
		return l.get(l.workload, service) && l.get(l.workload, widget)
	})
	l.eventually("and the Secret of another type is not", func() bool { return l.condition("set") == "False WrongSecretType" })
	l.must(l.Delete(t.Context(), s))
	l.eventually("nothing is left of it", func() bool { return !l.get(l, s) })
	s = secret("s", addonsv1.ClusterResourceSetSecretType)
	s.UID = ""
	l.must(l.Create(t.Context(), s))
	l.eventually("the right type wakes", func() bool { return l.condition("set") == "True Applied" && l.condition("again") == "True Applied" })
	l.followsChanges(cm)
	l.ownsItsResources()
	l.cachesMetadataOnly()
	l.forgets()
}

// followsChanges: under Reconcile a change of the source is applied, and the binding says so.
func (l *live) followsChanges(cm *corev1.ConfigMap) {
	l.t.Helper()
	l.get(l, cm)
	cm.Data = configMap("", "two").Data
	l.must(l.Update(l.t.Context(), cm))
	applied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "applied"}}
	l.eventually("a change of the source is applied", func() bool { return l.get(l.workload, applied) && applied.Data["said"] == "two" })
}

func (l *live) ownsItsResources() {
	l.t.Helper()
	s := &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set"}}
	l.get(l, s)
	b := &addonsv1.ClusterResourceSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kinds"}}
	for _, o := range []client.Object{b, cm} {
		l.get(l, o)
		before := o.DeepCopyObject().(client.Object)
		o.SetOwnerReferences(nil)
		l.must(l.Patch(l.t.Context(), o, client.MergeFrom(before)))
		l.eventually("a lost owner comes back", func() bool { return l.get(l, o) && ownedBy(o.GetOwnerReferences(), s) })
	}
	if len(b.Spec.Bindings) != 2 {
		l.t.Errorf("one binding for both sets: %+v", b.Spec)
	}
}

// cachesMetadataOnly sees what the controller's own cache holds (RC-07).
func (l *live) cachesMetadataOnly() {
	l.t.Helper()
	sources, err := newSources(l.setup, Settings{Namespaces: []string{"ns"}})
	l.must(err)
	ctx, stop := context.WithCancel(l.ctx)
	defer stop()
	go func() { _ = sources.Start(ctx) }() // ends with ctx, and has nothing to say then
	if !sources.WaitForCacheSync(ctx) {
		l.t.Fatal("the cache does not start")
	}
	for kind, want := range map[addonsv1.ClusterResourceSetResourceKind][]string{
		addonsv1.ConfigMapClusterResourceSetResourceKind: {"cm", "kinds"}, addonsv1.SecretClusterResourceSetResourceKind: {"s"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind) + "List"))
		l.must(sources.List(ctx, list))
		var got []string
		for _, o := range list.Items {
			if o.Name == "kube-root-ca.crt" { // Kubernetes puts one into every namespace
				continue
			}
			got = append(got, o.Name)
			if len(o.ManagedFields)+len(o.Annotations)+len(o.Labels) > 0 {
				l.t.Errorf("%s %s keeps what nobody looks at: %+v", kind, o.Name, o.ObjectMeta)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			l.t.Errorf("of kind %s the cache has %v, want %v", kind, got, want)
		}
	}
}

// forgets: with the Cluster goes the binding, with the set its entry; objects stay in the workload cluster.
func (l *live) forgets() {
	l.t.Helper()
	b := &addonsv1.ClusterResourceSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	l.must(l.Delete(l.t.Context(), &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "again"}}))
	l.eventually("the entry goes with the set", func() bool { return l.get(l, b) && entryOf(b, "again") == nil && entryOf(b, "set") != nil })
	goes := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	finalizer := fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, clusterv1.ClusterFinalizer) // that of the Cluster's controller
	l.must(l.Patch(l.t.Context(), goes, client.RawPatch(types.MergePatchType, []byte(finalizer))))
	l.must(l.Delete(l.t.Context(), goes))
	l.eventually("the binding goes with the Cluster", func() bool { return !l.get(l, b) })
	if !l.get(l.workload, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "applied"}}) {
		l.t.Error("objects of the workload cluster are gone")
	}
}
