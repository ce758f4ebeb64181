package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func status(s snapshot, out reconciler.Outcome) clusterv1.ClusterStatus {
	return report(s, decide(s), out).Status.(clusterv1.ClusterStatus)
}

// TestConditions proves each condition with each of its reasons.
func TestConditions(t *testing.T) {
	failing := func(s *snapshot) {
		s.Connection = workload.Health{LastProbeSuccess: ago(time.Minute), ConsecutiveFailures: 5, Problem: "refused"}
	}
	cases := map[string]struct {
		reason    string
		s         snapshot
		out       error
		condition string
		want      condition.Result
	}{
		"not deleting":       {"CL-14", settled(), nil, "Deleting", condition.False("NotDeleting", "")},
		"deleting workers":   {"CL-14", settled(deleted), nil, "Deleting", condition.TrueBecause("WaitingForWorkersDeletion", "* MachinePool: mp\n* Machine: mp-0")},
		"deleting plane":     {"CL-14", settled(deleted, noWorkers), nil, "Deleting", condition.TrueBecause("WaitingForControlPlaneDeletion", "* FooPlane: p")},
		"deleting infra":     {"CL-14", settled(deleted, noWorkers, noControl), nil, "Deleting", condition.TrueBecause("WaitingForInfrastructureDeletion", "* FooCluster: i")},
		"deleting hook":      {"CL-14", settled(deleted, topology, func(s *snapshot) { s.Settings.DeleteHook = true }), nil, "Deleting", condition.TrueBecause("WaitingForBeforeDeleteHook", "Waiting for the BeforeClusterDelete hook to allow the deletion")},
		"deletion completed": {"CL-14", settled(deleted, noWorkers, noControl, noInfra), nil, "Deleting", condition.True("DeletionCompleted")},
		"deletion fails":     {"CL-14: says what, not how", settled(deleted), errors.New("boom"), "Deleting", condition.TrueBecause("InternalError", "Could not delete MachinePool mp: the Cluster is deleted; retrying")},
		"deletion conflicts": {"CL-14: a conflict is no news", settled(deleted), fault.New(fault.Conflict, "x", "x"), "Deleting", condition.TrueBecause("WaitingForWorkersDeletion", "* MachinePool: mp\n* Machine: mp-0")},

		"infra ready": {"CL-16: mirrored", settled(), nil, "InfrastructureReady", condition.True("Fine")},
		"infra v1beta1 layout": {"CL-16, CT-12", settled(func(s *snapshot) {
			s.Infra = olderInfra("status: {ready: true, conditions: [{type: Ready, status: 'True'}]}")
		}), nil, "InfrastructureReady", condition.True("ReportedTrue")},
		"infra not ready": {"CL-16: mirrored", settled(func(s *snapshot) {
			s.Infra = infra("status: {conditions: [{type: Ready, status: 'False', reason: Quota, message: no more}]}")
		}), nil, "InfrastructureReady", condition.False("Quota", "no more")},
		"infra no condition": {"CL-16: judged by provisioned", settled(func(s *snapshot) { s.Infra = infra("status: {initialization: {provisioned: true}}") }), nil, "InfrastructureReady", condition.True("Ready")},
		"infra waits":        {"CL-16: judged by provisioned", fresh(func(s *snapshot) { s.Infra = infra("status: {}") }), nil, "InfrastructureReady", condition.False("NotReady", "FooCluster status.initialization.provisioned is false")},
		"infra not watched": {"PA-02: its provider may not see it", fresh(func(s *snapshot) {
			s.Cluster.Labels = map[string]string{clusterv1.WatchLabel: "blue"}
			s.Infra = infra("status: {}")
		}), nil, "InfrastructureReady", condition.False("NotReady", "FooCluster status.initialization.provisioned is false; it lacks the label cluster.x-k8s.io/watch-filter=blue: set it if its provider runs with --watch-filter")},
		"infra invalid":     {"CL-16", settled(func(s *snapshot) { s.Infra = infra("status: {conditions: [{type: Ready, status: Maybe}]}") }), nil, "InfrastructureReady", condition.Unknown("InvalidConditionReported", `field status.conditions[Ready]: status is "Maybe", want True, False or Unknown`)},
		"infra problem":     {"CL-16", fresh(func(s *snapshot) { s.Infra = contract.InfraCluster(contract.Object{Problem: "install it"}) }), nil, "InfrastructureReady", condition.Unknown("InternalError", "install it")},
		"infra missing":     {"CL-16", fresh(), nil, "InfrastructureReady", condition.False("ObjectDoesNotExist", "FooCluster does not exist")},
		"infra deleted":     {"CL-16", settled(noInfra), nil, "InfrastructureReady", condition.False("ObjectDeleted", "FooCluster i has been deleted while it was in use: restore it, or delete Cluster c")},
		"infra deleted too": {"CL-16", settled(noInfra, deleted), nil, "InfrastructureReady", condition.False("ObjectDeleted", "FooCluster has been deleted")},
		"no infra ref":      {"CL-07", settled(noInfra, noInfraRef), nil, "InfrastructureReady", condition.True("Ready")},
		"topology to come":  {"CL-16", fresh(noInfraRef, topology), nil, "InfrastructureReady", condition.False("ObjectDoesNotExist", "Waiting for the topology of the Cluster to be reconciled")},

		"plane available": {"CL-17: mirrored", settled(), nil, "ControlPlaneAvailable", condition.True("Fine")},
		"plane not available": {"CL-17", settled(func(s *snapshot) {
			s.ControlPlane = control("status: {conditions: [{type: Available, status: 'False', reason: Etcd, message: no quorum}]}")
		}), nil, "ControlPlaneAvailable", condition.False("Etcd", "no quorum")},
		"plane of v1beta1": {"CL-17: Ready stands in for Available there", settled(func(s *snapshot) {
			s.ControlPlane = olderControl("status: {conditions: [{type: Ready, status: 'False', reason: Old}]}")
		}), nil, "ControlPlaneAvailable", condition.False("Old", "")},
		"plane no condition": {"CL-17: judged by initialized", settled(func(s *snapshot) { s.ControlPlane = control("status: {}") }), nil, "ControlPlaneAvailable", condition.True("Available")},
		"plane waits":        {"CL-17", fresh(func(s *snapshot) { s.ControlPlane = control("status: {}") }), nil, "ControlPlaneAvailable", condition.False("NotAvailable", "FooPlane status.initialization.controlPlaneInitialized is false")},
		"plane invalid": {"CL-17", settled(func(s *snapshot) {
			s.ControlPlane = control("status: {conditions: [{type: Available, status: Maybe}]}")
		}), nil, "ControlPlaneAvailable", condition.Unknown("InvalidConditionReported", `field status.conditions[Available]: status is "Maybe", want True, False or Unknown`)},
		"plane problem":   {"CL-17", fresh(func(s *snapshot) { s.ControlPlane = contract.ControlPlane(contract.Object{Problem: "install it"}) }), nil, "ControlPlaneAvailable", condition.Unknown("InternalError", "install it")},
		"plane missing":   {"CL-17", fresh(), nil, "ControlPlaneAvailable", condition.False("ObjectDoesNotExist", "FooPlane does not exist")},
		"plane deleted":   {"CL-17", settled(noControl), nil, "ControlPlaneAvailable", condition.False("ObjectDeleted", "FooPlane p has been deleted while it was in use: restore it, or delete Cluster c")},
		"no plane object": {"CL-17", fresh(noControlPlaneRef), nil, "ControlPlaneAvailable", condition.False("NotAvailable", "The control plane is not there yet")},

		"initialized":             {"CL-09", settled(), nil, "ControlPlaneInitialized", condition.True("Initialized")},
		"initialized stays":       {"CL-09: sticky", settled(func(s *snapshot) { s.ControlPlane = control("status: {}") }), nil, "ControlPlaneInitialized", condition.True("Initialized")},
		"not initialized":         {"CL-09", fresh(), nil, "ControlPlaneInitialized", condition.False("NotInitialized", "Control plane not yet initialized")},
		"initialized by Machines": {"CL-10", fresh(noControlPlaneRef, func(s *snapshot) { s.Machines = []clusterv1.Machine{machine("cp", ofControlPlane, withNode)} }), nil, "ControlPlaneInitialized", condition.True("Initialized")},
		"no Machine with Node":    {"CL-10", fresh(noControlPlaneRef, func(s *snapshot) { s.Machines = []clusterv1.Machine{machine("w", withNode)} }), nil, "ControlPlaneInitialized", condition.False("NotInitialized", "Waiting for the first control plane Machine to have its status.nodeRef set")},
		"initialized unknown":     {"CL-09", fresh(func(s *snapshot) { s.ControlPlane = contract.ControlPlane(contract.Object{Problem: "install it"}) }), nil, "ControlPlaneInitialized", condition.Unknown("InternalError", "install it")},

		"workers available": {"CL-18", settled(), nil, "WorkersAvailable", condition.True("Available")},
		"no workers":        {"CL-18", settled(noWorkers), nil, "WorkersAvailable", condition.True("NoWorkers")},
		"workers not available": {"CL-18: of both kinds", settled(func(s *snapshot) {
			s.Deployments = []clusterv1.MachineDeployment{deployment("md", is("Available", "False", "x", "1 of 3"))}
			s.Pools = append(s.Pools, pool("other"))
			s.Pools[1].Status.Conditions = nil
		}), nil, "WorkersAvailable", condition.False("NotAvailable", "* MachineDeployment md: 1 of 3\n* MachinePool other: Condition Available not yet reported")},
		"workers unknown": {"CL-18", settled(func(s *snapshot) { s.Deployments = []clusterv1.MachineDeployment{deployment("md")} }), nil, "WorkersAvailable", condition.Unknown("AvailableUnknown", "* MachineDeployment md: Condition Available not yet reported")},

		"worker machines ready":     {"CL-19", settled(), nil, "WorkerMachinesReady", condition.True("Ready")},
		"worker machines not ready": {"CL-19", settled(machinesAre(with(is("Ready", "False", "x", "no node")))), nil, "WorkerMachinesReady", condition.False("NotReady", "* Machine m: no node")},
		"worker machines unknown":   {"CL-19", settled(machinesAre(with())), nil, "WorkerMachinesReady", condition.Unknown("ReadyUnknown", "* Machine m: Condition Ready not yet reported")},
		"no worker machines":        {"CL-19", settled(noWorkers), nil, "WorkerMachinesReady", condition.True("NoReplicas")},
		"no plane machines":         {"CL-19", settled(), nil, "ControlPlaneMachinesReady", condition.True("NoReplicas")},
		"plane machines not ready":  {"CL-19", settled(machinesAre(ofControlPlane, with(is("Ready", "False", "x", "no node")))), nil, "ControlPlaneMachinesReady", condition.False("NotReady", "* Machine m: no node")},
		"plane machines unknown":    {"CL-19", settled(machinesAre(ofControlPlane, with())), nil, "ControlPlaneMachinesReady", condition.Unknown("ReadyUnknown", "* Machine m: Condition Ready not yet reported")},
		"plane machines ready":      {"CL-19", settled(machinesAre(ofControlPlane)), nil, "ControlPlaneMachinesReady", condition.True("Ready")},

		"machines up to date":     {"CL-20", settled(), nil, "WorkerMachinesUpToDate", condition.True("UpToDate")},
		"machines not up to date": {"CL-20", settled(machinesAre(with(is("UpToDate", "False", "x", "old")))), nil, "WorkerMachinesUpToDate", condition.False("NotUpToDate", "* Machine m: old")},
		"machines unknown":        {"CL-20: old enough to have one", settled(machinesAre(with())), nil, "WorkerMachinesUpToDate", condition.Unknown("UpToDateUnknown", "* Machine m: Condition UpToDate not yet reported")},
		"machines young":          {"CL-20: younger than 10 s do not count", settled(machinesAre(with(), youngster)), nil, "WorkerMachinesUpToDate", condition.True("NoReplicas")},
		"plane up to date":        {"CL-20", settled(machinesAre(ofControlPlane)), nil, "ControlPlaneMachinesUpToDate", condition.True("UpToDate")},
		"plane not up to date":    {"CL-20", settled(machinesAre(ofControlPlane, with(is("UpToDate", "False", "x", "old")))), nil, "ControlPlaneMachinesUpToDate", condition.False("NotUpToDate", "* Machine m: old")},
		"plane unknown":           {"CL-20", settled(machinesAre(ofControlPlane, with())), nil, "ControlPlaneMachinesUpToDate", condition.Unknown("UpToDateUnknown", "* Machine m: Condition UpToDate not yet reported")},
		"plane none":              {"CL-20", settled(), nil, "ControlPlaneMachinesUpToDate", condition.True("NoReplicas")},

		"not rolling out": {"CL-21: pools and planes need not have it", settled(), nil, "RollingOut", condition.False("NotRollingOut", "")},
		"rolling out": {"CL-21", settled(func(s *snapshot) {
			s.Deployments = []clusterv1.MachineDeployment{deployment("md", is("RollingOut", "True", "x", "1 old"))}
		}), nil, "RollingOut", condition.TrueBecause("RollingOut", "* MachineDeployment md: 1 old")},
		"rolling out unknown": {"CL-21", settled(func(s *snapshot) { s.Deployments = []clusterv1.MachineDeployment{deployment("md")} }), nil, "RollingOut", condition.Unknown("RollingOutUnknown", "* MachineDeployment md: Condition RollingOut not yet reported")},
		"plane rolls out": {"CL-21", settled(func(s *snapshot) {
			s.ControlPlane = control("status: {conditions: [{type: RollingOut, status: 'True', reason: x, message: 2 old}]}")
		}), nil, "RollingOut", condition.TrueBecause("RollingOut", "* FooPlane p: 2 old")},
		"not scaling up": {"CL-21", settled(), nil, "ScalingUp", condition.False("NotScalingUp", "")},
		"scaling up": {"CL-21: sets that stand alone count", settled(func(s *snapshot) {
			s.Sets = []clusterv1.MachineSet{set("ms", is("ScalingUp", "True", "x", "from 1 to 2"), is("ScalingDown", "False", "x", ""))}
		}), nil, "ScalingUp", condition.TrueBecause("ScalingUp", "* MachineSet ms: from 1 to 2")},
		"scaling up unknown": {"CL-21", settled(func(s *snapshot) { s.Sets = []clusterv1.MachineSet{set("ms")} }), nil, "ScalingUp", condition.Unknown("ScalingUpUnknown", "* MachineSet ms: Condition ScalingUp not yet reported")},
		"not scaling down":   {"CL-21", settled(), nil, "ScalingDown", condition.False("NotScalingDown", "")},
		"scaling down": {"CL-21", settled(func(s *snapshot) {
			s.Pools[0].Status.Conditions = []metav1.Condition{is("ScalingDown", "True", "x", "from 2 to 1")}
		}), nil, "ScalingDown", condition.TrueBecause("ScalingDown", "* MachinePool mp: from 2 to 1")},
		"scaling down unknown": {"CL-21", settled(func(s *snapshot) { s.Pools[0].Status.Conditions = nil }), nil, "ScalingDown", condition.Unknown("ScalingDownUnknown", "* MachinePool mp: Condition ScalingDown not yet reported")},

		"remediating": {"CL-22", settled(machinesAre(with(is("HealthCheckSucceeded", "False", "x", ""), is("OwnerRemediated", "False", "Waiting", "waits for remediation")))), nil,
			"Remediating", condition.TrueBecause("Remediating", "* Machine m: waits for remediation")},
		"not remediating": {"CL-22: both are needed", settled(machinesAre(with(is("HealthCheckSucceeded", "False", "x", "")))), nil, "Remediating", condition.False("NotRemediating", "")},

		"probe succeeds": {"CL-23", settled(), nil, "RemoteConnectionProbe", condition.True("ProbeSucceeded")},
		"probe within grace": {"CL-23", settled(func(s *snapshot) {
			s.Connection.LastProbeSuccess, s.Connection.ConsecutiveFailures = ago(49*time.Second), 4
		}), nil, "RemoteConnectionProbe", condition.True("ProbeSucceeded")},
		"probe fails":     {"CL-23", settled(failing), nil, "RemoteConnectionProbe", condition.False("ProbeFailed", "Remote connection probe failed: refused")},
		"never connected": {"CL-23", fresh(), nil, "RemoteConnectionProbe", condition.False("ProbeFailed", "Remote connection not established yet")},
		"after a restart": {"CL-23: a restart of the manager is no outage", settled(func(s *snapshot) {
			s.Connection = workload.Health{Since: ago(time.Second)}
			s.Cluster.Status.Conditions = []metav1.Condition{is("RemoteConnectionProbe", "True", "ProbeSucceeded", "")}
		}), nil, "RemoteConnectionProbe", condition.True("ProbeSucceeded")},

		"available": {"CL-24", settled(), nil, "Available", condition.True("Available")},
		"control plane leaves": {"CL-23: that it does not answer is as it should be", settled(failing, deleted, func(s *snapshot) {
			s.ControlPlane.SetDeletionTimestamp(ptr.To(metav1.NewTime(now)))
		}), nil, "RemoteConnectionProbe", condition.False("ControlPlaneDeleted", "The control plane is deleted with the Cluster")},
		"workers leave":     {"CL-23: the control plane is still needed", settled(failing, deleted), nil, "RemoteConnectionProbe", condition.False("ProbeFailed", "Remote connection probe failed: refused")},
		"not available":     {"CL-24", settled(failing), nil, "Available", condition.False("NotAvailable", "* RemoteConnectionProbe: Remote connection probe failed: refused")},
		"available unknown": {"CL-24", settled(func(s *snapshot) { s.Pools[0].Status.Conditions = nil }), nil, "Available", condition.Unknown("AvailableUnknown", "* WorkersAvailable:\n  * MachinePool mp: Condition Available not yet reported")},
		"deleting is not":   {"CL-24", settled(deleted, noWorkers), nil, "Available", condition.False("NotAvailable", "* Deleting:\n  * FooPlane: p")},
		"gates": {"CL-24: both polarities", settled(func(s *snapshot) {
			s.Gates = []clusterv1.ClusterAvailabilityGate{{ConditionType: "Dns"}, {ConditionType: "Broken", Polarity: clusterv1.NegativePolarityCondition}, {ConditionType: "Odd"}}
			s.Cluster.Status.Conditions = []metav1.Condition{is("Dns", "False", "x", "no answer"), is("Broken", "True", "x", "yes")}
		}), nil, "Available", condition.False("NotAvailable", "* Dns: no answer\n* Broken: yes\n* Odd: Condition not yet reported")},
		"topology fails": {"CL-24: one of the two reasons that count", settled(topology, func(s *snapshot) {
			s.Cluster.Status.Conditions = []metav1.Condition{is("TopologyReconciled", "False", "ReconcileFailed", "bad patch")}
		}), nil, "Available", condition.False("NotAvailable", "* TopologyReconciled: bad patch")},
		"topology busy": {"CL-24: an upgrade is no outage", settled(topology, func(s *snapshot) {
			s.Cluster.Status.Conditions = []metav1.Condition{is("TopologyReconciled", "False", "ClusterUpgrading", "")}
		}), nil, "Available", condition.True("Available")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, out := decide(tc.s), reconciler.Outcome{Err: tc.out}
			if tc.out != nil {
				out.Failed = plan.Actions[0]
			}
			got := condition.Set(report(tc.s, plan, out).Status.(clusterv1.ClusterStatus).Conditions).Get(tc.condition)
			if got == nil {
				t.Fatalf("%s: no condition %s", tc.reason, tc.condition)
			}
			if diff := cmp.Diff(tc.want, condition.Result{Status: got.Status, Reason: got.Reason, Message: got.Message}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func noWorkers(s *snapshot) { s.Pools, s.Machines = nil, nil }
func noControl(s *snapshot) { s.ControlPlane = contract.ControlPlaneView{} }
func noInfra(s *snapshot)   { s.Infra = contract.InfraClusterView{} }
func noInfraRef(s *snapshot) {
	s.Cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{}
}

func machinesAre(changes ...func(*clusterv1.Machine)) func(*snapshot) {
	return func(s *snapshot) { s.Machines = []clusterv1.Machine{machine("m", changes...)} }
}

func youngster(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(ago(9 * time.Second)) }

func TestPhase(t *testing.T) { // CL-26: Failed is never set
	for name, tc := range map[string]struct {
		s    snapshot
		want string
	}{
		"nothing referred to":    {fresh(noInfraRef, noControlPlaneRef, func(s *snapshot) { s.Cluster.Spec.Topology.ClassRef.Name = "class" }), "Pending"},
		"infrastructure to come": {fresh(), "Provisioning"},
		"no endpoint":            {fresh(func(s *snapshot) { s.Infra = infra("status: {initialization: {provisioned: true}}") }), "Provisioning"},
		"provisioned":            {settled(), "Provisioned"},
		"deleted":                {settled(deleted), "Deleting"},
		"v1beta1 failure":        {settled(func(s *snapshot) { s.Infra = olderInfra("status: {ready: true, failureReason: Bad}") }), "Provisioned"},
	} {
		if got := status(tc.s, reconciler.Outcome{}).Phase; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestInitialization(t *testing.T) {
	both := clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	cases := map[string]struct {
		reason string
		s      snapshot
		want   clusterv1.ClusterInitializationStatus
		events []string
	}{
		"reached": {"CL-08, CL-09: with an event each", fresh(func(s *snapshot) { s.Infra, s.ControlPlane = infra(readyInfra), control(readyControl) }), both,
			[]string{"InfrastructureReady", "ControlPlaneInitialized"}},
		"stays":                  {"CL-08, CL-09: never taken back, events only once", settled(func(s *snapshot) { s.Infra, s.ControlPlane = infra("status: {}"), control("status: {}") }), both, nil},
		"not yet":                {"nothing is reached by waiting", fresh(), clusterv1.ClusterInitializationStatus{}, nil},
		"no infra ref":           {"CL-07: at once", fresh(noInfraRef), clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true)}, []string{"InfrastructureReady"}},
		"topology to come":       {"CL-07: it is not there yet", fresh(noInfraRef, topology), clusterv1.ClusterInitializationStatus{}, nil},
		"no infra ref, deleting": {"CL-07: not while deleting", fresh(noInfraRef, deleted), clusterv1.ClusterInitializationStatus{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := report(tc.s, decide(tc.s), reconciler.Outcome{})
			if diff := cmp.Diff(tc.want, r.Status.(clusterv1.ClusterStatus).Initialization); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			var events []string
			for _, e := range r.Events {
				events = append(events, e.Reason)
			}
			if diff := cmp.Diff(tc.events, events); diff != "" {
				t.Errorf("%s: events (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFailureDomains(t *testing.T) { // CL-08
	want := []clusterv1.FailureDomain{{Name: "a", ControlPlane: ptr.To(true)}}
	if diff := cmp.Diff(want, status(settled(), reconciler.Outcome{}).FailureDomains); diff != "" {
		t.Errorf("copied (-want +got):\n%s", diff)
	}
	kept := settled(noInfra, func(s *snapshot) { s.Cluster.Status.FailureDomains = want })
	if diff := cmp.Diff(want, status(kept, reconciler.Outcome{}).FailureDomains); diff != "" {
		t.Errorf("kept where nobody says anything (-want +got):\n%s", diff)
	}
}

func TestObservedGeneration(t *testing.T) { // CL-28, CL-06
	for name, tc := range map[string]struct {
		s    snapshot
		err  error
		want int64
	}{
		"good":                   {settled(), nil, 7},
		"an action fails":        {settled(), errors.New("x"), 0},
		"infrastructure is lost": {settled(noInfra), nil, 0},
		"lost while deleting":    {settled(noInfra, deleted), nil, 7},
	} {
		if got := status(tc.s, reconciler.Outcome{Err: tc.err}).ObservedGeneration; got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestCounters(t *testing.T) { // CL-25
	s := settled(func(s *snapshot) {
		s.Deployments = []clusterv1.MachineDeployment{deployment("md")}
		s.Sets = []clusterv1.MachineSet{set("alone"), set("md-1")}
		s.Sets[1].OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "md", Controller: ptr.To(true)}}
		s.Machines = append(s.Machines, machine("single", func(m *clusterv1.Machine) { m.Spec.Version = "v1.9.0" }))
	})
	got := status(s, reconciler.Outcome{})
	wantWorkers := &clusterv1.WorkersStatus{
		DesiredReplicas: ptr.To[int32](7), Replicas: ptr.To[int32](7), ReadyReplicas: ptr.To[int32](5), AvailableReplicas: ptr.To[int32](5), UpToDateReplicas: ptr.To[int32](6),
		Versions: []clusterv1.StatusVersion{{Version: "v1.9.0", Replicas: 1}, {Version: "v1.35.9", Replicas: 1}, {Version: "v1.36.0", Replicas: 4}},
	}
	if diff := cmp.Diff(wantWorkers, got.Workers); diff != "" {
		t.Errorf("2 of the pool, 3 of the deployment, 1 of the set, 1 alone; versions from old to new (-want +got):\n%s", diff)
	}
	wantPlane := &clusterv1.ClusterControlPlaneStatus{
		DesiredReplicas: ptr.To[int32](3), Replicas: ptr.To[int32](3), ReadyReplicas: ptr.To[int32](2), AvailableReplicas: ptr.To[int32](1), UpToDateReplicas: ptr.To[int32](3),
		Versions: []clusterv1.StatusVersion{{Version: "v1.36.0", Replicas: 3}},
	}
	if diff := cmp.Diff(wantPlane, got.ControlPlane); diff != "" {
		t.Errorf("what the control plane object counts (-want +got):\n%s", diff)
	}
	alone := settled(noControlPlaneRef, machinesAre(ofControlPlane))
	one := ptr.To[int32](1)
	want := &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: one, Replicas: one, ReadyReplicas: one, AvailableReplicas: one, UpToDateReplicas: one,
		Versions: []clusterv1.StatusVersion{{Version: "v1.36.0", Replicas: 1}}}
	if diff := cmp.Diff(want, status(alone, reconciler.Outcome{}).ControlPlane); diff != "" {
		t.Errorf("without such an object its Machines count (-want +got):\n%s", diff)
	}
	bare := settled(func(s *snapshot) {
		s.ControlPlane = control("status: {initialization: {controlPlaneInitialized: true}}")
	})
	if got := status(bare, reconciler.Outcome{}).ControlPlane; got != nil {
		t.Errorf("a control plane without replicas has no counters, got %+v", got)
	}
}

func TestDeprecated(t *testing.T) { // CL-27, CL-29, CO-02, CL-10
	type brief struct{ Type, Status, Severity, Reason string }
	read := func(s snapshot) []brief {
		var out []brief
		for _, c := range status(s, reconciler.Outcome{}).Deprecated.V1Beta1.Conditions {
			out = append(out, brief{string(c.Type), string(c.Status), string(c.Severity), c.Reason})
		}
		return out
	}
	good := []brief{{"Ready", "True", "", ""}, {"InfrastructureReady", "True", "", ""}, {"ControlPlaneReady", "True", "", ""}, {"ControlPlaneInitialized", "True", "", ""}}
	if diff := cmp.Diff(good, read(settled())); diff != "" {
		t.Errorf("good (-want +got):\n%s", diff)
	}
	waits := fresh(func(s *snapshot) { s.Infra, s.ControlPlane = infra("status: {}"), control("status: {}") })
	want := []brief{{"Ready", "False", "Info", "NotReady"}, {"InfrastructureReady", "False", "Info", "WaitingForInfrastructure"},
		{"ControlPlaneReady", "False", "Info", "WaitingForControlPlane"}, {"ControlPlaneInitialized", "False", "Info", "WaitingForControlPlaneProviderInitialized"}}
	if diff := cmp.Diff(want, read(waits)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if got := read(fresh(noControlPlaneRef))[3]; got != (brief{"ControlPlaneInitialized", "False", "Info", "MissingNodeRef"}) {
		t.Errorf("CL-10: %v", got)
	}
	if got := read(settled(noInfra))[1]; got != (brief{"InfrastructureReady", "False", "Error", "Deleted"}) {
		t.Errorf("a lost object: %v", got)
	}
	failed := status(settled(func(s *snapshot) {
		s.Infra = olderInfra("status: {ready: true, failureReason: Bad, failureMessage: broke}")
	}), reconciler.Outcome{})
	d := failed.Deprecated.V1Beta1
	if d.FailureReason == nil || *d.FailureReason != "Bad" || d.FailureMessage == nil || *d.FailureMessage != "Failure detected from FooCluster i: broke" {
		t.Errorf("CL-29: %v %v", d.FailureReason, d.FailureMessage)
	}
	if d := status(settled(func(s *snapshot) { s.Infra = infra("status: {failureReason: Bad}") }), reconciler.Outcome{}).Deprecated.V1Beta1; d.FailureReason != nil {
		t.Errorf("CL-29: contract v1beta2 has no failures: %v", d.FailureReason)
	}
}
