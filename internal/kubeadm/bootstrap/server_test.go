package bootstrap

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// serverTTL of tokens: short enough to see a rotation, long enough for a busy machine.
const serverTTL = 6 * time.Second

// live is the controller in a manager, over an API server that is management and workload cluster at once.
type live struct {
	t *testing.T
	client.Client
}

func startLive(t *testing.T) live {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	var objs []client.Object
	for _, crd := range all {
		if slices.Contains([]string{"Cluster", "Machine", "MachinePool", "KubeadmConfig", "KubeadmConfigTemplate"}, crd.Spec.Names.Kind) {
			objs = append(objs, crd)
		}
	}
	srv := apiserver.Start(t, apiserver.Options{Objects: objs})
	mgr, err := ctrl.NewManager(srv.Config, manager.Options{
		Scheme: newScheme(t), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}}, // RC-07
	})
	if err != nil {
		t.Fatal(err)
	}
	clusters, err := workload.New(workload.Config{Management: mgr.GetClient()})
	if err != nil {
		t.Fatal(err)
	}
	if err := clusters.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	if err := Add(reconciler.Setup{Manager: mgr, Concurrency: 2}, clusters, Settings{TokenTTL: serverTTL}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager exited: %v", err)
		}
	})
	c, err := client.New(srv.Config, client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(srv.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	l := live{t: t, Client: c}
	l.cluster(kubeconfig)
	return l
}

// must ends the test on an error.
func (l live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// cluster creates Cluster c, whose kubeconfig leads back to the same server.
func (l live) cluster(kubeconfig []byte) {
	ctx := l.t.Context()
	labels := map[string]string{clusterv1.ClusterNameLabel: "c"}
	l.must(l.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-kubeconfig", Labels: labels}, Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig}}
	l.must(l.Create(ctx, secret))
	l.must(l.Create(ctx, ca()))
	c := cluster()
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i.example", Kind: "Infra", Name: "c"}
	status := c.Status
	l.must(l.Create(ctx, c))
	c.Status = status
	l.must(l.Status().Update(ctx, c))
}

// eventually polls until f says nothing.
func (l live) eventually(what string, f func() string) {
	l.t.Helper()
	problem := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if problem = f(); problem == "" {
			return
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	l.t.Fatalf("%s: %s", what, problem)
}

func (l live) get(name string) *bootstrapv1.KubeadmConfig {
	c := &bootstrapv1.KubeadmConfig{}
	l.must(l.Client.Get(l.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, c))
	return c
}

// made waits until the data of a KubeadmConfig exists, and returns it.
func (l live) made(name string) *corev1.Secret {
	l.t.Helper()
	secret := &corev1.Secret{}
	l.eventually("bootstrap data of "+name, func() string {
		c := l.get(name)
		if conditionOf(c, "Ready") != "True" || conditionOf(c, "Paused") != "False" || c.Status.DataSecretName != name {
			return fmt.Sprintf("status is %+v", c.Status)
		}
		if err := l.Client.Get(l.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, secret); err != nil {
			return err.Error()
		}
		return ""
	})
	return secret
}

func (l live) tokens(config string) int {
	l.t.Helper()
	list := &corev1.SecretList{}
	owner := snapshot{Config: &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: config}}}.tokenOwner()
	l.must(l.List(l.t.Context(), list, client.InNamespace("kube-system"), client.MatchingLabels{"bootstrap.slipway.dev/kubeadmconfig": owner.Label()}))
	return len(list.Items)
}

// KB-01, KB-02, KB-04, KB-05, KB-09, KB-11, BC-10: against a real API server, with its validation, field ownership and
// watches.
func TestAgainstServer(t *testing.T) {
	l := startLive(t)
	ctx := t.Context()

	m := machine()
	m.UID = ""
	m.Finalizers = []string{"test/hold"}
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i.example", Kind: "Infra", Name: "m"}
	l.must(l.Create(ctx, m))
	lonely := config()
	lonely.UID, lonely.Generation = "", 0
	l.must(l.Create(ctx, lonely))
	l.eventually("a KubeadmConfig without an owner waits", func() string {
		if c := l.get("w"); conditionOf(c, "DataSecretAvailable") != "False" {
			return fmt.Sprintf("status is %+v", c.Status)
		}
		return ""
	})

	lonely = l.get("w")
	lonely.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "m", UID: m.UID}}
	l.must(l.Update(ctx, lonely))
	secret := l.made("w")
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != lonely.UID {
		t.Errorf("owners of the data Secret: %v", secret.OwnerReferences)
	}
	if n := l.tokens("w"); n != 1 {
		t.Errorf("%d tokens", n)
	}
	l.must(l.Delete(ctx, m))
	l.eventually("the token goes with its Machine", func() string {
		if n := l.tokens("w"); n != 0 {
			return fmt.Sprintf("%d tokens", n)
		}
		return ""
	})

	l.initializes()
	l.rotates()
	l.hasTemplates()
}

