package move_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
)

const (
	core  = "cluster.x-k8s.io/v1beta2"
	infra = "infrastructure.example.org/v1"
	foo   = "foo.example.org/v1"
	ssh   = "infrastructure.slipway.dev/v1alpha1"
)

// crds of the world, with the API version that is served, and whether objects are in namespaces.
var crds = []struct {
	plural, apiVersion, kind string
	labels                   map[string]string
}{
	{"clusters", core, "Cluster", nil}, {"clusterclasses", core, "ClusterClass", nil}, {"machines", core, "Machine", nil},
	{"infraclusters", infra, "InfraCluster", nil}, {"inframachines", infra, "InfraMachine", nil}, {"infraclustertemplates", infra, "InfraClusterTemplate", nil},
	{"identities", infra, "Identity", map[string]string{"clusterctl.cluster.x-k8s.io/move-hierarchy": ""}},
	{"hostedcontrolplanes", "controlplane.slipway.dev/v1alpha1", "HostedControlPlane", nil},
	{"etcdsnapshotpolicies", "controlplane.slipway.dev/v1alpha1", "EtcdSnapshotPolicy", nil},
	{"machinesets", core, "MachineSet", nil},
	{"localclusters", "infrastructure.slipway.dev/v1alpha1", "LocalCluster", nil},
	{"localmachines", "infrastructure.slipway.dev/v1alpha1", "LocalMachine", nil},
	{"sshmachines", ssh, "SSHMachine", nil}, {"sshhosts", ssh, "SSHHost", nil},
	{"providers", "clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", nil},
	{"fooclusters", foo, "FooCluster", map[string]string{foreign: "", "cluster.x-k8s.io/v1beta2": "v1"}},
	{"foonetworks", foo, "FooNetwork", map[string]string{foreign: "", "cluster.x-k8s.io/provider": "infrastructure-foo"}},
	{"foosubnets", foo, "FooSubnet", map[string]string{foreign: ""}},
	{"foogroups", foo, "FooGroup", map[string]string{foreign: ""}},
	{"fooidentities", foo, "FooIdentity", map[string]string{foreign: ""}},
}

// foreign marks the CRDs that lack clusterctl's label.
const foreign = "foreign"

// process is what a command is killed in: after a number of writes, nothing that it calls succeeds any more.
type process struct {
	mu     sync.Mutex
	killAt int // 0: never
	writes int
	dead   bool
}

var errKilled = errors.New("killed")

func (p *process) read() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errKilled
	}
	return nil
}

func (p *process) write() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writes++; p.killAt > 0 && p.writes >= p.killAt {
		p.dead = true
	}
	if p.dead {
		return errKilled
	}
	return nil
}

// management is a management cluster in memory. versions are those that it serves of a kind, in place of the usual one.
func management(versions map[string]string, objects ...client.Object) client.WithWatch {
	scheme := runtime.NewScheme()
	_, _, _ = corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "ConfigMap", "Service", "PersistentVolumeClaim"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"} {
		mapper.Add(appsv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	all := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: uuid.NewUUID()}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: uuid.NewUUID()}},
	}
	for _, c := range crds {
		gv, _ := schema.ParseGroupVersion(cmp.Or(versions[c.kind], c.apiVersion))
		if versions[c.kind] == "none" {
			continue
		}
		gvk := gv.WithKind(c.kind)
		scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(gv.WithKind(c.kind+"List"), &unstructured.UnstructuredList{})
		scope := meta.RESTScopeNamespace
		if strings.HasSuffix(c.kind, "Identity") {
			scope = meta.RESTScopeRoot
		}
		mapper.AddSpecific(gvk, gv.WithResource(c.plural), gv.WithResource(strings.ToLower(c.kind)), scope)
		labels := map[string]string{"clusterctl.cluster.x-k8s.io": ""}
		maps.Copy(labels, c.labels)
		if _, is := labels[foreign]; is {
			delete(labels, "clusterctl.cluster.x-k8s.io")
		}
		all = append(all, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: c.plural + "." + gv.Group, Labels: labels}})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(append(all, objects...)...).Build()
}

// through is a cluster as a process sees it.
func (p *process) through(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return cmp.Or(p.read(), c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return cmp.Or(p.read(), c.List(ctx, l, opts...))
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := p.write(); err != nil {
				return err
			}
			o.SetUID(uuid.NewUUID())
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := p.write(); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := p.write(); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	})
}

