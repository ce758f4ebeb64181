package clusters

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func sshCluster(change func(*infrav1.SSHCluster)) *infrav1.SSHCluster {
	o := &infrav1.SSHCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "c", UID: "u", Generation: 1,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "c"}}}}
	if change != nil {
		change(o)
	}
	return o
}

func coreCluster(change func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "c"}}
	if change != nil {
		change(c)
	}
	return c
}

func hosted(c *clusterv1.Cluster) {
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: hostedKind, Name: "c"}
}

func TestDecide(t *testing.T) {
	endpoint := clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	plane := func(kind string) func(*clusterv1.Cluster) {
		return func(c *clusterv1.Cluster) {
			c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.example", Kind: kind, Name: "c"}
		}
	}
	restricted := policy.Default()
	restricted.Hosts.Endpoints = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, tc := range map[string]struct {
		reason   string
		object   func(*infrav1.SSHCluster)
		snapshot snapshot
		stage    int
		wait     string
	}{
		"no Cluster":        {"it may provide the endpoint", nil, snapshot{}, stageEndpoint, reasonCluster},
		"own endpoint":      {"the user has a load balancer", func(o *infrav1.SSHCluster) { o.Spec.ControlPlaneEndpoint = endpoint }, snapshot{Cluster: coreCluster(nil)}, stageReady, ""},
		"Cluster's":         {"the Cluster has it", nil, snapshot{Cluster: coreCluster(func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = endpoint })}, stageReady, ""},
		"denied":            {"the operator forbids it", func(o *infrav1.SSHCluster) { o.Spec.ControlPlaneEndpoint = endpoint }, snapshot{Cluster: coreCluster(nil), Policy: restricted}, stageEndpoint, reasonDenied},
		"denied, Cluster's": {"the operator forbids it", nil, snapshot{Cluster: coreCluster(func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = endpoint }), Policy: restricted}, stageEndpoint, reasonDenied},
		"name denied": {"it could lead anywhere", func(o *infrav1.SSHCluster) {
			o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "a.example", Port: 6443}
		}, snapshot{Cluster: coreCluster(nil), Policy: restricted}, stageEndpoint, reasonDenied},
		"topology":          {"the control plane comes soon", nil, snapshot{Cluster: coreCluster(func(c *clusterv1.Cluster) { c.Spec.Topology.ClassRef.Name = "ssh" })}, stageEndpoint, reasonControlPlane},
		"hosted, not there": {"it comes soon", nil, snapshot{Cluster: coreCluster(hosted)}, stageEndpoint, reasonControlPlane},
		"hosted":            {"it provides the endpoint", nil, snapshot{Cluster: coreCluster(hosted), HostedControlPlane: &controlplanev1.HostedControlPlane{}}, stageReady, ""},
		"kubeadm":           {"it provides none", nil, snapshot{Cluster: coreCluster(plane(kubeadmKind))}, stageEndpoint, reasonEndpoint},
		"none":              {"the user has to set it", nil, snapshot{Cluster: coreCluster(nil)}, stageEndpoint, reasonEndpoint},
		"another":           {"it provides the endpoint, by contract", nil, snapshot{Cluster: coreCluster(plane("KamajiControlPlane"))}, stageReady, ""},
		"deleting":          {"there is nothing to clean", func(o *infrav1.SSHCluster) { o.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }, snapshot{}, stageDeletion, ""},
	} {
		s := tc.snapshot
		s.Object, s.Now = sshCluster(tc.object), now
		p := decide(s)
		got := ""
		if len(p.Waits) > 0 {
			got = p.Waits[0].Reason
		}
		if p.Stage.Order != tc.stage || got != tc.wait || len(p.Waits) > 1 || len(p.Actions) > 0 {
			t.Errorf("%s: plan %+v, want stage %d and wait %q (%s)", name, p, tc.stage, tc.wait, tc.reason)
		}
		status := report(s, p, reconciler.Outcome{}).Status.(infrav1.SSHClusterStatus)
		if ready := condition.Set(status.Conditions).IsTrue("Ready"); ready != (tc.stage == stageReady) || ptr.Deref(status.Initialization.Provisioned, false) != ready {
			t.Errorf("%s: status %+v (%s)", name, status, tc.reason)
		}
	}
}

// Once provisioned, it remains provisioned.
func TestProvisionedRemains(t *testing.T) {
	s := snapshot{Object: sshCluster(nil), Now: now, FailureDomains: []string{"rack-1", "rack-2"}}
	s.Object.Status.Initialization.Provisioned = ptr.To(true)
	status := report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.SSHClusterStatus)
	want := []clusterv1.FailureDomain{{Name: "rack-1", ControlPlane: ptr.To(true)}, {Name: "rack-2", ControlPlane: ptr.To(true)}}
	if diff := cmp.Diff(want, status.FailureDomains); diff != "" || !ptr.Deref(status.Initialization.Provisioned, false) {
		t.Errorf("%+v (-want +got):\n%s", status, diff)
	}
}

func sshHost(name, domain string, change func(*infrav1.SSHHost)) *infrav1.SSHHost {
	h := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: name, Labels: map[string]string{"size": "large"}}}
	h.Spec.OfferedTo, h.Spec.FailureDomain = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, domain
	h.Status.Facts = infrav1.SSHHostFacts{CPUs: 4, MemoryMiB: 8192, DiskMiB: 102400, Architecture: "amd64"}
	if change != nil {
		change(h)
	}
	return h
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func teamA() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"team": "a"}}}
}

// The failure domains are those of the hosts that are offered, and of no others.
func TestReconcile(t *testing.T) {
	o := sshCluster(func(o *infrav1.SSHCluster) {
		o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	})
	cl := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(o).WithReturnManagedFields().WithObjects(o, coreCluster(nil), teamA(),
		sshHost("a", "rack-2", nil), sshHost("b", "rack-1", nil), sshHost("c", "rack-1", nil), sshHost("d", "", nil),
		sshHost("e", "secret", func(h *infrav1.SSHHost) { h.Spec.OfferedTo.MatchLabels["team"] = "b" })).Build()
	c := &controller{client: cl, states: newStates(), now: func() time.Time { return now }, noHosted: true, Config: Config{Policy: policy.Default()}}
	r := &reconciler.Reconciler[*infrav1.SSHCluster, snapshot]{Controller: c.definition(), Client: cl, Writer: kube.NewWriter(cl, Name), Now: c.now}
	for range 3 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range o.Status.FailureDomains {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"rack-1", "rack-2"}, names); diff != "" || !condition.Set(o.Status.Conditions).IsTrue("Ready") {
		t.Errorf("%+v (-want +got):\n%s", o.Status, diff)
	}
}
