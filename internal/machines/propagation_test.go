package machines_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines"
)

const manager = "slipway-test"

func machine(change func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{clusterv1.MachineFinalizer},
	}}
	m.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Ours"}}
	m.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(5))
	change(m)
	return m
}

func applied(m *clusterv1.Machine, fields string) {
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}}
}

func TestFollows(t *testing.T) { // MS-08, MP-07
	theirs := clusterv1.MachineReadinessGate{ConditionType: "Theirs"}
	for name, tc := range map[string]struct {
		reason string
		have   func(*clusterv1.Machine)
		want   bool
	}{
		"the same":      {"nothing to do", func(*clusterv1.Machine) {}, true},
		"more labels":   {"others have theirs", func(m *clusterv1.Machine) { m.Labels["x"] = "y"; applied(m, `{"f:metadata":{"f:labels":{"f:a":{}}}}`) }, true},
		"label removed": {"the owner applied it before", func(m *clusterv1.Machine) { m.Labels["x"] = "y"; applied(m, `{"f:metadata":{"f:labels":{"f:x":{}}}}`) }, false},
		"annotation removed": {"the owner applied it before", func(m *clusterv1.Machine) {
			m.Annotations["x"] = "y"
			applied(m, `{"f:metadata":{"f:annotations":{"f:x":{}}}}`)
		}, false},
		"label changed":   {"", func(m *clusterv1.Machine) { m.Labels["a"] = "c" }, false},
		"no finalizer":    {"a restore loses it", func(m *clusterv1.Machine) { m.Finalizers = nil }, false},
		"timeout":         {"", func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDrainTimeoutSeconds = nil }, false},
		"timeout more":    {"", func(m *clusterv1.Machine) { m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = new(int32(1)) }, false},
		"minReadySeconds": {"", func(m *clusterv1.Machine) { m.Spec.MinReadySeconds = new(int32(1)) }, false},
		"gate missing":    {"", func(m *clusterv1.Machine) { m.Spec.ReadinessGates = nil }, false},
		"gate of others": {"it stays", func(m *clusterv1.Machine) {
			m.Spec.ReadinessGates = append(m.Spec.ReadinessGates, theirs)
			applied(m, `{"f:metadata":{"f:labels":{"f:a":{}}}}`)
		}, true},
		"nothing applied": {"more gates, and nothing known of whose they are: what the owner applies once it can remove", func(m *clusterv1.Machine) {
			m.Spec.ReadinessGates = append(m.Spec.ReadinessGates, theirs)
		}, false},
		"gate removed": {"the owner applied it before", func(m *clusterv1.Machine) {
			m.Spec.ReadinessGates = append(m.Spec.ReadinessGates, theirs)
			applied(m, `{"f:spec":{"f:readinessGates":{"k:{\"conditionType\":\"Theirs\"}":{"f:conditionType":{}}}}}`)
		}, false},
	} {
		if got := machines.Follows(machine(tc.have), machine(func(*clusterv1.Machine) {}), manager); got != tc.want {
			t.Errorf("%s: %s: got %t", name, tc.reason, got)
		}
	}
}

func TestInPlace(t *testing.T) { // MS-08, MP-07
	live := machine(func(m *clusterv1.Machine) {
		m.Namespace, m.UID, m.Labels = "ns", "u", nil
		m.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1", FailureDomain: "f", ProviderID: "x://0", Bootstrap: clusterv1.Bootstrap{DataSecretName: new("")}}
	})
	fresh := machine(func(m *clusterv1.Machine) {
		m.Name, m.Spec.Version, m.Spec.FailureDomain, m.Spec.Bootstrap.DataSecretName = "new", "v2", "g", new("other")
	})
	want := machine(func(m *clusterv1.Machine) {
		m.Namespace, m.UID, m.Spec.ClusterName, m.Spec.Version, m.Spec.FailureDomain = "ns", "u", "c", "v1", "f"
		m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("")}
	})
	if diff := cmp.Diff(want, machines.InPlace(fresh, live)); diff != "" {
		t.Errorf("metadata, gates and timeouts follow, the rest stays, the provider ID is not the owner's (-want +got):\n%s", diff)
	}
}
