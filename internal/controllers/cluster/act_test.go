package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
)

// fakeConnections answers for every cluster.
type fakeConnections workload.Health

func (c fakeConnections) Health(client.ObjectKey) workload.Health { return workload.Health(c) }

var key = client.ObjectKey{Namespace: "ns", Name: "c"}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{{Group: "i", Version: "v1", Kind: "FooCluster"}, {Group: "p", Version: "v1", Kind: "FooPlane"}} {
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		gvk.Kind += "List"
		s.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
	}
	return s
}

func crd(name string) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}}}
}

func foreign(text string) client.Object {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

func newBuilder(objs ...client.Object) *fake.ClientBuilder {
	b := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objs...).WithStatusSubresource(&clusterv1.Cluster{})
	return testkit.WithIndexes(b, func(i client.FieldIndexer) error {
		return watches.IndexByCluster(i, Name, &clusterv1.Machine{}, &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}, &clusterv1.MachinePool{})
	})
}

// settle reconciles until a pass neither fails nor writes.
func settle(t *testing.T, c client.WithWatch) {
	t.Helper()
	ctl := &controller{client: c, refs: kube.NewReferences(c, nil), now: func() time.Time { return now }, settings: Settings{}.withDefaults(),
		connections: fakeConnections{Connected: true, LastProbeSuccess: ago(time.Second)}}
	r := &reconciler.Reconciler[*clusterv1.Cluster, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	quiet := 0
	for range 40 {
		before := fingerprint(t, c)
		_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		if err != nil && !errors.Is(err, testkit.ErrInjected) && fault.KindOf(err) != fault.Conflict {
			t.Fatal(err)
		}
		if err == nil && fingerprint(t, c) == before {
			if quiet++; quiet == 2 {
				return
			}
		} else {
			quiet = 0
		}
	}
	t.Fatal("does not settle")
}

// fingerprint is the resource versions of everything that the controller writes.
func fingerprint(t *testing.T, c client.Client) string {
	t.Helper()
	out := ""
	for _, list := range []client.ObjectList{&clusterv1.ClusterList{}, &clusterv1.MachinePoolList{}, &clusterv1.MachineList{}, &corev1.SecretList{}} {
		if err := c.List(context.Background(), list); err != nil {
			t.Fatal(err)
		}
		items, err := apimeta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range items {
			out += o.(client.Object).GetName() + o.(client.Object).GetResourceVersion() + " "
		}
	}
	return out
}

func bare(s snapshot) *clusterv1.Cluster {
	s.Cluster.Generation, s.Cluster.Status = 0, clusterv1.ClusterStatus{}
	s.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
	return s.Cluster
}

func TestEveryWriteFailsOnce(t *testing.T) { // CL-01, CL-03, CL-04, CL-08, CL-09
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		mp := pool("mp")
		return newBuilder(bare(settled()), &mp, crd("fooclusters.i"), crd("fooplanes.p"),
			foreign("apiVersion: i/v1\nkind: FooCluster\nmetadata: {name: i, namespace: ns}\n"+readyInfra),
			foreign("apiVersion: p/v1\nkind: FooPlane\nmetadata: {name: p, namespace: ns}\n"+readyControl))
	}, func(t *testing.T, c client.WithWatch) {
		settle(t, c)
		got := &clusterv1.Cluster{}
		if err := c.Get(context.Background(), key, got); err != nil {
			t.Fatal(err)
		}
		set := condition.Set(got.Status.Conditions)
		if len(got.Finalizers) != 1 || got.Spec.ControlPlaneEndpoint.String() != "h:6443" || got.Status.Phase != "Provisioned" ||
			!set.IsTrue("Available") || !set.IsFalse("Paused") || len(got.Status.FailureDomains) != 1 {
			t.Errorf("cluster %+v", got)
		}
		for kind, name := range map[string]string{"FooCluster": "i", "FooPlane": "p"} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: name, Version: "v1", Kind: kind})
			if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, u); err != nil {
				t.Fatal(err)
			}
			if len(u.GetOwnerReferences()) != 1 || u.GetLabels()[clusterv1.ClusterNameLabel] != "c" {
				t.Errorf("%s: owners %v, labels %v", kind, u.GetOwnerReferences(), u.GetLabels())
			}
		}
	})
}

func TestDeletionWhileWritesFail(t *testing.T) { // CL-12, CL-14, RS-06
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		cluster := bare(settled(deleted))
		cluster.Finalizers = []string{clusterv1.ClusterFinalizer}
		mp, single := pool("mp"), machine("single")
		binding := &addonsv1.ClusterResourceSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "binding"}}
		return newBuilder(cluster, &mp, &single, crd("fooclusters.i"), crd("fooplanes.p"), binding,
			foreign("apiVersion: i/v1\nkind: FooCluster\nmetadata: {name: i, "+ownedMeta+"}"),
			foreign("apiVersion: p/v1\nkind: FooPlane\nmetadata: {name: p, "+ownedMeta+"}"))
	}, func(t *testing.T, c client.WithWatch) {
		settle(t, c)
		binding := &addonsv1.ClusterResourceSetBinding{}
		if err := c.Get(context.Background(), key, binding); !apierrors.IsNotFound(err) {
			t.Errorf("the binding would be taken for that of the next Cluster of the name: %v", err)
		}
		for name, gvk := range map[string]schema.GroupVersionKind{"i": {Group: "i", Version: "v1", Kind: "FooCluster"}, "p": {Group: "p", Version: "v1", Kind: "FooPlane"},
			"mp": clusterv1.GroupVersion.WithKind("MachinePool"), "single": clusterv1.GroupVersion.WithKind("Machine"), "c": clusterv1.GroupVersion.WithKind("Cluster")} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, u); !apierrors.IsNotFound(err) {
				t.Errorf("%s still exists: %v", gvk.Kind, err)
			}
		}
	})
}

