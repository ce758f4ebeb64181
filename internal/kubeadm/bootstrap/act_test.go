package bootstrap

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit"
)

// KB-01, KB-02, KB-03, KB-09, BC-01, BC-02, BC-03
func TestMachineWhileWritesFail(t *testing.T) {
	authority := ca()
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		return build(t, ownedBy("Machine", "m"), machine(), cluster(), authority.DeepCopy())
	}, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		if again := w.settle(); again != ttl/3 {
			t.Errorf("looks again in %s", again)
		}
		w.complete()
		want := map[string]string{secretName(w.token()): at(ttl)}
		if diff := cmp.Diff(want, w.tokens()); diff != "" {
			t.Errorf("one token, and none left over (-want +got):\n%s", diff)
		}
	})
}

// KB-10
func TestTokenOfAMachineWhileWritesFail(t *testing.T) {
	authority := ca()
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		return build(t, ownedBy("Machine", "m"), machine(), cluster(), authority.DeepCopy())
	}, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.settle()
		token, value := w.token(), string(w.data().Data["value"])

		w.clock = now.Add(ttl / 3)
		w.settle()
		if diff := cmp.Diff(map[string]string{secretName(token): at(ttl/3 + ttl)}, w.tokens()); diff != "" {
			t.Errorf("after a third of its life the token is extended (-want +got):\n%s", diff)
		}
		gone := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: secretName(token)}}
		for c.Delete(context.Background(), gone) != nil { // the injected failure may be this one
		}
		w.settle()
		if diff := cmp.Diff(map[string]string{secretName(token): at(ttl/3 + ttl)}, w.tokens()); diff != "" {
			t.Errorf("a missing token is created again (-want +got):\n%s", diff)
		}
		if w.token() != token || string(w.data().Data["value"]) != value {
			t.Error("the data of a Machine does not change")
		}
	})
}

// KB-10: with a Node nothing is extended, and no one is asked.
func TestJoinedMachine(t *testing.T) {
	joined := machine(func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" })
	c := ownedBy("Machine", "m")
	c.Status.DataSecretName = "w"
	c.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = token
	w := newWorld(t, build(t, c, joined, cluster()).WithReturnManagedFields().Build())
	w.remote.down = true
	if again := w.settle(); again != 0 || len(w.tokens()) != 0 || conditionOf(w.config(), "Ready") != "True" {
		t.Errorf("looks again in %s, tokens %v, status %+v", again, w.tokens(), w.config().Status)
	}
}

// KB-11
func TestPoolRotatesWhileWritesFail(t *testing.T) {
	authority := ca()
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		return build(t, ownedBy("MachinePool", "p"), machinePool(), cluster(), authority.DeepCopy())
	}, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		if again := w.settle(); again != ttl/2 {
			t.Errorf("looks again in %s", again)
		}
		w.complete()
		first := w.token()

		w.clock = now.Add(ttl / 2)
		if again := w.settle(); again != ttl/2 {
			t.Errorf("after rotation looks again in %s", again)
		}
		w.complete()
		if w.token() == first || strings.Contains(string(w.data().Data["value"]), first) {
			t.Error("the data has another token")
		}
		want := map[string]string{secretName(first): at(ttl), secretName(w.token()): at(ttl/2 + ttl)}
		if diff := cmp.Diff(want, w.tokens()); diff != "" {
			t.Errorf("the old one lives on until its end, for machines that boot with it (-want +got):\n%s", diff)
		}
	})
}

