package bootstrap

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
)

// workloads is a workload cluster that shares a fake client with the management cluster: its tokens are in
// kube-system, everything else is in ns.
type workloads struct {
	client client.Client
	down   bool
}

func (w *workloads) Client(context.Context, client.ObjectKey) (client.Client, error) {
	if w.down {
		return nil, workload.ErrNotConnected
	}
	return w.client, nil
}

func (w *workloads) Health(client.ObjectKey) workload.Health {
	return workload.Health{Connected: !w.down, Problem: "no answer"}
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, bootstrapv1.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "cp", Version: "v1", Kind: "Plane"}, &unstructured.Unstructured{})
	return s
}

func ownedBy(kind, name string) *bootstrapv1.KubeadmConfig {
	c := config()
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: name, UID: "owner"}}
	return c
}

func machine(change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "owner"}}
	m.Spec.ClusterName, m.Spec.Version = "c", "v1.36.3"
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: "w"}
	for _, f := range change {
		f(m)
	}
	return m
}

func machinePool() *clusterv1.MachinePool {
	p := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "owner"}}
	p.Spec.ClusterName = "c"
	p.Spec.Template.Spec = machine().Spec
	return p
}

func ca() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-ca"}, Data: map[string][]byte{"tls.crt": certificate()}}
}

func build(t testing.TB, objs ...client.Object) *fake.ClientBuilder {
	b := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objs...).
		WithStatusSubresource(&bootstrapv1.KubeadmConfig{}, &clusterv1.Cluster{}, &clusterv1.Machine{})
	return testkit.WithIndexes(b, func(i client.FieldIndexer) error {
		return watches.IndexByCluster(i, Name, &bootstrapv1.KubeadmConfig{})
	})
}

// world is the controller over a fake client, with a clock that the test moves.
type world struct {
	t      *testing.T
	client client.Client
	remote *workloads
	clock  time.Time
	policy policy.Configuration
}

func newWorld(t *testing.T, c client.Client) *world {
	return &world{t: t, client: c, remote: &workloads{client: c}, clock: now}
}

// pass reconciles once, with a controller that has no memory of earlier passes, and returns when it wants to
// be called again.
func (w *world) pass() (time.Duration, error) {
	ctl := &controller{client: w.client, cache: w.client, live: w.client, refs: kube.NewReferences(w.client, nil), workloads: w.remote, ttl: ttl, policy: w.policy, now: func() time.Time { return w.clock }}
	r := &reconciler.Reconciler[*bootstrapv1.KubeadmConfig, snapshot]{Controller: ctl.definition(), Client: w.client, Writer: kube.NewWriter(w.client, Name), Now: ctl.now}
	ctl.writer = r.Writer
	result, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "w"}})
	return result.RequeueAfter, err
}

// settle reconciles until two passes in a row change nothing.
func (w *world) settle() time.Duration {
	w.t.Helper()
	quiet := 0
	for range 30 {
		before := w.fingerprint()
		again, err := w.pass()
		if err != nil && !errors.Is(err, testkit.ErrInjected) {
			w.t.Fatal(err)
		}
		if err != nil || w.fingerprint() != before {
			quiet = 0
			continue
		}
		if quiet++; quiet == 2 {
			return again
		}
	}
	w.t.Fatal("does not settle")
	return 0
}

func (w *world) fingerprint() string {
	w.t.Helper()
	configs, secrets, locks := &bootstrapv1.KubeadmConfigList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}
	if err := errors.Join(w.client.List(context.Background(), configs), w.client.List(context.Background(), secrets),
		w.client.List(context.Background(), locks)); err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range configs.Items {
		b.WriteString(c.Name + c.ResourceVersion + " ")
	}
	for _, s := range secrets.Items {
		b.WriteString(s.Name + s.ResourceVersion + " ")
	}
	for _, l := range locks.Items {
		b.WriteString(l.Name + l.ResourceVersion + " ")
	}
	return b.String()
}

func (w *world) config() *bootstrapv1.KubeadmConfig {
	w.t.Helper()
	c := &bootstrapv1.KubeadmConfig{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "w"}, c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) token() string {
	w.t.Helper()
	return w.config().Spec.JoinConfiguration.Discovery.BootstrapToken.Token
}

func (w *world) data() *corev1.Secret {
	w.t.Helper()
	s, err := getSecret(context.Background(), w.client, client.ObjectKey{Namespace: "ns", Name: "w"})
	if err != nil || s == nil {
		w.t.Fatalf("no data Secret: %v", err)
	}
	return s
}

// tokens returns the expirations of the tokens in the workload cluster by name.
func (w *world) tokens() map[string]string {
	w.t.Helper()
	list := &corev1.SecretList{}
	if err := w.client.List(context.Background(), list, client.InNamespace("kube-system")); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for _, s := range list.Items {
		out[s.Name] = string(s.Data["expiration"])
	}
	return out
}

func at(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }

// complete checks everything that a finished KubeadmConfig has.
func (w *world) complete() {
	w.t.Helper()
	c := w.config()
	if c.Status.DataSecretName != "w" || !ptr.Deref(c.Status.Initialization.DataSecretCreated, false) {
		w.t.Errorf("status is %+v", c.Status)
	}
	for _, want := range []string{"Ready", "DataSecretAvailable", "CertificatesAvailable"} {
		if got := conditionOf(c, want); got != "True" {
			w.t.Errorf("%s is %q", want, got)
		}
	}
	if got := conditionOf(c, "Paused"); got != "False" {
		w.t.Errorf("Paused is %q", got)
	}
	s := w.data()
	owner := metav1.GetControllerOf(s)
	if s.Type != "cluster.x-k8s.io/secret" || s.Labels["cluster.x-k8s.io/cluster-name"] != "c" || owner == nil || owner.UID != "config" || owner.Kind != "KubeadmConfig" {
		w.t.Errorf("data Secret: type %s, labels %v, owners %v", s.Type, s.Labels, s.OwnerReferences)
	}
	if len(s.Data) != 2 || string(s.Data["format"]) != "cloud-config" {
		w.t.Errorf("data Secret has keys %v, format %q", len(s.Data), s.Data["format"])
	}
	if _, err := cloudinit.RenderScript(cloudinit.BootstrapData{Value: s.Data["value"]}, cloudinit.NodeSettings{}, time.Minute); err != nil || !strings.Contains(string(s.Data["value"]), w.token()) {
		w.t.Errorf("data does not carry the token, or cannot be read: %v\n%s", err, s.Data["value"])
	}
}

func conditionOf(c *bootstrapv1.KubeadmConfig, name string) string {
	for _, k := range c.Status.Conditions {
		if k.Type == name {
			return string(k.Status)
		}
	}
	return ""
}
