package machinehealthcheck

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 2 * time.Minute

// live is a management cluster that is its own workload cluster; the test plays everybody else.
type live struct {
	t *testing.T
	client.Client
	hc *clusterv1.MachineHealthCheck
	m  *clusterv1.Machine
}

func liveScheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// kinds are the CRDs that the test needs; those of requests and their templates are made up.
func kinds(t *testing.T) []client.Object {
	t.Helper()
	out := apiserver.CRDs(t, "Cluster", "Machine", "MachineHealthCheck")
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	for kind, plural := range map[string]string{"Fix": "fixes", "FixTemplate": "fixtemplates"} {
		out = append(out, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".r.example.com", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "r.example.com", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural, ListKind: kind + "List", Singular: strings.ToLower(kind)},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything}}},
			},
		})
	}
	return out
}

func start(t *testing.T) *live {
	t.Helper()
	srv := apiserver.Start(t, apiserver.Options{Objects: append(kinds(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})})
	mgr, err := ctrl.NewManager(srv.Config, manager.Options{
		Scheme: liveScheme(t), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Cache: cache.Options{DefaultTransform: kube.PruneManagedFields},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}}}},
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
	if err := Add(reconciler.Setup{Manager: mgr, Concurrency: 2}, clusters); err != nil {
		t.Fatal(err)
	}
	testkit.RunBackground(t, mgr.Start)
	l := &live{t: t, Client: srv.Client(t, liveScheme(t))}
	l.workload(srv.Kubeconfig)
	return l
}

// workload makes the Cluster, whose control plane is initialized, and the way to it.
func (l *live) workload(kubeconfig string) {
	l.t.Helper()
	access, err := os.ReadFile(kubeconfig)
	l.must(err)
	l.must(l.Create(l.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": access},
	}))
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i.example.com", Kind: "I", Name: "c"}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
	l.must(l.Create(l.t.Context(), c))
	c.Status.Initialization.InfrastructureProvisioned, c.Status.Initialization.ControlPlaneInitialized = ptr.To(true), ptr.To(true)
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterInfrastructureReadyCondition, Status: "True", Reason: "Ready", LastTransitionTime: metav1.Now()}}
	l.must(l.Status().Update(l.t.Context(), c))
}

func (l *live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *live) eventually(what string, o client.Object, ok func() bool) {
	l.t.Helper()
	l.poll(fmt.Sprintf("%s: not so: %+v", what, o), func() bool {
		l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o))
		return ok()
	})
}

func (l *live) poll(otherwise string, ok func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			l.t.Fatal(otherwise)
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// node makes or changes the Machine's Node; its Ready condition has had the status for an hour.
func (l *live) node(ready string) {
	l.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if err := l.Create(l.t.Context(), n); err != nil {
		l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(n), n))
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(ready), LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}}
	l.must(l.Status().Update(l.t.Context(), n))
}

func (l *live) says(what, conditionType, want string) {
	l.t.Helper()
	l.eventually(what, l.m, func() bool {
		c := condition.Set(l.m.Status.Conditions).Get(conditionType)
		return want == "" && c == nil || c != nil && string(c.Status)+" "+c.Reason == want
	})
}

func (l *live) setup() {
	l.hc = &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hc"}, Spec: check().Spec}
	l.must(l.Create(l.t.Context(), l.hc))
	l.m = &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: map[string]string{"pool": "a", clusterv1.ClusterNameLabel: "c"}}}
	l.m.Spec = clusterv1.MachineSpec{ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("x")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "i.example.com", Kind: "I", Name: "m"}}
	l.must(l.Create(l.t.Context(), l.m))
	l.node("True")
	l.m.Status.NodeRef.Name = "n"
	l.must(l.Status().Update(l.t.Context(), l.m))
}