// No token outlives its owner.
func TestOwnerGoesWhileWritesFail(t *testing.T) {
	deleted := func(m *clusterv1.Machine) {
		m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: now}, []string{"x"}
	}
	lifetime := TokenLifetime{From: now, TTL: ttl}
	own := TokenOwner{Namespace: "ns", Name: "w"}
	for name, objs := range map[string][]client.Object{
		"deleting": {machine(deleted)},
		"gone":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			testkit.FailEachWrite(t, func() *fake.ClientBuilder {
				c := ownedBy("Machine", "m")
				c.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = token
				return build(t, append([]client.Object{c, cluster(),
					TokenSecret(token, own, lifetime), TokenSecret("aaaaaa.0123456789abcdef", own, lifetime),
					TokenSecret("bbbbbb.0123456789abcdef", TokenOwner{Namespace: "ns", Name: "other"}, lifetime),
				}, objs...)...)
			}, func(t *testing.T, c client.WithWatch) {
				w := newWorld(t, c)
				w.settle()
				if diff := cmp.Diff(map[string]string{"bootstrap-token-bbbbbb": at(ttl)}, w.tokens()); diff != "" {
					t.Errorf("only those of others are left (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// KB-02, BC-10: a Secret that is there already becomes ours.
func TestAdoption(t *testing.T) {
	cases := map[string]struct {
		reason string
		secret corev1.Secret
	}{
		"nobody's": {"as a restore without owners leaves it", corev1.Secret{}},
		"earlier life": {"its garbage collection would take the new data with it", corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubeadmConfig", Name: "w", UID: "earlier", Controller: ptr.To(true)}}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.secret.Namespace, tc.secret.Name, tc.secret.Type = "ns", "w", clusterv1.ClusterSecretType
			tc.secret.Data = map[string][]byte{"value": []byte("old"), "format": []byte("cloud-config")}
			authority := ca()
			testkit.FailEachWrite(t, func() *fake.ClientBuilder {
				return build(t, ownedBy("Machine", "m"), machine(), cluster(), authority.DeepCopy(), tc.secret.DeepCopy())
			}, func(t *testing.T, c client.WithWatch) {
				w := newWorld(t, c)
				w.settle()
				w.complete()
				if owners := w.data().OwnerReferences; len(owners) != 1 {
					t.Errorf("%s: owners %v", tc.reason, owners)
				}
			})
		})
	}
}

// KB-27
func TestRestore(t *testing.T) {
	used := machine(func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = ptr.To("w") })
	data := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w"}, Type: clusterv1.ClusterSecretType}
	w := newWorld(t, build(t, ownedBy("Machine", "m"), used, data, cluster()).WithReturnManagedFields().Build())
	w.settle()
	if c := w.config(); c.Status.DataSecretName != "w" || !ptr.Deref(c.Status.Initialization.DataSecretCreated, false) || conditionOf(c, "Ready") != "True" {
		t.Errorf("status is %+v", c.Status)
	}
	if w.token() != "" || len(w.tokens()) != 0 {
		t.Error("nothing is made again")
	}
}

// KB-12: a machine that discovers by a file needs no token.
func TestFileDiscovery(t *testing.T) {
	c := ownedBy("Machine", "m")
	c.Spec.JoinConfiguration.Discovery.File = bootstrapv1.FileDiscovery{KubeConfigPath: "/etc/discovery.conf", KubeConfig: bootstrapv1.FileDiscoveryKubeConfig{
		User: bootstrapv1.KubeConfigUser{Exec: bootstrapv1.KubeConfigAuthExec{Command: "/login"}}}}
	w := newWorld(t, build(t, c, machine(), cluster(), ca()).WithReturnManagedFields().Build())
	w.remote.down = true
	w.settle()
	w.complete()
	if !strings.Contains(string(w.data().Data["value"]), "path: /etc/discovery.conf") || len(w.tokens()) != 0 {
		t.Errorf("data\n%s\ntokens %v", w.data().Data["value"], w.tokens())
	}
}

// CX-08: the bootstrap data of another machine, which may hold the keys of a cluster, is known by its type where users read no Secrets.
func TestCredentialsAreNotCopied(t *testing.T) {
	for _, reads := range []bool{false, true} {
		c := ownedBy("Machine", "m")
		c.Spec.Files = []bootstrapv1.File{{Path: "/f", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "other", Key: "value"}}}}
		source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}, Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte("tls.key")}}
		w := newWorld(t, build(t, c, machine(), cluster(), ca(), source).WithReturnManagedFields().Build())
		w.policy.Management.EditSecrets = reads
		w.settle()
		if got := conditionOf(w.config(), "DataSecretAvailable"); (got == "True") != reads {
			t.Errorf("users read Secrets: %t, data available: %s, status %+v", reads, got, w.config().Status)
		}
	}
}

// KB-15, KB-16: what is missing is waited for.
func TestContent(t *testing.T) {
	c := ownedBy("Machine", "m")
	c.Spec.Files = []bootstrapv1.File{{Path: "/f", ContentFormat: bootstrapv1.FileContentFormatTemplate,
		ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "s", Key: "k"}}}}
	cl := cluster()
	cl.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "cp", Kind: "Plane", Name: "c"}
	plane := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cp/v1", "kind": "Plane",
		"metadata": map[string]any{"namespace": "ns", "name": "c"}, "spec": map[string]any{"version": "v1.35.7"}}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "planes.cp", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}}}
	w := newWorld(t, build(t, c, machine(), cl, ca(), plane, crd).WithReturnManagedFields().Build())
	if again := w.settle(); again != unwatched || conditionOf(w.config(), "DataSecretAvailable") != "False" || w.token() != "" {
		t.Errorf("looks again in %s, status %+v", again, w.config().Status)
	}
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"k": []byte("v={{ .controlPlane.version }}")}}
	if err := w.client.Create(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.complete()
	if !strings.Contains(string(w.data().Data["value"]), "v=v1.35.7") {
		t.Errorf("data\n%s", w.data().Data["value"])
	}
}

