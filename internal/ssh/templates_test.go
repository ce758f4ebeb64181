package ssh

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

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
	for _, add := range []func(*runtime.Scheme) error{infrav1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func teamA() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"team": "a"}}}
}

func TestCapacity(t *testing.T) {
	small := sshHost("b", "", func(h *infrav1.SSHHost) {
		h.Labels, h.Status.Facts = map[string]string{"size": "small"}, infrav1.SSHHostFacts{CPUs: 2, MemoryMiB: 16384, Architecture: "arm64"}
	})
	hosts := []*infrav1.SSHHost{sshHost("a", "rack-1", nil), small, sshHost("new", "", func(h *infrav1.SSHHost) { h.Status.Facts = infrav1.SSHHostFacts{} }),
		sshHost("other", "", func(h *infrav1.SSHHost) { h.Spec.OfferedTo, h.Status.Facts.CPUs = nil, 1 })}
	r := inventory.Request{Namespace: inventory.Namespace{Name: "team-a", Labels: map[string]string{"team": "a"}}}
	for name, tc := range map[string]struct {
		selector          map[string]string
		domain            string
		cpu, memory, disk string
		architecture      infrav1.Architecture
	}{
		"all":       {nil, "", "2", "8092Mi", "0", ""},
		"large":     {map[string]string{"size": "large"}, "", "4", "8092Mi", "96636764160", "amd64"},
		"domain":    {nil, "rack-1", "4", "8092Mi", "96636764160", "amd64"},
		"no domain": {nil, "rack-9", "0", "0", "0", ""},
	} {
		if r.Selector = nil; tc.selector != nil {
			r.Selector = &metav1.LabelSelector{MatchLabels: tc.selector}
		}
		got := inventory.Capacity(r, hosts, tc.domain)
		c := got.Capacity
		if c.Cpu().String() != tc.cpu || c.Memory().String() != tc.memory || c.StorageEphemeral().String() != tc.disk && c.StorageEphemeral().Value() != 96636764160 || got.NodeInfo.Architecture != tc.architecture {
			t.Errorf("%s: %v, %+v", name, c, got.NodeInfo)
		}
	}
}

func TestTemplateStatus(t *testing.T) {
	o := &infrav1.SSHMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "t", UID: "u", CreationTimestamp: metav1.NewTime(now)}}
	cl := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(o).WithReturnManagedFields().WithObjects(o, teamA(), sshHost("a", "", nil)).Build()
	at := now
	c := infrastructure.TemplateReconciler{Client: cl, Writer: kube.NewWriter(cl, templatesName), Now: func() time.Time { return at }, New: newTemplate, Status: templateStatus(cl)}
	reconcile := func() ctrl.Result {
		result, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		return result
	}
	if r := reconcile(); r.RequeueAfter != 10*time.Second || o.Status.Capacity != nil {
		t.Errorf("without an owner: %+v, %+v", r, o.Status)
	}
	at = at.Add(10 * time.Second)
	reconcile()
	version := o.ResourceVersion
	if reconcile(); o.Status.Capacity.Cpu().String() != "4" || o.Status.NodeInfo.Architecture != "amd64" || o.ResourceVersion != version {
		t.Errorf("%+v", o.Status)
	}
}