// initializes sees one of two Machines of a control plane win the lock (KB-05), and the lock go afterwards.
func (l live) initializes() {
	ctx := l.t.Context()
	c := cluster()
	c.Name = "n"
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i.example", Kind: "Infra", Name: "n"}
	l.must(l.Create(ctx, c))
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	l.must(l.Status().Update(ctx, c))
	names := []string{"cp1", "cp2"}
	for _, name := range names {
		m := controlPlaneMachine()
		m.Name, m.UID, m.Spec.ClusterName, m.Spec.Bootstrap.ConfigRef.Name = name, "", "n", name
		m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i.example", Kind: "Infra", Name: name}
		l.must(l.Create(ctx, m))
		k := config()
		k.Name, k.UID, k.Generation, k.Labels[clusterv1.ClusterNameLabel] = name, "", 0, "n"
		k.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: m.UID}}
		l.must(l.Create(ctx, k))
	}
	l.eventually("one Machine initializes, the other waits for it", func() string {
		winners, waits := 0, 0
		for _, name := range names {
			k := l.get(name)
			if k.Status.DataSecretName != "" {
				winners++
			}
			for _, condition := range k.Status.Conditions {
				if condition.Type == "DataSecretAvailable" && strings.HasPrefix(condition.Message, "Waiting for Machine cp") {
					waits++
				}
			}
		}
		if winners != 1 || waits != 1 {
			return fmt.Sprintf("%d have data, %d wait", winners, waits)
		}
		return ""
	})
	lock := &corev1.ConfigMap{}
	l.must(l.Client.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "n-lock"}, lock))
	if len(lock.OwnerReferences) != 1 || lock.OwnerReferences[0].UID != c.UID {
		l.t.Errorf("owners of the lock: %v", lock.OwnerReferences)
	}
	l.must(l.Client.Get(ctx, client.ObjectKeyFromObject(c), c))
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	l.must(l.Status().Update(ctx, c))
	l.eventually("the lock goes", func() string {
		if err := l.Client.Get(ctx, client.ObjectKeyFromObject(lock), lock); !apierrors.IsNotFound(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
}

// rotates sees the token of a pool replaced.
func (l live) rotates() {
	ctx := l.t.Context()
	p := machinePool()
	p.UID = ""
	p.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i.example", Kind: "Infra", Name: "p"}
	l.must(l.Create(ctx, p))
	c := config()
	c.Name, c.UID, c.Generation = "p", "", 0
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "p", UID: p.UID}}
	l.must(l.Create(ctx, c))
	first := string(l.made("p").Data["value"])
	l.eventually("the token of a MachinePool is rotated", func() string {
		if string(l.made("p").Data["value"]) == first {
			return "the data is still the first"
		}
		return ""
	})
}

// BC-06, BC-07: templates exist, can be listed, and a server-side dry run may change them.
func (l live) hasTemplates() {
	ctx := l.t.Context()
	template := &bootstrapv1.KubeadmConfigTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"}}
	template.Spec.Template.Spec.PreKubeadmCommands = []string{"one"}
	l.must(l.Create(ctx, template))
	change := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"preKubeadmCommands": []any{"two"}}}}}}
	change.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind("KubeadmConfigTemplate"))
	change.SetNamespace("ns")
	change.SetName("t")
	change.SetAnnotations(map[string]string{clusterv1.TopologyDryRunAnnotation: ""})
	l.must(l.Apply(ctx, client.ApplyConfigurationFromUnstructured(change), client.FieldOwner("test"), client.ForceOwnership, client.DryRunAll))
	list := &bootstrapv1.KubeadmConfigTemplateList{}
	l.must(l.List(ctx, list, client.InNamespace("ns")))
	if len(list.Items) != 1 || list.Items[0].Spec.Template.Spec.PreKubeadmCommands[0] != "one" {
		l.t.Errorf("templates are %+v", list.Items)
	}
}