func TestUnreachableWorkloadCluster(t *testing.T) {
	w := newWorld(t, build(t, ownedBy("Machine", "m"), machine(), cluster(), ca()).WithReturnManagedFields().Build())
	w.remote.down = true
	w.settle()
	if c := w.config(); c.Status.DataSecretName != "" || !strings.Contains(c.Status.Conditions[0].Message+c.Status.Conditions[1].Message, "no answer") {
		t.Errorf("status is %+v", c.Status)
	}
	w.remote.down = false
	w.settle()
	w.complete()
}

// KB-01: an object of another group is not an owner, whatever its kind.
func TestNoOwner(t *testing.T) {
	c := config()
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Machine", Name: "m", UID: "x"}}
	w := newWorld(t, build(t, c, machine(), cluster(), ca()).WithReturnManagedFields().Build())
	w.settle()
	if c := w.config(); c.Status.DataSecretName != "" || conditionOf(c, "Ready") != "False" || len(w.tokens()) != 0 {
		t.Errorf("status is %+v", c.Status)
	}
}

// A Secret that cannot be read now is read again; nothing is made without it.
func TestUnreadableMaterial(t *testing.T) {
	refused := errors.New("refused")
	base := build(t, ownedBy("Machine", "m"), machine(), cluster(), ca()).WithReturnManagedFields().Build()
	w := newWorld(t, interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*corev1.Secret); ok {
				return refused
			}
			return c.Get(ctx, key, o, opts...)
		},
	}))
	for range 5 {
		if _, err := w.pass(); errors.Is(err, refused) {
			return
		}
	}
	t.Error("the error is lost")
}

func TestUnknownActionsAndQuestionsAreBugs(t *testing.T) {
	c := &controller{}
	if err := c.act(t.Context(), snapshot{}, nil); fault.KindOf(err) != fault.Bug {
		t.Errorf("got %v", err)
	}
	if _, err := c.read(t.Context(), snapshot{}, nil); fault.KindOf(err) != fault.Bug {
		t.Errorf("got %v", err)
	}
}

func TestConfigOf(t *testing.T) {
	want := []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "w"}}}
	other := machine(func(m *clusterv1.Machine) { m.Spec.Bootstrap.ConfigRef.APIGroup = "example.com" })
	if diff := cmp.Diff(want, configOf(t.Context(), machine())); diff != "" {
		t.Errorf("a Machine (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, configOf(t.Context(), machinePool())); diff != "" {
		t.Errorf("a MachinePool (-want +got):\n%s", diff)
	}
	if got := configOf(t.Context(), other); got != nil {
		t.Errorf("another provider's: %v", got)
	}
}

// TestLostOwner: data that has lost its owner gets it back, and nothing else is written.
func TestLostOwner(t *testing.T) { // OR-01
	cases := map[string]struct {
		reason string
		change func(*corev1.Secret)
		owners int
	}{
		"none":            {"as a restore leaves it", func(s *corev1.Secret) { s.OwnerReferences = nil }, 1},
		"earlier life":    {"the KubeadmConfig was restored before", func(s *corev1.Secret) { s.OwnerReferences[0].UID = "earlier" }, 1},
		"earlier version": {"the reference would not be followed for ever", func(s *corev1.Secret) { s.OwnerReferences[0].APIVersion = bootstrapv1.GroupVersion.Group + "/v1beta1" }, 1},
		"beside another one": {"which stays", func(s *corev1.Secret) {
			s.OwnerReferences[0] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
		}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			testkit.FailEachWrite(t, func() *fake.ClientBuilder {
				return build(t, ownedBy("Machine", "m"), machine(), cluster(), ca())
			}, func(t *testing.T, c client.WithWatch) {
				w := newWorld(t, c)
				w.settle()
				secret := w.data()
				value := string(secret.Data["value"])
				tc.change(secret)
				if err := c.Update(context.Background(), secret); errors.Is(err, testkit.ErrInjected) {
					return // this run's failure was the test's own write
				}
				w.settle()
				owner := metav1.GetControllerOf(w.data())
				if owner == nil || owner.UID != w.config().UID || owner.APIVersion != bootstrapv1.GroupVersion.String() || len(w.data().OwnerReferences) != tc.owners {
					t.Errorf("%s: owners %v", tc.reason, w.data().OwnerReferences)
				}
				if string(w.data().Data["value"]) != value {
					t.Error("the data was made again")
				}
			})
		})
	}
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Type: corev1.SecretTypeOpaque}
	for reason, s := range map[string]snapshot{
		"no data":               {Config: config()},
		"a Secret of a user":    {Config: config(), Written: foreign},
		"one with another name": {Config: config(), Written: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Type: clusterv1.ClusterSecretType}},
		"one that is another's": {Config: config(), Written: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "w", OwnerReferences: []metav1.OwnerReference{{Kind: "Vault", Name: "w", Controller: ptr.To(true)}}}, Type: clusterv1.ClusterSecretType}},
	} {
		if needsOwner(s) {
			t.Errorf("%s is taken over", reason)
		}
	}
}
