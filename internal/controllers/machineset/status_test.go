package machineset

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func reportedStatus(s snapshot, out reconciler.Outcome) clusterv1.MachineSetStatus {
	return report(s, decide(s), out).Status.(clusterv1.MachineSetStatus)
}

// line is a condition in one line.
func line(s clusterv1.MachineSetStatus, conditionType string) string {
	c := condition.Set(s.Conditions).Get(conditionType)
	if c == nil {
		return "none"
	}
	return strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
}

func TestConditions(t *testing.T) { // MS-20, MS-12
	up, down := clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetScalingDownCondition
	ready, upToDate := clusterv1.MachineSetMachinesReadyCondition, clusterv1.MachineSetMachinesUpToDateCondition
	remediating, deletes := clusterv1.MachineSetRemediatingCondition, clusterv1.MachineSetDeletingCondition
	deleted := func(s *snapshot) { s.Set.DeletionTimestamp = new(ago(0)) }
	unset := func(s *snapshot) { s.Set.Spec.Replicas = nil }
	noTemplate := func(s *snapshot) { s.Infra.Object = contract.Object{} }
	slow := func(m *clusterv1.Machine) {
		going(time.Hour)(m)
		says(is("Deleting", "True", "DrainingNode", "x"))(m)
	}
	cases := map[string]struct {
		reason, condition string
		s                 snapshot
		out               reconciler.Outcome
		want              string
	}{
		"not scaling up":   {"", up, settled(), reconciler.Outcome{}, "False NotScalingUp"},
		"scaling up":       {"", up, settled(replicas(3)), reconciler.Outcome{}, "True ScalingUp Scaling up from 2 to 3 replicas"},
		"replicas not set": {"", up, settled(unset), reconciler.Outcome{}, "Unknown WaitingForReplicasSet Waiting for spec.replicas to be set; until then no Machine is created or deleted"},
		"would be blocked": {"said before it matters", up, settled(noTemplate), reconciler.Outcome{}, "False NotScalingUp Scaling up would be blocked because:\n* FooMachineTemplate it does not exist"},
		"nothing of the workload cluster is there": {"that its control plane does not run says the same", up,
			settled(replicas(3), func(s *snapshot) {
				s.Set.Status.ObservedGeneration, s.AwaitsWorkloadCluster, s.Workload.Problem = 0, true, "its control plane is not initialized yet"
				s.ControlPlane = plane("{apiVersion: p/v1, kind: FooPlane, metadata: {name: p}, spec: {version: v1.36.3}}")
			}), reconciler.Outcome{},
			"True ScalingUp Scaling up from 2 to 3 replicas is blocked because:\n* Machines are created once the workload cluster has been seen: its control plane is not initialized yet"},
		"blocked by template": {"", up, settled(replicas(3), noTemplate), reconciler.Outcome{}, "True ScalingUp Scaling up from 2 to 3 replicas is blocked because:\n* FooMachineTemplate it does not exist"},
		"blocked by preflight": {"MS-12", up, settled(replicas(3), func(s *snapshot) { s.ControlPlane = contract.ControlPlaneView{} }), reconciler.Outcome{},
			"True ScalingUp Scaling up from 2 to 3 replicas is blocked because:\n* FooPlane p does not exist"},
		"blocked by ownership": {"OR-01", up, settled(replicas(3), func(s *snapshot) { s.Cluster = nil }), reconciler.Outcome{},
			"True ScalingUp Scaling up from 2 to 3 replicas is blocked because:\n* Cluster c does not exist; reconciliation of MachineSet ms resumes when it does"},
		"blocked by policy": {"what to do about it", up, settled(replicas(5), func(s *snapshot) { s.Settings.Policy.Maxima.Replicas = 4 }), reconciler.Outcome{},
			"True ScalingUp Scaling up from 2 to 5 replicas is blocked because:\n* " + deniedReplicas},
		"could not create": {"messages are stable", up, settled(replicas(3)), reconciler.Outcome{Failed: machines.CreateMachines{}, Err: errors.New("at 12:00")},
			"True ScalingUp Scaling up from 2 to 3 replicas is blocked because:\n* Machines could not be created: an unexpected error, which is in the log; retrying"},
		"creation is refused": {"the cause, without the name of a Machine that never exists", up, settled(replicas(3)), reconciler.Outcome{Failed: machines.CreateMachines{Names: strings.Fields("ms-abcde")}, Err: refused()},
			"True ScalingUp Scaling up from 2 to 3 replicas is blocked because:\n* Machines could not be created: foomachines.i is forbidden: no huge machines; retrying"},
		"cannot create": {"a person has to act", up, settled(replicas(3)), reconciler.Outcome{Failed: machines.CreateMachines{}, Err: fault.New(fault.Invalid, "X", "change it")},
			"True ScalingUp Scaling up from 2 to 3 replicas is blocked because:\n* change it"},
		"deleted, not scaling up": {"", up, settled(deleted, noTemplate), reconciler.Outcome{}, "False NotScalingUp"},
		"not scaling down":        {"", down, settled(), reconciler.Outcome{}, "False NotScalingDown"},
		"scaling down":            {"", down, settled(replicas(0)), reconciler.Outcome{}, "True ScalingDown Scaling down from 2 to 0 replicas"},
		"scaling down, not set":   {"", down, settled(unset), reconciler.Outcome{}, "Unknown WaitingForReplicasSet Waiting for spec.replicas to be set; until then no Machine is created or deleted"},
		"scaling down slowly": {"", down, settled(replicas(1), with(asIs, slow)), reconciler.Outcome{},
			"True ScalingDown Scaling down from 2 to 1 replicas\n* Machine m2 in deletion since more than 15m, stage: DrainingNode"},
		"deleted, scaling down": {"", down, settled(deleted), reconciler.Outcome{}, "True ScalingDown Scaling down from 2 to 0 replicas"},
		"ready":                 {"", ready, settled(), reconciler.Outcome{}, "True Ready"},
		"no Machines":           {"", ready, settled(with()), reconciler.Outcome{}, "True NoReplicas"},
		"one not ready":         {"", ready, settled(with(asIs, says(is("Ready", "False", "NotReady", "x")))), reconciler.Outcome{}, "False NotReady * Machine m2: x"},
		"one not known":         {"", ready, settled(with(asIs, says(is("Ready", "Unknown", "ReadyUnknown", "x")))), reconciler.Outcome{}, "Unknown ReadyUnknown * Machine m2: x"},
		"up to date":            {"", upToDate, settled(), reconciler.Outcome{}, "True UpToDate"},
		"one is not":            {"", upToDate, settled(with(asIs, says(is("UpToDate", "False", "NotUpToDate", "* old")))), reconciler.Outcome{}, "False NotUpToDate * Machine m2:\n  * old"},
		"new Machine":           {"it gets 10 s to be judged", upToDate, settled(with(asIs, unjudged(time.Second))), reconciler.Outcome{}, "True UpToDate"},
		"Machine not judged":    {"", upToDate, settled(with(asIs, unjudged(time.Minute))), reconciler.Outcome{}, "Unknown UpToDateUnknown * Machine m2: Condition UpToDate not yet reported"},
		"nothing to judge":      {"", upToDate, settled(with()), reconciler.Outcome{}, "True NoReplicas"},
		"not remediating":       {"", remediating, settled(), reconciler.Outcome{}, "False NotRemediating"},
		"remediating":           {"MS-18", remediating, settled(with(asIs, sick())), reconciler.Outcome{}, "True Remediating * Machine m2: Waiting for remediation"},
		"unhealthy only": {"", remediating, settled(with(asIs, says(is("HealthCheckSucceeded", "False", "UnhealthyNode", "x")))), reconciler.Outcome{},
			"False NotRemediating Machine m2 not healthy, and their replacement was not requested"},
		"not deleting":    {"", deletes, settled(), reconciler.Outcome{}, "False NotDeleting"},
		"deleting":        {"MS-25", deletes, settled(deleted), reconciler.Outcome{}, "True Deleting Deleting 2 Machines"},
		"deleting slowly": {"MS-25", deletes, settled(deleted, with(slow)), reconciler.Outcome{}, "True Deleting Deleting 1 Machine\n* Machine m1 in deletion since more than 15m, stage: DrainingNode"},
		"deleted":         {"MS-25", deletes, settled(deleted, with()), reconciler.Outcome{}, "True Deleting Deletion completed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, line(reportedStatus(tc.s, tc.out), tc.condition)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func unjudged(age time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.CreationTimestamp = ago(age)
		m.Status.Conditions = m.Status.Conditions[:2]
	}
}

func TestCounts(t *testing.T) { // MS-19, MS-24
	s := settled(with(asIs,
		says(is("Ready", "False", "NotReady", ""), is("Available", "False", "NotReady", "")),
		says(is("Available", "False", "WaitingForMinReadySeconds", "")),
		func(m *clusterv1.Machine) {
			going(time.Minute)(m)
			m.Spec.Version = "v1.35.0"
			delete(m.Labels, "set")
			says(is("Ready", "False", "NotReady", ""), is("Available", "False", "NotReady", ""), is("UpToDate", "False", "NotUpToDate", ""), is("NodeReady", "False", "NodeNotReady", ""))(m)
		}))
	got := reportedStatus(s, reconciler.Outcome{})
	want := clusterv1.MachineSetStatus{
		Selector: "set=x", Replicas: new(int32(4)), ReadyReplicas: new(int32(2)), AvailableReplicas: new(int32(1)), UpToDateReplicas: new(int32(3)),
		Versions: []clusterv1.StatusVersion{{Version: "v1.35.0", Replicas: 1}, {Version: "v1.36.3", Replicas: 3}}, ObservedGeneration: 3,
		Conditions: got.Conditions, Deprecated: got.Deprecated,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := got.Deprecated.V1Beta1; d.FullyLabeledReplicas != 3 || d.ReadyReplicas != 3 || d.AvailableReplicas != 1 {
		t.Errorf("deprecated counters %+v", d)
	}
}

func TestObservedGeneration(t *testing.T) { // OR-01
	lost := func(s *snapshot) { s.Set.Status.ObservedGeneration = 0 }
	newer := func(s *snapshot) { s.Set.Generation = 4 }
	seen := func(s *snapshot) { s.Workload.NodesRead = true }
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		out    reconciler.Outcome
		want   int64
	}{
		"a pass":                          {"", settled(newer), reconciler.Outcome{}, 4},
		"a pass that failed":              {"it is made again", settled(newer), reconciler.Outcome{Err: errors.New("x")}, 3},
		"no status, graph not whole":      {"the record must not come into being", settled(lost), reconciler.Outcome{}, 0},
		"no status, graph whole":          {"", settled(lost, seen), reconciler.Outcome{}, 3},
		"no status, Machines to adopt":    {"", settled(lost, seen, func(s *snapshot) { s.Others = []*clusterv1.Machine{orphan("a")} }), reconciler.Outcome{}, 0},
		"new generation, graph not whole": {"stays, and is not taken back", settled(newer, func(s *snapshot) { s.Cluster = nil }), reconciler.Outcome{}, 3},
	} {
		if got := reportedStatus(tc.s, tc.out).ObservedGeneration; got != tc.want {
			t.Errorf("%s: got %d, want %d: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestV1Beta1Conditions(t *testing.T) { // CO-02, MS-20
	says := func(s clusterv1.MachineSetStatus) map[clusterv1.ConditionType]string {
		out := map[clusterv1.ConditionType]string{}
		for _, c := range s.Deprecated.V1Beta1.Conditions {
			out[c.Type] = strings.TrimSpace(string(c.Status) + " " + string(c.Severity) + " " + c.Reason)
		}
		return out
	}
	for name, tc := range map[string]struct {
		s    snapshot
		out  reconciler.Outcome
		want map[clusterv1.ConditionType]string
	}{
		"settled": {settled(), reconciler.Outcome{}, map[clusterv1.ConditionType]string{"MachinesCreated": "True", "Resized": "True", "MachinesReady": "True", "Ready": "True"}},
		"up": {settled(replicas(3)), reconciler.Outcome{}, map[clusterv1.ConditionType]string{
			"MachinesCreated": "True", "Resized": "False Info ScalingUp", "MachinesReady": "True", "Ready": "False Info NotReady"}},
		"down": {settled(replicas(1)), reconciler.Outcome{}, map[clusterv1.ConditionType]string{
			"MachinesCreated": "True", "Resized": "False Info ScalingDown", "MachinesReady": "True", "Ready": "False Info NotReady"}},
		"preflight": {settled(replicas(3), func(s *snapshot) { s.ControlPlane = contract.ControlPlaneView{} }), reconciler.Outcome{}, map[clusterv1.ConditionType]string{
			"MachinesCreated": "False Error PreflightCheckFailed", "Resized": "False Info ScalingUp", "MachinesReady": "True", "Ready": "False Info NotReady"}},
		"failed": {settled(replicas(3)), reconciler.Outcome{Failed: machines.CreateMachines{}, Err: errors.New("x")}, map[clusterv1.ConditionType]string{
			"MachinesCreated": "False Error MachineCreationFailed", "Resized": "False Info ScalingUp", "MachinesReady": "True", "Ready": "False Info NotReady"}},
	} {
		if diff := cmp.Diff(tc.want, says(reportedStatus(tc.s, tc.out))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// refused is what an API server says of a Machine's infrastructure machine that a policy does not allow.
func refused() error {
	foos := schema.GroupResource{Group: "i", Resource: "foomachines"}
	return fmt.Errorf("create Machine ms-abcde: %w", apierrors.NewForbidden(foos, "ms-abcde", errors.New("no huge machines")))
}

func TestEvents(t *testing.T) { // MS-03, MS-04
	out := reconciler.Outcome{
		Err:  refused(),
		Done: []reconciler.Action{adoptMachine{Machine: "a"}, machines.CreateMachines{Names: strings.Fields("b c d e"), Why: "scale up"}, machines.DeleteMachines{Names: strings.Fields("f"), Why: "scale down"}, machines.SyncMachine{Machine: "g"}},
	}
	var got []string
	for _, failed := range []reconciler.Action{nil, adoptMachine{Machine: "x"}, machines.CreateMachines{Names: strings.Fields("x ms-abcde")}, machines.DeleteMachines{Names: strings.Fields("z")}} {
		out.Failed = failed
		for _, e := range report(settled(), reconciler.Plan{}, out).Events {
			got = append(got, e.Type+" "+e.Reason+": "+e.Message)
		}
		out.Done = nil
	}
	want := []string{
		"Normal SuccessfulAdopt: Adopted Machine a", "Normal SuccessfulCreate: Created Machines b, c, d, ... (1 more): scale up",
		"Normal SuccessfulDelete: Deleted Machine f: scale down",
		`Warning FailedAdopt: Machine x could not be adopted: foomachines.i "ms-abcde" is forbidden: no huge machines; retrying`,
		"Warning FailedCreate: Machines could not be created: foomachines.i is forbidden: no huge machines; retrying",
		`Warning FailedDelete: Machine z could not all be deleted: foomachines.i "ms-abcde" is forbidden: no huge machines; retrying`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatWakes(t *testing.T) { // MS-21
	base := settled().Machines[0].Machine
	for name, tc := range map[string]struct {
		change func(*clusterv1.Machine)
		want   bool
	}{
		"nothing":             {func(*clusterv1.Machine) {}, false},
		"ready":               {says(is("Ready", "False", "NotReady", "x")), true},
		"available":           {says(is("Available", "False", "WaitingForMinReadySeconds", "")), true},
		"asked for":           {sick(), true},
		"infrastructure":      {says(is("InfrastructureReady", "True", "Ready", "")), false},
		"phase":               {func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, false},
		"Node":                {func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n2" }, true},
		"provider ID":         {func(m *clusterv1.Machine) { m.Spec.ProviderID, m.Generation = "x://1", 2 }, false},
		"timeouts":            {func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDrainTimeoutSeconds, m.Generation = new(int32(1)), 2 }, true},
		"label":               {func(m *clusterv1.Machine) { m.Labels["a"] = "b" }, true},
		"owner":               {func(m *clusterv1.Machine) { m.OwnerReferences = nil }, true},
		"deletion":            {func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: now} }, true},
		"time of a condition": {func(m *clusterv1.Machine) { m.Status.Conditions[0].LastTransitionTime = ago(0) }, false},
	} {
		after := base.DeepCopy()
		tc.change(after)
		if got := machines.Changed().Update(event.UpdateEvent{ObjectOld: base, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
