package machinepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// wasReady lets the pool have been complete before.
func wasReady(s *snapshot) {
	s.Pool.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	s.Pool.Status.Replicas, s.Pool.Status.ReadyReplicas = ptr.To[int32](2), ptr.To[int32](2)
	s.Pool.Status.NodeRefs = []corev1.ObjectReference{refTo(node("n0", "x://0")), refTo(node("n1", "x://1"))}
}

// lists makes the infrastructure list these IDs, and only n0 and n1 exist.
func lists(spec, status string) func(*snapshot) {
	return func(s *snapshot) {
		s.Infra = infraOf(contract.V1Beta2, spec, status)
		all := s.Nodes.Items
		s.Nodes.Items = map[string]corev1.Node{}
		for _, id := range s.instances().ids {
			if n, ok := all[id]; ok {
				s.Nodes.Items[id] = n
			}
		}
	}
}

// One list decides about nodeRefs, counters and conditions, so that they never contradict each other.
func TestInstances(t *testing.T) { // MP-04, MP-05, MP-11, MP-12
	type wants struct {
		replicas, ready, upToDate, nodeRefs int
		machinesReady, available            string
		waits                               []string
	}
	const (
		good      = "True Available"
		missing   = "Waiting for FooPool i to set spec.providerIDList: it reports 2 replicas"
		repeated  = "FooPool i lists provider IDs more than once in spec.providerIDList: x://0; each instance needs an ID of its own"
		ghosts    = "Waiting for Nodes with the provider IDs of FooPool i to exist: x://8, x://9"
		rivalText = "Nodes n1, twin have the same spec.providerID x://1: a provider ID has to be unique"
	)
	cases := map[string]struct {
		reason string
		s      snapshot
		want   wants
	}{
		"as it should be": {"", settled(wasReady), wants{2, 2, 2, 2, "True Ready", good, nil}},
		"list gone for a moment": {"no news is not none", settled(wasReady, lists("spec: {}", provisioned)),
			wants{2, 2, 2, 2, "True Ready: " + missing, good, []string{missing}}},
		"list and count gone": {"", settled(wasReady, lists("spec: {}", `{ready: true}`)), wants{2, 2, 2, 2, "True Ready", good, nil}},
		"status gone": {"an infrastructure whose status is rebuilt still has its instances", settled(wasReady, lists("spec: {}", `{}`)),
			wants{2, 2, 2, 2, "True Ready", good, []string{"Waiting for FooPool i to report status.initialization.provisioned"}}},
		"scaled to zero": {"the infrastructure counts none", settled(wasReady, lists("spec: {}", `{ready: true, replicas: 0}`)),
			wants{0, 0, 0, 0, "True NoReplicas", "False NotAvailable: 0 available replicas, at least 2 required", nil}},
		"not counted": {"the list counts", settled(wasReady, lists("spec: {providerIDList: [x://0, x://1]}", `{ready: true}`)),
			wants{2, 2, 2, 2, "True Ready", good, nil}},
		"not provisioned yet": {"count and list become known together", settled(func(s *snapshot) { s.Pool.Spec.ProviderIDList = nil },
			lists("spec: {providerIDList: [x://0, x://1]}", `{replicas: 2}`)),
			wants{0, 0, 0, 0, "True NoReplicas", "False NotAvailable: * InfrastructureReady: FooPool status.initialization.provisioned is false",
				[]string{"Waiting for FooPool i to report status.initialization.provisioned"}}},
		"listed twice": {"one instance is not two", settled(wasReady, lists("spec: {providerIDList: [x://0, x://0]}", provisioned)),
			wants{2, 1, 1, 1, "False NotReady: " + repeated, "False NotAvailable: 1 available replicas, at least 2 required", []string{repeated}}},
		"no Nodes": {"the IDs are named", settled(wasReady, lists("spec: {providerIDList: [x://8, x://9]}", provisioned)),
			wants{2, 0, 0, 0, "False NotReady: " + ghosts, "False NotAvailable: 0 available replicas, at least 2 required", []string{ghosts}}},
		"two Nodes with one ID": {"", settled(wasReady, func(s *snapshot) {
			delete(s.Nodes.Items, "x://1")
			s.Nodes.Duplicates = map[string][]string{"x://1": {"n1", "twin"}}
		}), wants{2, 1, 1, 1, "False NotReady: " + rivalText, "False NotAvailable: 1 available replicas, at least 2 required", []string{rivalText}}},
		"more replicas than IDs": {"", settled(wasReady, lists("spec: {providerIDList: [x://0, x://1]}", `{ready: true, replicas: 3}`)),
			wants{3, 2, 2, 2, "False NotReady: Waiting for FooPool i to complete spec.providerIDList: it reports 3 replicas and 2 provider IDs", good,
				[]string{"Waiting for FooPool i to complete spec.providerIDList: it reports 3 replicas and 2 provider IDs"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			status := report(tc.s, p, reconciler.Outcome{}).Status.(clusterv1.MachinePoolStatus)
			text := func(conditionType string) string {
				c := condition.Set(status.Conditions).Get(conditionType)
				if c.Message == "" {
					return string(c.Status) + " " + c.Reason
				}
				return string(c.Status) + " " + c.Reason + ": " + c.Message
			}
			got := wants{int(*status.Replicas), int(*status.ReadyReplicas), int(*status.UpToDateReplicas), len(status.NodeRefs),
				text(clusterv1.MachinesReadyCondition), text(clusterv1.AvailableCondition), nil}
			for _, w := range p.Waits {
				got.waits = append(got.waits, w.Message)
				if len(w.On) == 0 || w.Until == "" {
					t.Errorf("no object or no end: %+v", w)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(wants{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The spec takes every ID once: its consumers count it.
func TestRepeatedIDsAreTakenOverOnce(t *testing.T) { // MP-04
	s := settled(lists("spec: {providerIDList: [x://1, x://0, x://1]}", provisioned))
	pool := s.Pool.DeepCopy()
	copyProviderFields(s, pool)
	if diff := cmp.Diff([]string{"x://1", "x://0"}, pool.Spec.ProviderIDList); diff != "" {
		t.Error(diff)
	}
}

// Rivals are read with their names.
func TestRivalsAreRead(t *testing.T) { // MP-05
	s := settled(func(s *snapshot) { s.Nodes = observedNodes{} })
	n0, twin := nodeOf("n0", "x://0", "u0"), nodeOf("twin", "x://0", "u1")
	c := &controller{workloads: fakeWorkloads{fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(&twin, &n0).Build()}}
	if err := c.readNodes(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"x://0": {"n0", "twin"}}, s.Nodes.Duplicates); diff != "" {
		t.Error(diff)
	}
}
