package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"k8s.io/utils/ptr"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 2 * time.Minute

// live is a management and a workload cluster. Nothing wakes the controller but the test.
type live struct {
	t *testing.T
	client.Client
	workload client.Client
	r        *reconciler.Reconciler[*clusterv1.Machine, snapshot]
}

func startLive(t *testing.T) live {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme,
		bootstrapv1.AddToScheme, infrav1.AddToScheme, hostedv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	installed := append(apiserver.CRDs(t, "Cluster", "Machine", "MachineSet", "MachineDeployment", "MachineDrainRule", "KubeadmConfig", "LocalMachine",
		"HostedControlPlane"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	srv := apiserver.Start(t, apiserver.Options{Objects: installed})
	mgr, err := ctrl.NewManager(srv.Config, manager.Options{
		Scheme: s, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Cache: cache.Options{DefaultTransform: kube.PruneManagedFields},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range indexes() {
		if err := mgr.GetFieldIndexer().IndexField(t.Context(), &clusterv1.Machine{}, field, value); err != nil {
			t.Fatal(err)
		}
	}
	testkit.RunBackground(t, mgr.Start)
	c, nodes := mgr.GetClient(), startWorkload(t)
	ctl := &controller{client: c, refs: kube.NewReferences(c, nil), now: time.Now, settings: Settings{VolumeAttachments: true}.withDefaults(),
		workloads: fakeWorkloads{client: nodes}}
	r := &reconciler.Reconciler[*clusterv1.Machine, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name)}
	ctl.writer = r.Writer
	return live{t: t, Client: srv.Client(t, s), workload: nodes, r: r}
}

func (l live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// until reconciles the Machine until something is true.
func (l live) until(what string, is func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		_, err := l.r.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil && fault.KindOf(err) != fault.Conflict {
			l.t.Logf("%s: %v", what, err)
		}
		if is() {
			return
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	m := &clusterv1.Machine{}
	_ = l.Get(l.t.Context(), key, m)
	l.t.Fatalf("%s: not within %s: %+v", what, patience, m.Status)
}

// create creates an object of a cluster with its status.
func (l live) create(c client.Client, o client.Object) {
	l.t.Helper()
	o.SetUID("")
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	l.must(err)
	for deadline := time.Now().Add(patience); ; {
		err := c.Create(l.t.Context(), o)
		if err == nil {
			break
		}
		if !apierrors.IsForbidden(err) || time.Now().After(deadline) { // the service account of a new Namespace takes a moment
			l.t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
	status, _ := whole["status"].(map[string]any)
	patch, err := json.Marshal(map[string]any{"status": status})
	l.must(err)
	if len(status) > 0 { // a patch: others may have written meanwhile
		l.must(client.IgnoreNotFound(c.Status().Patch(l.t.Context(), o, client.RawPatch(types.MergePatchType, patch))))
	}
}

func (l live) pod(name string, changes ...func(*corev1.Pod)) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": name}}, Spec: corev1.PodSpec{
		NodeName: "n", TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
	for _, change := range changes {
		change(p)
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	l.create(l.workload, p)
}

// pods returns the names of the Pods that exist; one that is going has an exclamation mark.
func (l live) pods() string {
	list := &corev1.PodList{}
	l.must(l.workload.List(l.t.Context(), list, client.InNamespace("ns")))
	var out []string
	for _, p := range list.Items {
		if p.DeletionTimestamp.IsZero() {
			out = append(out, p.Name)
		} else {
			out = append(out, p.Name+"!")
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// need says how many Pods of web have to stay.
func (l live) need(n int32) {
	l.t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	patch := fmt.Sprintf(`{"spec":{"minAvailable":%d}}`, n)
	l.must(l.workload.Patch(l.t.Context(), b, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// message returns what the condition Deleting says, without the first line.
func (l live) message() (reason, rest string) {
	m := &clusterv1.Machine{}
	if err := l.Get(l.t.Context(), key, m); err != nil {
		return "", ""
	}
	c := condition.Set(m.Status.Conditions).Get(clusterv1.MachineDeletingCondition)
	if c == nil {
		return "", ""
	}
	_, rest, _ = strings.Cut(c.Message, "\n")
	return c.Reason, rest
}

// populate creates a Cluster with a Machine and its Node, which runs Pods of all sorts.
func (l live) populate() {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	yes := ptr.To(true)
	cluster := &clusterv1.Cluster{ObjectMeta: meta("c")}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "p"}
	cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: yes, ControlPlaneInitialized: yes}
	plane := &hostedv1.HostedControlPlane{ObjectMeta: meta("p")}
	plane.Spec.Version, plane.Status.ExternalManagedControlPlane = "v1.36.3", yes
	m := &clusterv1.Machine{ObjectMeta: meta("m")}
	m.Spec = clusterv1.MachineSpec{ClusterName: "c",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: "m"}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachine", Name: "m"}}
	config := &bootstrapv1.KubeadmConfig{ObjectMeta: meta("m")}
	config.Status.DataSecretName, config.Status.Initialization.DataSecretCreated = "m", yes
	host := &infrav1.LocalMachine{ObjectMeta: meta("m")}
	n := node()
	n.Spec.ProviderID = "slipway:///slipway-ns-m-0123abcd"
	host.Spec.ProviderID, host.Status.Initialization.Provisioned = n.Spec.ProviderID, yes
	for _, o := range []client.Object{cluster, plane, config, host, m} {
		l.create(l.Client, o)
	}
	for _, o := range []client.Object{n, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}} {
		l.create(l.workload, o)
	}
	l.until("the Machine runs", func() bool {
		got := &clusterv1.Machine{}
		l.must(l.Get(l.t.Context(), key, got))
		return got.Status.Phase == "Running"
	})
	for _, name := range []string{"web-0", "web-1"} {
		l.pod(name, func(p *corev1.Pod) { p.Labels["app"] = "web" })
	}
	l.pod("plain", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	})
	l.pod("slow", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600) })
	l.pod("last")
	l.pod("kept", func(p *corev1.Pod) { p.Labels[clusterv1.PodDrainLabel] = "skip" })
	l.create(l.workload, &policyv1.PodDisruptionBudget{ObjectMeta: meta("web"), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}})
	l.create(l.Client, &clusterv1.MachineDrainRule{ObjectMeta: meta("last"), Spec: clusterv1.MachineDrainRuleSpec{
		Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorDrain, Order: ptr.To[int32](1)},
		Pods:  []clusterv1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "last"}}}}}})
}

// TestDrainOfARealNode drains through the API server's own evictions.
func TestDrainOfARealNode(t *testing.T) { // MD-04, MD-05, MD-07, MD-08, MD-10, MD-11, MD-14, MD-15, MD-16
	l := startLive(t)
	l.populate()
	l.must(l.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}))
	const budget = "* Pods that cannot be evicted, a PodDisruptionBudget does not allow it now: " +
		"The disruption budget web needs "
	l.until("what may leave leaves", func() bool {
		reason, rest := l.message()
		return reason == "DrainingNode" && l.pods() == "kept last slow! web-0 web-1" && rest == "* Terminating Pods: ns/slow\n"+
			budget+"2 healthy pods and has 2 currently: ns/web-0, ns/web-1"+"\n* Pods to be evicted after Pods of a lower order: ns/last"
	})
	n := &corev1.Node{}
	l.must(l.workload.Get(t.Context(), client.ObjectKey{Name: "n"}, n))
	if !n.Spec.Unschedulable {
		t.Error("MD-04: the Node is not cordoned")
	}
	l.need(1)
	l.until("the budget lets one go, and no more", func() bool {
		_, rest := l.message()
		return l.pods() == "kept last slow! web-1" && strings.Contains(rest, budget+"1 healthy pods and has 1 currently: ns/web-1")
	})
	l.need(0)
	l.until("and then the other", func() bool { return l.pods() == "kept last slow!" })
	l.must(l.workload.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slow"}}, client.GracePeriodSeconds(0)))
	l.until("the last in order leaves when the others are gone, and the machine goes", func() bool {
		return l.pods() == "kept" && apierrors.IsNotFound(l.Get(t.Context(), key, &clusterv1.Machine{}))
	})
	for _, o := range []client.Object{&infrav1.LocalMachine{}, &bootstrapv1.KubeadmConfig{}} {
		if err := l.Get(t.Context(), key, o); !apierrors.IsNotFound(err) {
			t.Errorf("%T still exists: %v", o, err)
		}
	}
	if err := l.workload.Get(t.Context(), client.ObjectKey{Name: "n"}, n); !apierrors.IsNotFound(err) {
		t.Errorf("Node still exists: %v", err)
	}
	l.refuseBadRules()
}

// refuseBadRules proves what the CRD of MachineDrainRules refuses.
func (l live) refuseBadRules() { // MD-09
	pod := clusterv1.MachineDrainRulePodSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	var many []clusterv1.MachineDrainRulePodSelector
	for i := range 33 {
		many = append(many, clusterv1.MachineDrainRulePodSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": fmt.Sprint(i)}}})
	}
	for name, tc := range map[string]struct {
		behavior clusterv1.MachineDrainRuleDrainBehavior
		pods     []clusterv1.MachineDrainRulePodSelector
		refused  bool
	}{
		"good":             {"Skip", []clusterv1.MachineDrainRulePodSelector{pod}, false},
		"unknown-behavior": {"Hurry", nil, true},
		"twice":            {"Skip", []clusterv1.MachineDrainRulePodSelector{pod, pod}, true},
		"many":             {"Skip", many, true},
		"most":             {"Skip", many[:32], false},
	} {
		r := &clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		r.Spec.Drain.Behavior, r.Spec.Pods = tc.behavior, tc.pods
		if err := l.Create(l.t.Context(), r); (err != nil) != tc.refused {
			l.t.Errorf("%s: %v", name, err)
		}
	}
}
