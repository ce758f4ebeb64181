package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/test/testkit"
)

var key = client.ObjectKey{Namespace: "ns", Name: "c"}

func now() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }

// providerKinds are the kinds of a provider that the test plays.
var providerKinds = []string{"Net", "NetTemplate", "Plane", "PlaneTemplate", "Host", "HostTemplate", "Config", "ConfigTemplate", "HostPool", "HostPoolTemplate"}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, kind := range providerKinds {
		gvk := schema.GroupVersionKind{Group: "x", Version: "v1", Kind: kind}
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		gvk.Kind += "List"
		s.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
	}
	return s
}

// template is a template of the class.
func template(kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: kind})
	u.SetNamespace("ns")
	u.SetName(name)
	return u
}

func templateRef(kind, name string) clusterv1.ClusterClassTemplateReference {
	return clusterv1.ClusterClassTemplateReference{APIVersion: "x/v1", Kind: kind, Name: name}
}

func newClass() *clusterv1.ClusterClass {
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "class", UID: "class-uid", Generation: 1}}
	class.Spec.Infrastructure.TemplateRef = templateRef("NetTemplate", "net")
	class.Spec.ControlPlane.TemplateRef = templateRef("PlaneTemplate", "plane")
	class.Spec.ControlPlane.MachineInfrastructure.TemplateRef = templateRef("HostTemplate", "host")
	class.Spec.ControlPlane.HealthCheck.Checks.NodeStartupTimeoutSeconds = new(int32(300))
	class.Spec.Workers.MachineDeployments = []clusterv1.MachineDeploymentClass{{
		Class:          "worker",
		Metadata:       clusterv1.ObjectMeta{Labels: map[string]string{"team": "class", "tier": "worker"}},
		Bootstrap:      clusterv1.MachineDeploymentClassBootstrapTemplate{TemplateRef: templateRef("ConfigTemplate", "config")},
		Infrastructure: clusterv1.MachineDeploymentClassInfrastructureTemplate{TemplateRef: templateRef("HostTemplate", "host")},
		HealthCheck: clusterv1.MachineDeploymentClassHealthCheck{Checks: clusterv1.MachineDeploymentClassHealthCheckChecks{
			UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{{Type: "Ready", Status: "False", TimeoutSeconds: new(int32(60))}},
		}},
	}}
	class.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{
		Class:          "pool",
		Bootstrap:      clusterv1.MachinePoolClassBootstrapTemplate{TemplateRef: templateRef("ConfigTemplate", "config")},
		Infrastructure: clusterv1.MachinePoolClassInfrastructureTemplate{TemplateRef: templateRef("HostPoolTemplate", "hosts")},
	}}
	class.Status.ObservedGeneration = 1
	return class
}

func newCluster() *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid", Generation: 1}}
	cluster.Spec.Topology = clusterv1.Topology{
		ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.36.3",
		ControlPlane: clusterv1.ControlPlaneTopology{Replicas: new(int32(3))},
		Workers: clusterv1.WorkersTopology{
			MachineDeployments: []clusterv1.MachineDeploymentTopology{{Class: "worker", Name: "a", Replicas: new(int32(2))}},
			MachinePools:       []clusterv1.MachinePoolTopology{{Class: "pool", Name: "p", Replicas: new(int32(1))}},
		},
	}
	return cluster
}

func newTemplates() []client.Object {
	return []client.Object{
		template("NetTemplate", "net", map[string]any{"subnet": "10.0.0.0/16", "controlPlaneEndpoint": map[string]any{"host": "", "port": int64(0)}}),
		template("PlaneTemplate", "plane", map[string]any{"flags": map[string]any{"audit": "on"}}),
		template("HostTemplate", "host", map[string]any{"size": "small"}),
		template("ConfigTemplate", "config", map[string]any{"files": []any{"/etc/a"}}),
		template("HostPoolTemplate", "hosts", map[string]any{"size": "small"}),
	}
}

// management is a management cluster with the Cluster, its class and the templates of that.
func management(objects ...client.Object) *fake.ClientBuilder {
	b := fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&clusterv1.Cluster{}, &clusterv1.MachineDeployment{}).
		WithIndex(&clusterv1.Cluster{}, classField, classNames)
	testkit.WithIndexes(b, func(i client.FieldIndexer) error {
		return watches.IndexByCluster(i, Name, &clusterv1.MachineDeployment{}, &clusterv1.MachinePool{}, &clusterv1.MachineSet{}, &clusterv1.MachineHealthCheck{})
	})
	for _, kind := range providerKinds {
		b.WithObjects(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: strings.ToLower(kind) + "s.x", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"},
		}})
	}
	return b.WithObjects(newTemplates()...).WithObjects(objects...)
}

// world is a management cluster that the controller runs against.
type world struct {
	t *testing.T
	client.WithWatch
	r *reconciler.Reconciler[*clusterv1.Cluster, snapshot]
}

func newWorld(t *testing.T, c client.WithWatch) world {
	w := world{t, c, &reconciler.Reconciler[*clusterv1.Cluster, snapshot]{}}
	w.restart()
	return w
}

// restart is the start of a manager: it remembers nothing.
func (w world) restart() { w.with(func(*controller) {}) }

