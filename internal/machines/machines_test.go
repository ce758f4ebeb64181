package machines_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/sdk/contract"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// controlPlane is the definition of the Machines of an owner of another kind: its bootstrap configs are no clones of a template.
func controlPlane() machines.Definition {
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "i/v1", "kind": "FooMachineTemplate",
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"cpus": int64(2)}}}}}
	template.SetNamespace("ns")
	template.SetName("it")
	infra := clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachineTemplate", Name: "it"}
	d := machines.Definition{
		Namespace: "ns", Cluster: "c", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}, Annotations: map[string]string{"note": "1"},
		Owner:     metav1.OwnerReference{APIVersion: "p/v1", Kind: "FooPlane", Name: "p", UID: "p", Controller: new(true)},
		Templates: clone.Templates{{Ref: infra, Object: contract.Object{Unstructured: template}}},
	}
	d.Spec = clusterv1.MachineSpec{Version: "v1.36.3", InfrastructureRef: infra, Deletion: clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(60))},
		Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "b", Kind: "FooConfigTemplate"}}}
	return d
}

func TestObjects(t *testing.T) { // MS-04, MS-05
	d := controlPlane()
	objects, err := d.Objects("m")
	if err != nil || len(objects) != 2 {
		t.Fatalf("%d objects, %v: a config without a template is the owner's to create", len(objects), err)
	}
	infra, machine := objects[0], objects[1]
	if infra.GetKind() != "FooMachine" || infra.GetName() != "m" || infra.GetOwnerReferences()[0].UID != "p" || infra.GetAnnotations()["note"] != "1" {
		t.Errorf("clone %v", infra.Object)
	}
	got := &clusterv1.Machine{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(machine.Object, got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.ClusterName != "c" || got.Spec.Bootstrap.ConfigRef.Kind != "FooConfig" || got.Spec.Bootstrap.ConfigRef.Name != "m" ||
		got.Spec.InfrastructureRef.Name != "m" || !cmp.Equal(got.Finalizers, []string{clusterv1.MachineFinalizer}) || machine.Object["status"] != nil {
		t.Errorf("Machine %+v", got)
	}
	got.Labels["changed"] = "1"
	if d.Machine("m").Labels["changed"] != "" || d.Labels["changed"] != "" {
		t.Error("Machines share the labels of their definition")
	}
	d.Templates[0].Object.SetKind("FooMachine")
	if _, err := d.Objects("m"); err == nil || !strings.Contains(err.Error(), "FooMachineTemplate it") {
		t.Errorf("what is no template: %v", err)
	}
}

func member(d machines.Definition, name string, changes ...func(*clusterv1.Machine)) machines.OwnedMachine {
	m := d.Machine(name)
	m.UID, m.CreationTimestamp = types.UID(name), metav1.NewTime(now.Add(-time.Hour))
	m.Status.NodeRef.Name = name
	for _, change := range changes {
		change(m)
	}
	return machines.OwnedMachine{Machine: m, Deleted: !m.DeletionTimestamp.IsZero()}
}

func has(conditionType, status, reason string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason})
	}
}

// unhealthy asks for the replacement of a Machine.
func unhealthy(reason string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		has(clusterv1.MachineHealthCheckSucceededCondition, "False", "UnhealthyNode")(m)
		has(clusterv1.MachineOwnerRemediatedCondition, "False", reason)(m)
	}
}

func deleting(m *clusterv1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(now)) }