func object(apiVersion, kind, name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetName(name)
	o.SetNamespace("ns")
	o.SetUID(types.UID(kind + "-" + name))
	for _, f := range change {
		f(o)
	}
	return o
}

func ownedBy(apiVersion, kind, name string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(kind + "-" + name)}})
	}
}

func annotated(key string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{key: ""}) }
}

func set(value any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func finalizer(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.org/keep"}) }

// cluster is a Cluster that is whole, of the class "class", with a Machine and Secrets.
func cluster(name string) []client.Object {
	return []client.Object{
		object(core, "Cluster", name, finalizer, set(map[string]any{"classRef": map[string]any{"name": "class"}}, "spec", "topology"),
			set(map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true}, "status", "initialization")),
		object(infra, "InfraCluster", name, finalizer, ownedBy(core, "Cluster", name), set(int64(3), "spec", "size")),
		object("v1", "Secret", name+"-kubeconfig", ownedBy(core, "Cluster", name), set("c2VjcmV0", "data", "value")),
		object("v1", "Secret", name+"-ca"),
		object(core, "Machine", name+"-1", finalizer, ownedBy(core, "Cluster", name), set(name, "spec", "clusterName"), set("node", "status", "nodeRef", "name")),
		object(infra, "InfraMachine", name+"-1", finalizer, ownedBy(core, "Machine", name+"-1")),
	}
}

func class() []client.Object {
	return []client.Object{
		object(core, "ClusterClass", "class", set(map[string]any{"templateRef": map[string]any{"apiVersion": infra, "kind": "InfraClusterTemplate", "name": "t"}}, "spec", "infrastructure")),
		object(infra, "InfraClusterTemplate", "t", ownedBy(core, "ClusterClass", "class")),
	}
}

// world is what a namespace has, and the objects that are none of a move's business.
func world(more ...client.Object) []client.Object {
	return slices.Concat([]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, object("v1", "ConfigMap", "other")}, class(), cluster("a"), more)
}

// contents are the objects of Cluster API, and the Secrets and ConfigMaps, with what is checked of them.
func contents(t *testing.T, c client.Client) []string {
	t.Helper()
	all := map[types.UID]string{}
	var objects []unstructured.Unstructured
	kinds := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("SecretList"), corev1.SchemeGroupVersion.WithKind("ConfigMapList")}
	for _, crd := range crds {
		gvks, err := c.RESTMapper().KindsFor(schema.FromAPIVersionAndKind(crd.apiVersion, "").GroupVersion().WithResource(crd.plural).GroupResource().WithVersion(""))
		if err == nil {
			kinds = append(kinds, gvks[0].GroupVersion().WithKind(crd.kind+"List"))
		}
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, list.Items...)
	}
	for _, o := range objects {
		all[o.GetUID()] = o.GetKind() + "/" + o.GetName()
	}
	var out []string
	for _, o := range objects {
		text := o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
		for _, ref := range o.GetOwnerReferences() {
			text += fmt.Sprintf(" of %s", cmp.Or(all[ref.UID], "nobody"))
		}
		if paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused"); paused {
			text += " paused"
		}
		for _, key := range slices.Sorted(maps.Keys(o.GetAnnotations())) {
			text += " " + key
		}
		if len(o.GetFinalizers()) > 0 {
			text += " kept"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// instant are options under which nothing waits by the clock.
func instant(o move.Options) move.Options {
	o.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return o
}

func labelled(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{key: value}) }
}

// rewriteJournal changes the journal of a move in the namespace ns, as who may write ConfigMaps there can.
func rewriteJournal(t *testing.T, c client.Client, change func(map[string]any)) {
	t.Helper()
	cm := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "slipway-move"}, cm); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(cm.BinaryData["journal.json.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	j := map[string]any{}
	if err := json.NewDecoder(z).Decode(&j); err != nil {
		t.Fatal(err)
	}
	change(j)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(w).Encode(j), w.Close()); err != nil {
		t.Fatal(err)
	}
	cm.BinaryData["journal.json.gz"] = b.Bytes()
	if err := c.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
}

func initialized(o *unstructured.Unstructured) {
	o.SetAnnotations(map[string]string{"controlplane.slipway.dev/initialized": "true"})
}