// with starts a manager whose controller is changed.
func (w world) with(change func(*controller)) {
	ctl := &controller{client: w, live: w, used: clone.NewUsage(w), refs: kube.NewReferences(w, nil), classes: topology.NewClasses(), now: now}
	change(ctl)
	*w.r = reconciler.Reconciler[*clusterv1.Cluster, snapshot]{Controller: ctl.definition(), Client: w, Writer: kube.NewWriter(w, Name), Now: now}
	ctl.writer, ctl.applier = w.r.Writer, w.r.Writer.WithManager(fieldManager)
}

func (w world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// reconcile is one reconciliation; the Cluster controller has seen the Cluster before.
func (w world) reconcile() (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	err := w.Get(context.Background(), key, cluster)
	w.must(client.IgnoreNotFound(err))
	if err == nil && cluster.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(cluster, clusterv1.ClusterFinalizer) {
		if err := w.Update(context.Background(), cluster, client.FieldOwner("slipway-cluster")); !errors.Is(err, testkit.ErrInjected) {
			w.must(err)
		}
	}
	return w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
}

// settle reconciles until nothing is written any more. The manager dies with a write that fails, and another one goes on.
func (w world) settle() {
	w.t.Helper()
	quiet := 0
	for range 60 {
		before := w.fingerprint()
		_, err := w.reconcile()
		if err != nil && !errors.Is(err, testkit.ErrInjected) && fault.KindOf(err) != fault.Conflict {
			w.t.Fatal(err)
		}
		if errors.Is(err, testkit.ErrInjected) {
			w.restart()
		}
		if w.identify() || err != nil || w.fingerprint() != before {
			quiet = 0
		} else if quiet++; quiet == 2 {
			return
		}
	}
	w.t.Fatal("does not settle")
}

// objects are all that the topology may consist of.
func (w world) objects() []client.Object {
	var out []client.Object
	add := func(list client.ObjectList) {
		w.must(w.List(context.Background(), list, client.InNamespace("ns")))
		w.must(apimeta.EachListItem(list, func(o runtime.Object) error {
			out = append(out, o.(client.Object))
			return nil
		}))
	}
	for _, kind := range providerKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: kind + "List"})
		add(list)
	}
	add(&clusterv1.MachineDeploymentList{})
	add(&clusterv1.MachinePoolList{})
	add(&clusterv1.MachineHealthCheckList{})
	return slices.DeleteFunc(out, func(o client.Object) bool { return !topology.IsOwned(o) })
}

// identify gives objects the UIDs that the fake client does not give, and reports whether any had none.
func (w world) identify() bool {
	some := false
	for _, o := range w.objects() {
		if o.GetUID() != "" {
			continue
		}
		gvk, err := w.GroupVersionKindFor(o)
		w.must(err)
		o.SetUID(types.UID(gvk.Kind + "-" + o.GetName()))
		some = true
		if err := w.Update(context.Background(), o); !errors.Is(err, testkit.ErrInjected) {
			w.must(err)
		}
	}
	return some
}

func (w world) fingerprint() string {
	out := w.cluster().ResourceVersion
	for _, o := range w.objects() {
		out += " " + o.GetName() + "@" + o.GetResourceVersion()
	}
	return out
}

func (w world) cluster() *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{}
	w.must(w.Get(context.Background(), key, cluster))
	return cluster
}

// names are the objects of the topology by kind and name.
func (w world) names() []string {
	var out []string
	for _, o := range w.objects() {
		gvk, err := w.GroupVersionKindFor(o)
		w.must(err)
		out = append(out, gvk.Kind+" "+o.GetName())
	}
	slices.Sort(out)
	return out
}

// one returns the only object of a kind, or the one of a name that starts with prefix.
func (w world) one(kind, prefix string) *unstructured.Unstructured {
	w.t.Helper()
	var out []*unstructured.Unstructured
	for _, o := range w.objects() {
		gvk, err := w.GroupVersionKindFor(o)
		w.must(err)
		if gvk.Kind != kind || !strings.HasPrefix(o.GetName(), prefix) {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		w.must(err)
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	if len(out) != 1 {
		w.t.Fatalf("%d objects %s %s*: %v", len(out), kind, prefix, w.names())
	}
	return out[0]
}

// change is what a user does to the Cluster.
func (w world) change(f func(*clusterv1.Cluster)) {
	w.t.Helper()
	w.update(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}, func(o client.Object) { f(o.(*clusterv1.Cluster)) })
}

// update changes an object until that succeeds.
func (w world) update(o client.Object, f func(client.Object)) {
	w.t.Helper()
	for {
		w.must(w.Get(context.Background(), client.ObjectKeyFromObject(o), o))
		f(o)
		if err := w.Update(context.Background(), o); !errors.Is(err, testkit.ErrInjected) {
			w.must(err)
			return
		}
	}
}

// condition is what TopologyReconciled says.
func (w world) condition() string {
	c := condition.Set(w.cluster().Status.Conditions).Get(clusterv1.ClusterTopologyReconciledCondition)
	if c == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
}

// counting counts the writes of a client, dry runs included.
func counting(writes *[]string) *fake.ClientBuilder {
	return management(newCluster(), newClass()).WithReturnManagedFields().WithInterceptorFuncs(recorder(writes))
}