func TestFinalizerComesFirst(t *testing.T) { // CL-01
	c := newBuilder(bare(settled()), crd("fooclusters.i"), crd("fooplanes.p"),
		foreign("apiVersion: i/v1\nkind: FooCluster\nmetadata: {name: i, namespace: ns}\n"+readyInfra)).WithReturnManagedFields().Build()
	ctl := &controller{client: c, refs: kube.NewReferences(c, nil), now: func() time.Time { return now }, connections: fakeConnections{}}
	r := &reconciler.Reconciler[*clusterv1.Cluster, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	if _, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	got := &clusterv1.Cluster{}
	if err := c.Get(context.Background(), key, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{clusterv1.ClusterFinalizer}, got.Finalizers); diff != "" || len(got.Status.Conditions) > 0 {
		t.Errorf("the first pass adds the finalizer and nothing else: %v %v", got.Finalizers, got.Status)
	}
}

func TestPaused(t *testing.T) { // CL-02, PA-01
	for name, pause := range map[string]func(*clusterv1.Cluster){
		"by spec":       func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) },
		"by annotation": func(c *clusterv1.Cluster) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} },
	} {
		t.Run(name, func(t *testing.T) {
			cluster := bare(settled())
			pause(cluster)
			c := newBuilder(cluster, crd("fooclusters.i"), crd("fooplanes.p"),
				foreign("apiVersion: i/v1\nkind: FooCluster\nmetadata: {name: i, namespace: ns}\n"+readyInfra)).WithReturnManagedFields().Build()
			settle(t, c)
			got := &clusterv1.Cluster{}
			if err := c.Get(context.Background(), key, got); err != nil {
				t.Fatal(err)
			}
			if len(got.Status.Conditions) != 1 || !condition.Set(got.Status.Conditions).IsTrue("Paused") || got.Spec.ControlPlaneEndpoint.IsValid() {
				t.Errorf("nothing but the Paused condition: %+v", got)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) { // CL-11, SE-01
	ca, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := settled(noControlPlaneRef, func(s *snapshot) { s.Now = time.Now() })
	s.Access.CA = certificateAuthority(ca.CertPEM, ca.KeyPEM)
	secret, err := kubeconfig(s)
	if err != nil {
		t.Fatal(err)
	}
	if secret.Name != "c-kubeconfig" || secret.Type != "cluster.x-k8s.io/secret" || secret.Labels[clusterv1.ClusterNameLabel] != "c" || metav1.GetControllerOf(secret).Name != "c" {
		t.Errorf("secret %+v", secret.ObjectMeta)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://h:6443" {
		t.Errorf("server %s", config.Host)
	}
	cert, err := pki.ParseCert(config.CertData)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("client certificate: %v", err)
	}
	if diff := cmp.Diff([]string{"system:masters"}, cert.Subject.Organization); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	s.Access.CA = certificateAuthority([]byte("x"), nil)
	if _, err := kubeconfig(s); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a Secret without a certificate authority: %v", err)
	}
}

func TestKubeconfigIsWrittenOnce(t *testing.T) { // CL-10, CL-11
	ca, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, now)
	if err != nil {
		t.Fatal(err)
	}
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		cluster := bare(settled(noControlPlaneRef))
		cp := machine("cp", ofControlPlane, withNode)
		return newBuilder(cluster, &cp, crd("fooclusters.i"), certificateAuthority(ca.CertPEM, ca.KeyPEM),
			foreign("apiVersion: i/v1\nkind: FooCluster\nmetadata: {name: i, namespace: ns}\n"+readyInfra))
	}, func(t *testing.T, c client.WithWatch) {
		settle(t, c)
		secret, got := &corev1.Secret{}, &clusterv1.Cluster{}
		if err := errors.Join(c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "c-kubeconfig"}, secret), c.Get(context.Background(), key, got)); err != nil {
			t.Fatal(err)
		}
		if !ptr.Deref(got.Status.Initialization.ControlPlaneInitialized, false) {
			t.Errorf("a control plane Machine has a Node: %+v", got.Status.Initialization)
		}
	})
}

func TestReferences(t *testing.T) { // CL-05: what is watched is what the Cluster refers to
	got := references(settled().Cluster)
	if len(got) != 2 || got[0].Kind != "FooCluster" || got[1].Kind != "FooPlane" {
		t.Errorf("%v", got)
	}
	m := machine("m")
	if got := clusterOf(context.Background(), &m); len(got) != 1 || got[0].NamespacedName != key {
		t.Errorf("a Machine wakes %v", got)
	}
	m.Labels = nil
	if got := clusterOf(context.Background(), &m); got != nil {
		t.Errorf("a Machine of no Cluster wakes %v", got)
	}
}

func TestGatesOfTheClass(t *testing.T) { // CL-24
	cluster := settled(topology).Cluster
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "class"}}
	class.Spec.AvailabilityGates = []clusterv1.ClusterAvailabilityGate{{ConditionType: "Dns"}}
	c := &controller{client: newBuilder(class).Build()}
	s := snapshot{Cluster: cluster}
	if err := c.readGates(context.Background(), &s); err != nil || len(s.Gates) != 1 {
		t.Errorf("gates %v, %v", s.Gates, err)
	}
	s = snapshot{Cluster: cluster, Gates: []clusterv1.ClusterAvailabilityGate{{ConditionType: "Mine"}, {ConditionType: "Too"}}}
	if err := c.readGates(context.Background(), &s); err != nil || len(s.Gates) != 2 {
		t.Errorf("the Cluster's own come first: %v, %v", s.Gates, err)
	}
}