func TestOverAPIServer(t *testing.T) { // HC-01, HC-04, HC-06, HC-08 to HC-10, HC-12, CO-03, OR-01
	l := start(t)
	l.setup()
	l.eventually("the health check belongs to its Cluster", l.hc, func() bool {
		return len(l.hc.OwnerReferences) == 1 && l.hc.Labels[clusterv1.ClusterNameLabel] == "c"
	})
	l.says("the Machine is healthy", health, "True HealthCheckSucceeded")
	l.eventually("status counts", l.hc, func() bool {
		return l.hc.Status.CurrentHealthy != nil && *l.hc.Status.CurrentHealthy == 1 && slices.Equal(l.hc.Status.Targets, []string{"m"})
	})
	l.hc.OwnerReferences = nil
	l.must(l.Update(t.Context(), l.hc))
	l.eventually("a lost owner comes back", l.hc, func() bool { return len(l.hc.OwnerReferences) == 1 })

	l.node("False")
	l.says("a change of the Node wakes", owner, "False WaitingForRemediation")
	l.ownerTakesOver()
	l.node("True")
	l.says("recovered", health, "True HealthCheckSucceeded")
	l.externally()
	l.isQuiet()
	l.refusesForbiddenTypes()
}

// ownerTakesOver lets the owner change OwnerRemediated and remove it: nothing of ours is left behind.
func (l *live) ownerTakesOver() {
	l.t.Helper()
	set := kube.NewWriter(l.Client, "machineset")
	taken := condition.Set{{Type: owner, Status: "False", Reason: "MachineDeleting", LastTransitionTime: metav1.Now()}}
	l.must(set.ApplyStatus(l.t.Context(), l.m, map[string]any{"conditions": taken}))
	l.eventually("our share is given up", l.m, func() bool {
		c := condition.Set(l.m.Status.Conditions).Get(owner)
		return c != nil && c.Reason == "MachineDeleting" && !kube.OwnsCondition(l.m, Name, owner) && kube.OwnsCondition(l.m, Name, health)
	})
	l.node("True")
	l.says("recovered", health, "True HealthCheckSucceeded")
	l.must(set.ApplyStatus(l.t.Context(), l.m, map[string]any{"conditions": condition.Set{}}))
	l.says("the owner removes its condition", owner, "")
}

// externally takes the way over a request.
func (l *live) externally() {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(l.hc), l.hc))
	l.hc.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{APIVersion: "r.example.com/v1", Kind: "FixTemplate", Name: "fix"}
	l.must(l.Update(l.t.Context(), l.hc))
	l.node("False")
	l.says("the template is missing", extern, "False RemediationTemplateNotFound")
	fix := template().Unstructured.DeepCopy()
	fix.SetAPIVersion("r.example.com/v1")
	l.must(l.Create(l.t.Context(), fix))
	l.says("its creation wakes", extern, "False WaitingForRemediation")
	asked := request("m").Unstructured
	asked.SetAPIVersion("r.example.com/v1")
	l.eventually("a request is there", asked, func() bool { return asked.GetOwnerReferences()[0].UID == l.m.UID })
	l.node("True")
	l.says("recovered", extern, "")
	l.poll("the request stays", func() bool {
		return apierrors.IsNotFound(l.Get(l.t.Context(), client.ObjectKeyFromObject(asked), asked))
	})
}

// isQuiet sees that nothing is written any more once all is said: a mark on another object makes a pass that we can
// wait for.
func (l *live) isQuiet() {
	l.t.Helper()
	l.says("all is said", health, "True HealthCheckSucceeded")
	before := l.m.ResourceVersion
	other := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", Labels: map[string]string{"pool": "a"}}, Spec: l.m.Spec}
	l.must(l.Create(l.t.Context(), other))
	l.eventually("another pass", l.hc, func() bool { return slices.Equal(l.hc.Status.Targets, []string{"m", "other"}) })
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(l.m), l.m))
	if l.m.ResourceVersion != before {
		l.t.Errorf("the Machine was written again")
	}
}

// refusesForbiddenTypes: a check may not look at what follows from it (HC-04).
func (l *live) refusesForbiddenTypes() {
	t := l.t
	t.Helper()
	for _, conditionType := range []string{"Ready", "Available", "HealthCheckSucceeded", "OwnerRemediated", "ExternallyRemediated"} {
		hc := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hc2"}, Spec: check().Spec}
		hc.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{{Type: conditionType, Status: "False", TimeoutSeconds: ptr.To(int32(1))}}
		if err := l.Create(t.Context(), hc); err == nil || !strings.Contains(err.Error(), "type must not be one of") {
			t.Errorf("%s is accepted: %v", conditionType, err)
		}
	}
	hc := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hc2"}, Spec: check().Spec}
	hc.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{{Type: "EtcdPodHealthy", Status: "False", TimeoutSeconds: ptr.To(int32(1))}}
	l.must(l.Create(t.Context(), hc))
}