func TestDeletionPriority(t *testing.T) { // MS-10
	annotated := func(key string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Annotations[key] = "" }
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*clusterv1.Machine)
		want   machines.DeletionPriority
	}{
		"healthy":        {"", func(*clusterv1.Machine) {}, machines.Healthy},
		"no Node":        {"it does no work yet", func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" }, machines.Unhealthy},
		"Node unhealthy": {"it does no work", has("NodeHealthy", "False", "x"), machines.Unhealthy},
		"Node not known": {"what is not known is not held against it", has("NodeHealthy", "Unknown", "x"), machines.Healthy},
		"check failed":   {"", has("HealthCheckSucceeded", "False", "x"), machines.Unhealthy},
		"updating":       {"", annotated(clusterv1.UpdateInProgressAnnotation), machines.Updating},
		"marked":         {"a person said so", annotated(clusterv1.DeleteMachineAnnotation), machines.Marked},
		"marked, unhealthy": {"the lower one", func(m *clusterv1.Machine) {
			annotated(clusterv1.DeleteMachineAnnotation)(m)
			m.Status.NodeRef.Name = ""
		}, machines.Marked},
		"deleting": {"", func(m *clusterv1.Machine) { annotated(clusterv1.DeleteMachineAnnotation)(m); deleting(m) }, machines.Deleting},
	} {
		if got := machines.PriorityOf(member(controlPlane(), "m", tc.change)); got != tc.want {
			t.Errorf("%s: got %d, want %d: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestDeleteCandidates(t *testing.T) { // MS-10
	d := controlPlane()
	ms := machines.OwnedMachines{member(d, "a"), member(d, "b", deleting), member(d, "c"), member(d, "d", func(m *clusterv1.Machine) { m.Spec.FailureDomain = "z" })}
	byDomain := func(a, b machines.OwnedMachine) int {
		return strings.Compare(b.Spec.FailureDomain, a.Spec.FailureDomain)
	}
	for name, tc := range map[string]struct {
		reason  string
		n       int
		compare func(a, b machines.OwnedMachine) int
		want    []string
	}{
		"one":            {"the one that is being deleted counts", 1, machines.ByDeletionPriority(""), nil},
		"all":            {"", 4, machines.ByDeletionPriority(""), []string{"a", "c", "d"}},
		"more than all":  {"no panic", 9, machines.ByDeletionPriority(""), []string{"a", "c", "d"}},
		"of another way": {"a control plane has an order of its own", 1, byDomain, []string{"d"}},
	} {
		if diff := cmp.Diff(tc.want, ms.DeleteCandidates(tc.n, tc.compare)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestRemediationVerdicts(t *testing.T) { // MS-18, DP-15
	const asked, recorded = "WaitingForRemediation", clusterv1.MachineSetMachineRemediationMachineDeletingReason
	d := controlPlane()
	marked := func(m *clusterv1.Machine) {
		unhealthy(asked)(m)
		m.Annotations[clusterv1.RemediateMachineAnnotation] = ""
	}
	later := func(m *clusterv1.Machine) { unhealthy(asked)(m); m.CreationTimestamp = metav1.NewTime(now) }
	for name, tc := range map[string]struct {
		reason string
		r      machines.Remediation
		want   map[string]string
		delete []string
	}{
		"none":        {"", machines.Remediation{Members: machines.OwnedMachines{member(d, "a")}, Limit: 1}, map[string]string{}, nil},
		"one":         {"on record first", machines.Remediation{Members: machines.OwnedMachines{member(d, "a", unhealthy(asked))}, Limit: 1}, map[string]string{"a": recorded}, nil},
		"on record":   {"then deleted, whatever speaks against it now", machines.Remediation{Members: machines.OwnedMachines{member(d, "a", unhealthy(recorded))}, Deferred: []string{"x"}, Refused: "y"}, map[string]string{"a": recorded}, []string{"a"}},
		"marked":      {"first, within the limit", machines.Remediation{Members: machines.OwnedMachines{member(d, "a", later), member(d, "b", marked)}, Limit: 1}, map[string]string{"a": "RemediationDeferred", "b": recorded}, nil},
		"newest":      {"before older ones", machines.Remediation{Members: machines.OwnedMachines{member(d, "a", unhealthy(asked)), member(d, "b", later)}, Limit: 1}, map[string]string{"a": "RemediationDeferred", "b": recorded}, nil},
		"limit taken": {"one that is being deleted counts", machines.Remediation{Members: machines.OwnedMachines{member(d, "a", unhealthy(recorded), deleting), member(d, "b", unhealthy(asked))}, Limit: 1}, map[string]string{"b": "RemediationDeferred"}, nil},
		"refused":     {"a person decides", machines.Remediation{Members: machines.OwnedMachines{member(d, "a", unhealthy(asked))}, Limit: 1, Refused: "no", Deferred: []string{"x"}}, map[string]string{"a": "CannotBeRemediated"}, nil},
		"deferred":    {"no other takes its place", machines.Remediation{Members: machines.OwnedMachines{member(d, "a", unhealthy(asked))}, Limit: 1, Deferred: []string{"x"}}, map[string]string{"a": "RemediationDeferred"}, nil},
	} {
		got := map[string]string{}
		for machine, v := range tc.r.Conditions() {
			got[machine] = v.Reason
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
		if diff := cmp.Diff(tc.delete, tc.r.Delete()); diff != "" {
			t.Errorf("%s: %s: delete (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestNewSetConditions(t *testing.T) { // MA-24, MS-18
	upToDate := has("UpToDate", "True", "UpToDate")
	for name, tc := range map[string]struct {
		reason               string
		m                    machines.OwnedMachine
		upToDate, remediated condition.Result
		want                 string
	}{
		"all absent": {"nothing to say", member(controlPlane(), "m"), condition.Absent(), condition.Absent(), ""},
		"has it":     {"", member(controlPlane(), "m", upToDate), condition.True("UpToDate"), condition.Absent(), ""},
		"other":      {"", member(controlPlane(), "m", upToDate), condition.False("NotUpToDate", "x"), condition.Absent(), "set conditions of Machine m: UpToDate False (NotUpToDate)"},
		"withdrawn":  {"the check succeeds again", member(controlPlane(), "m", has("OwnerRemediated", "False", "RemediationDeferred")), condition.Absent(), condition.Absent(), "set conditions of Machine m: UpToDate unchanged"},
		"foreign":    {"another writer's stays", member(controlPlane(), "m", has("OwnerRemediated", "True", "Done")), condition.Absent(), condition.Absent(), ""},
	} {
		action, differs := machines.NewSetConditions(tc.m.Machine, tc.upToDate, tc.remediated)
		if differs != (tc.want != "") || differs && action.String() != tc.want {
			t.Errorf("%s: %s: %v %q", name, tc.reason, differs, action)
		}
	}
}

func TestPropagation(t *testing.T) { // MS-08
	d := controlPlane()
	known := func(labels map[string]string) *clone.Clones {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": "FooMachine"}}
		o.SetLabels(labels)
		o.SetAnnotations(d.Annotations)
		return &clone.Clones{Items: map[clone.Key]contract.Object{{Kind: "FooMachine", Name: "a"}: {Unstructured: o}}}
	}
	stale := member(d, "a", func(m *clusterv1.Machine) { m.Labels = nil })
	stale.Stale = true
	for name, tc := range map[string]struct {
		reason string
		member machines.OwnedMachine
		clones *clone.Clones
		asks   bool
		want   []string
	}{
		"verified":        {"nothing differs", member(d, "a"), nil, false, nil},
		"label":           {"clones are read first", member(d, "a", func(m *clusterv1.Machine) { m.Labels = nil }), nil, true, []string{"sync Machine a: it differs from the template"}},
		"label, stale":    {"its last write is on the way", stale, nil, false, nil},
		"clone and label": {"the clone first", member(d, "a", func(m *clusterv1.Machine) { m.Labels = nil }), known(nil), false, []string{"sync labels and annotations to FooMachine a", "sync Machine a: it differs from the template"}},
		"clone":           {"", member(d, "a"), known(nil), false, []string{"sync labels and annotations to FooMachine a"}},
		"deleting":        {"timeouts alone", member(d, "a", deleting, func(m *clusterv1.Machine) { m.Labels, m.Spec.Deletion.NodeDrainTimeoutSeconds = nil, nil }), known(nil), false, []string{"sync Machine a: the timeouts of its deletion changed"}},
	} {
		s := machines.OwnerState{Now: now, Definition: d, Members: machines.OwnedMachines{tc.member}, Clones: tc.clones, Verified: true, Manager: manager}
		var got []string
		for _, a := range s.Propagation() {
			got = append(got, a.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || s.NeedsClones() != tc.asks {
			t.Errorf("%s: %s: needs clones %v (-want +got):\n%s", name, tc.reason, s.NeedsClones(), diff)
		}
	}
	s := machines.OwnerState{Definition: d, Members: machines.OwnedMachines{member(d, "a")}, Manager: manager}
	if !s.NeedsClones() || len(s.Propagation()) != 1 {
		t.Error("fields that the manager does not own yet are applied once for each generation")
	}
}
