package machine

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
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func status(s snapshot, out reconciler.Outcome) clusterv1.MachineStatus {
	return report(s, decide(s), out).Status.(clusterv1.MachineStatus)
}

func verdictOf(t *testing.T, s snapshot, out reconciler.Outcome, conditionType string) condition.Result {
	t.Helper()
	c := condition.Set(status(s, out).Conditions).Get(conditionType)
	if c == nil {
		t.Fatalf("no condition %s", conditionType)
	}
	return condition.Result{Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// TestConditions proves each condition with each of its reasons.
func TestConditions(t *testing.T) {
	down := func(last time.Duration) func(*snapshot) {
		return func(s *snapshot) {
			s.Node = observedNode{Unreachable: true}
			s.Connection = slipwayworkload.Health{LastProbeSuccess: ago(last), ConsecutiveFailures: 5}
		}
	}
	external := func(s *snapshot) { s.ControlPlane.External = true }
	cases := map[string]struct {
		reason    string
		s         snapshot
		err       error
		condition string
		want      condition.Result
	}{
		"not deleting":        {"MD-16", settled(), nil, "Deleting", condition.False("NotDeleting", "")},
		"deleting infra":      {"MD-14", settled(deleted), nil, "Deleting", condition.TrueBecause("WaitingForInfrastructureDeletion", "Waiting for FooMachine i to be deleted")},
		"deleting bootstrap":  {"MD-14", settled(deleted, func(s *snapshot) { s.Infra = contract.InfraMachineView{} }), nil, "Deleting", condition.TrueBecause("WaitingForBootstrapDeletion", "Waiting for FooConfig b to be deleted")},
		"deleting Node":       {"MD-15", settled(deleted, noProviders, external), nil, "Deleting", condition.TrueBecause("DeletingNode", "Waiting for Node n to be deleted")},
		"deleting Node fails": {"MD-15: what it waits for is the news", settled(deleted, noProviders, external), errors.New("x"), "Deleting", condition.TrueBecause("DeletingNode", "Waiting for Node n to be deleted")},
		"deletion completed":  {"MD-16", settled(deleted, noProviders, noNode), nil, "Deleting", condition.True("DeletionCompleted")},
		"deletion fails":      {"MD-14", settled(deleted), errors.New("x"), "Deleting", condition.TrueBecause("InternalError", "Could not delete FooMachine i: the Machine is deleted; retrying")},
		"deletion conflicts":  {"a conflict is no news", settled(deleted), fault.New(fault.Conflict, "x", "x"), "Deleting", condition.TrueBecause("WaitingForInfrastructureDeletion", "Waiting for FooMachine i to be deleted")},

		"not updating": {"MA-21", settled(), nil, "Updating", condition.False("NotUpdating", "")},
		"updating":     {"MA-21", settled(inPlace), nil, "Updating", condition.TrueBecause("InPlaceUpdating", "Waiting for the owner of the Machine to write its desired state")},

		"up to date": {"MA-24", settled(ofDeployment()), nil, "UpToDate", condition.True("UpToDate")},
		"changed in place": {"MA-24: needs no new Machine", settled(ofDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Labels = map[string]string{"x": "y"} })), nil,
			"UpToDate", condition.True("UpToDate")},
		"other version": {"MA-24", settled(ofDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.37.0" })), nil,
			"UpToDate", condition.False("NotUpToDate", "* Version v1.36.3, v1.37.0 required")},
		"much that is other": {"MA-24: a line each", settled(ofDeployment(func(d *clusterv1.MachineDeployment) {
			d.Spec.Template.Spec.Version, d.Spec.Rollout.After = "v1.37.0", metav1.NewTime(ago(time.Minute))
		})), nil, "UpToDate", condition.False("NotUpToDate", "* Version v1.36.3, v1.37.0 required\n* MachineDeployment spec.rollout.after expired")},
		"rollout.after to come": {"DP-10", settled(ofDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = metav1.NewTime(ago(-time.Minute)) })), nil,
			"UpToDate", condition.True("UpToDate")},
		"not up to date yet": {"MA-24", settled(ofDeployment(), inPlace), nil, "UpToDate", condition.False("Updating", "* In-place update in progress")},

		"data secret provided": {"MA-04", settled(func(s *snapshot) {
			s.Bootstrap, s.Machine.Spec.Bootstrap.ConfigRef = contract.BootstrapConfigView{}, clusterv1.ContractVersionedObjectReference{}
		}), nil, "BootstrapConfigReady", condition.True("DataSecretProvided")},
		"pool Machine":       {"MA-04, MP-07: the empty name is one", settled(ofPool), nil, "BootstrapConfigReady", condition.True("DataSecretProvided")},
		"bootstrap ready":    {"mirrored", settled(), nil, "BootstrapConfigReady", condition.True("Fine")},
		"bootstrap fallback": {"CT-07: judged by the flag", settled(func(s *snapshot) { s.Bootstrap = bootstrap("status: {}") }), nil, "BootstrapConfigReady", condition.True("Ready")},
		"bootstrap waits":    {"CT-07", fresh(func(s *snapshot) { s.Bootstrap = bootstrap("status: {}") }), nil, "BootstrapConfigReady", condition.False("NotReady", "FooConfig status.initialization.dataSecretCreated is false")},
		"bootstrap invalid":  {"CT-07", settled(func(s *snapshot) { s.Bootstrap = bootstrap("status: {conditions: [{type: Ready, status: Maybe}]}") }), nil, "BootstrapConfigReady", condition.Unknown("InvalidConditionReported", `field status.conditions[Ready]: status is "Maybe", want True, False or Unknown`)},
		"bootstrap problem":  {"a person has to help", fresh(func(s *snapshot) { s.Bootstrap = contract.BootstrapConfig(contract.Object{Problem: "install it"}) }), nil, "BootstrapConfigReady", condition.Unknown("InternalError", "install it")},
		"bootstrap missing":  {"not yet", fresh(), nil, "BootstrapConfigReady", condition.False("ObjectDoesNotExist", "FooConfig does not exist")},
		"bootstrap deleted":  {"it was there", settled(func(s *snapshot) { s.Bootstrap = contract.BootstrapConfigView{} }), nil, "BootstrapConfigReady", condition.False("ObjectDeleted", "FooConfig b has been deleted while it was in use: restore it, or delete Machine m")},
		"bootstrap goes too": {"MD-14", settled(deleted, noProviders), nil, "BootstrapConfigReady", condition.False("ObjectDeleted", "FooConfig has been deleted")},

		"infra ready":    {"mirrored", settled(), nil, "InfrastructureReady", condition.True("Fine")},
		"infra fallback": {"CT-07", settled(func(s *snapshot) { s.Infra = infra("status: {}") }), nil, "InfrastructureReady", condition.True("Ready")},
		"infra waits":    {"CT-07", fresh(func(s *snapshot) { s.Infra = infra("status: {}") }), nil, "InfrastructureReady", condition.False("NotReady", "FooMachine status.initialization.provisioned is false")},
		"infra not watched": {"PA-02: its provider may not see it", fresh(func(s *snapshot) {
			s.Machine.Labels = map[string]string{clusterv1.WatchLabel: "blue"}
			s.Infra = infra("status: {}")
		}), nil, "InfrastructureReady", condition.False("NotReady", "FooMachine status.initialization.provisioned is false; it lacks the label cluster.x-k8s.io/watch-filter=blue: set it if its provider runs with --watch-filter")},
		"infra bad": {"mirrored", settled(func(s *snapshot) {
			s.Infra = infra("status: {conditions: [{type: Ready, status: 'False', reason: Quota, message: no more}]}")
		}), nil, "InfrastructureReady", condition.False("Quota", "no more")},
		"infra invalid": {"CT-07", settled(func(s *snapshot) { s.Infra = infra("status: {conditions: [{type: Ready, status: Maybe}]}") }), nil, "InfrastructureReady", condition.Unknown("InvalidConditionReported", `field status.conditions[Ready]: status is "Maybe", want True, False or Unknown`)},
		"infra unreadable": {"CT-07: a field that cannot be read is not one that is to come", fresh(func(s *snapshot) {
			s.Infra = infra("spec: {providerID: [x]}\nstatus: {initialization: {provisioned: true}, conditions: [{type: Ready, status: 'True'}]}")
		}), nil, "InfrastructureReady", condition.Unknown("InternalError", "FooMachine i reports what its contract does not allow: field spec.providerID: want string, have array")},
		"infra problem":  {"a person has to help", fresh(func(s *snapshot) { s.Infra = contract.InfraMachine(contract.Object{Problem: "install it"}) }), nil, "InfrastructureReady", condition.Unknown("InternalError", "install it")},
		"infra missing":  {"not yet", fresh(), nil, "InfrastructureReady", condition.False("ObjectDoesNotExist", "FooMachine does not exist")},
		"infra deleted":  {"MA-07", settled(func(s *snapshot) { s.Infra = contract.InfraMachineView{} }), nil, "InfrastructureReady", condition.False("ObjectDeleted", "FooMachine i has been deleted while it was in use: restore it, or delete Machine m")},
		"infra goes too": {"MD-14", settled(deleted, noProviders), nil, "InfrastructureReady", condition.False("ObjectDeleted", "FooMachine has been deleted")},

		"Node ready":     {"MA-19", settled(), nil, "NodeReady", condition.True("NodeReady")},
		"Node not ready": {"MA-19", settled(nodeSays("Ready", "False", "no network")), nil, "NodeReady", condition.False("NodeNotReady", "* Node.Ready: no network")},
		"no network of Pods": {"MA-19", settled(nodeSays("Ready", "False", "cni plugin not initialized")), nil, "NodeReady", condition.False("NodeNotReady",
			"* Node.Ready: cni plugin not initialized; a network for Pods (CNI) has yet to be installed in the workload cluster, as with Slipway's classes by the label slipway.dev/cni: flannel on the Cluster")},
		"Node unknown":          {"MA-19", settled(nodeSays("Ready", "Unknown", "no heartbeat")), nil, "NodeReady", condition.Unknown("NodeReadyUnknown", "* Node.Ready: no heartbeat")},
		"Node says nothing":     {"MA-19", settled(func(s *snapshot) { s.Node.Item.Status.Conditions = nil }), nil, "NodeReady", condition.Unknown("NodeReadyUnknown", "Node.Ready: Condition not yet reported")},
		"Node healthy":          {"MA-19", settled(), nil, "NodeHealthy", condition.True("NodeHealthy")},
		"Node under pressure":   {"MA-19", settled(nodeSays("DiskPressure", "True", "full"), nodeSays("PIDPressure", "Unknown", "?")), nil, "NodeHealthy", condition.False("NodeNotHealthy", "* Node.DiskPressure: full\n* Node.PIDPressure: ?")},
		"Node health unknown":   {"MA-19", settled(nodeSays("MemoryPressure", "Unknown", "no heartbeat")), nil, "NodeHealthy", condition.Unknown("NodeHealthyUnknown", "* Node.MemoryPressure: no heartbeat")},
		"Node lacks conditions": {"MA-19", settled(func(s *snapshot) { s.Node.Item.Status.Conditions = s.Node.Item.Status.Conditions[:3] }), nil, "NodeHealthy", condition.Unknown("NodeHealthyUnknown", "* Node.PIDPressure: Condition not yet reported")},
		"not asked": {"MA-09: not before the control plane is initialized", fresh(func(s *snapshot) {
			s.Node = observedNode{Waiting: "Waiting for Cluster control plane to be initialized"}
		}), nil, "NodeHealthy", condition.Unknown("InspectionFailed", "Waiting for Cluster control plane to be initialized")},
		"not initialized": {"MA-09: the Node of a worker is looked for, and what is waited for first is said", fresh(begins), nil, "NodeHealthy", condition.Unknown("InspectionFailed", "Waiting for Cluster control plane to be initialized")},
		"first control plane": {"CL-10: this is the Node that the initialization waits for", settled(noNode, begins, func(s *snapshot) {
			s.Machine.Status.NodeRef.Name, s.Machine.Labels[clusterv1.MachineControlPlaneLabel] = "", ""
		}), nil, "NodeHealthy", condition.Unknown("NodeDoesNotExist", "Waiting for a Node with spec.providerID x://1 to exist")},
		"no provider ID":      {"MA-08", fresh(), nil, "NodeHealthy", condition.Unknown("NodeDoesNotExist", "Waiting for FooMachine to report spec.providerID")},
		"no Node yet":         {"MA-08", settled(noNode, func(s *snapshot) { s.Machine.Status.NodeRef.Name = "" }), nil, "NodeHealthy", condition.Unknown("NodeDoesNotExist", "Waiting for a Node with spec.providerID x://1 to exist")},
		"two Nodes":           {"MA-08: a provider ID has to be unique", settled(func(s *snapshot) { s.Node = observedNode{WasRead: true, Duplicates: []string{"a", "b"}} }), nil, "NodeHealthy", condition.Unknown("ProviderIDNotUnique", "Nodes a, b have the same spec.providerID x://1: a provider ID has to be unique")},
		"Node deleted":        {"MA-19", settled(noNode), nil, "NodeHealthy", condition.False("NodeDeleted", "Node n has been deleted while the Machine still exists")},
		"Node of another ID":  {"MA-19: it exists, and it is not known which of the two is wrong", settled(noNode, func(s *snapshot) { s.Node.OtherProviderID = "x://9" }), nil, "NodeHealthy", condition.False("ProviderIDDiffers", "Node n has spec.providerID x://9, and the Machine has x://1: restore the provider ID that is wrong, or delete Machine m")},
		"Node goes too":       {"MD-15", settled(noNode, deleted), nil, "NodeReady", condition.False("NodeDeleted", "Node n has been deleted")},
		"down within grace":   {"MA-20: the last value stays", settled(down(299*time.Second), was(is("NodeReady", "True", "NodeReady", ""), is("NodeHealthy", "False", "NodeNotHealthy", "full"))), nil, "NodeHealthy", condition.False("NodeNotHealthy", "full")},
		"down for long":       {"MA-20", settled(down(5*time.Minute), was(is("NodeReady", "True", "NodeReady", ""), is("NodeHealthy", "True", "NodeHealthy", ""))), nil, "NodeHealthy", condition.Unknown("ConnectionDown", "The workload cluster does not answer")},
		"down from the start": {"MA-20: there is no last value", fresh(down(time.Hour)), nil, "NodeReady", condition.Unknown("ConnectionDown", "The workload cluster does not answer")},
		"Nodes not served": {"MA-20: the API server answers probes and no reads of Nodes: a verdict is not repeated for longer than the grace", settled(was(is("NodeReady", "True", "NodeReady", "")), func(s *snapshot) {
			s.Node, s.Connection.NodesRead = observedNode{Unreachable: true, Problem: "the API server at https://x/ does not serve Nodes"}, ago(5*time.Minute)
		}), nil, "NodeReady", condition.Unknown("InspectionFailed", "The Nodes of the workload cluster cannot be read: the API server at https://x/ does not serve Nodes")},
		"Nodes not served within grace": {"MA-20", settled(was(is("NodeReady", "True", "NodeReady", "")), func(s *snapshot) {
			s.Node, s.Connection.NodesRead = observedNode{Unreachable: true}, ago(299*time.Second)
		}), nil, "NodeReady", condition.True("NodeReady")},
		"cache fills": {"MA-20: the cluster answers, its Nodes are just being read", settled(was(is("NodeReady", "True", "NodeReady", "")), func(s *snapshot) { s.Node = observedNode{Unreachable: true} }), nil, "NodeReady", condition.True("NodeReady")},

		"ready":             {"MA-21", settled(), nil, "Ready", condition.True("Ready")},
		"not ready":         {"MA-21", settled(nodeSays("Ready", "False", "no network")), nil, "Ready", condition.False("NotReady", "* NodeHealthy:\n  * Node.Ready: no network")},
		"ready unknown":     {"MA-21", settled(nodeSays("Ready", "Unknown", "no heartbeat")), nil, "Ready", condition.Unknown("ReadyUnknown", "* NodeHealthy:\n  * Node.Ready: no heartbeat")},
		"health check":      {"MA-21: if present", settled(was(is("HealthCheckSucceeded", "False", "x", "unhealthy for 5m"))), nil, "Ready", condition.False("NotReady", "* HealthCheckSucceeded: unhealthy for 5m")},
		"in place":          {"MA-21", settled(inPlace), nil, "Ready", condition.False("NotReady", "* Updating: Waiting for the owner of the Machine to write its desired state")},
		"gates":             {"MA-21: both polarities", settled(gates, was(is("Gpu", "False", "x", "no driver"), is("Broken", "True", "x", "yes"))), nil, "Ready", condition.False("NotReady", "* Gpu: no driver\n* Broken: yes")},
		"deletion":          {"MA-22: without its details", settled(deleted, external, drained), nil, "Ready", condition.False("NotReady", "* Deleting: Machine deletion in progress, stage: WaitingForInfrastructureDeletion")},
		"stale deletion":    {"MA-22: after 15 minutes", settled(deletedSince(16*time.Minute), external, drained), nil, "Ready", condition.False("NotReady", "* Deleting: Machine deletion in progress for more than 15m, stage: WaitingForInfrastructureDeletion")},
		"components same":   {"MA-22: said once", settled(planeGates, was(is("APIServerPodHealthy", "Unknown", "x", "no answer"), is("SchedulerPodHealthy", "Unknown", "x", "no answer"), is("ControllerManagerPodHealthy", "True", "x", ""))), nil, "Ready", condition.Unknown("ReadyUnknown", "* Control plane components: no answer")},
		"components differ": {"MA-22: each for itself", settled(planeGates, was(is("APIServerPodHealthy", "False", "x", "a"), is("SchedulerPodHealthy", "False", "x", "b"), is("ControllerManagerPodHealthy", "True", "x", ""))), nil, "Ready", condition.False("NotReady", "* APIServerPodHealthy: a\n* SchedulerPodHealthy: b")},

		"available":           {"MA-23", settled(), nil, "Available", condition.True("Available")},
		"not yet available":   {"MA-23", settled(minReady, was(metav1.Condition{Type: "Ready", Status: "True", LastTransitionTime: metav1.NewTime(ago(9 * time.Second))})), nil, "Available", condition.False("WaitingForMinReadySeconds", "")},
		"available after":     {"MA-23", settled(minReady, was(metav1.Condition{Type: "Ready", Status: "True", LastTransitionTime: metav1.NewTime(ago(10 * time.Second))})), nil, "Available", condition.True("Available")},
		"not ready, not that": {"MA-23", settled(noNode), nil, "Available", condition.False("NotReady", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := reconciler.Outcome{Err: tc.err}
			if tc.err != nil {
				out.Failed = decide(tc.s).Actions[0]
			}
			if diff := cmp.Diff(tc.want, verdictOf(t, tc.s, out, tc.condition)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func begins(s *snapshot) { s.Cluster.Status.Initialization.ControlPlaneInitialized = nil }

func inPlace(s *snapshot) {
	s.Machine.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
}

func minReady(s *snapshot) { s.Machine.Spec.MinReadySeconds = ptr.To[int32](10) }

func gates(s *snapshot) {
	s.Machine.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Gpu"}, {ConditionType: "Broken", Polarity: clusterv1.NegativePolarityCondition}}
}

func planeGates(s *snapshot) {
	s.Machine.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{
		{ConditionType: "APIServerPodHealthy"}, {ConditionType: "ControllerManagerPodHealthy"}, {ConditionType: "SchedulerPodHealthy"}}
}

// TestWhoJudges: of a Machine without a MachineDeployment its owner says whether it is up to date; of others it changes with
// the time.
func TestWhoJudges(t *testing.T) { // MA-24, DP-10
	if c := condition.Set(status(settled(), reconciler.Outcome{}).Conditions).Get(clusterv1.MachineUpToDateCondition); c != nil {
		t.Errorf("the Machine controller says %v", c)
	}
	after := func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = metav1.NewTime(ago(-time.Minute)) }
	if p := decide(settled(ofDeployment(after))); p.Recheck != time.Minute {
		t.Errorf("looks again in %s, want the moment at which rollout.after passes", p.Recheck)
	}
}

func TestPhase(t *testing.T) { // MA-25
	older := func(s *snapshot) {
		s.Infra = infraOf(contract.V1Beta1, "spec: {providerID: x://1}\nstatus: {ready: true, failureReason: Bad}")
	}
	for name, tc := range map[string]struct {
		s    snapshot
		want string
	}{
		"new":                    {fresh(), "Pending"},
		"bootstrap data":         {fresh(func(s *snapshot) { s.Bootstrap = bootstrap(readyBootstrap) }), "Provisioning"},
		"provisioned, no Node":   {settled(noNode, func(s *snapshot) { s.Machine.Status.NodeRef.Name = "" }), "Provisioned"},
		"running":                {settled(), "Running"},
		"in place":               {settled(inPlace), "Updating"},
		"contract v1beta1 fails": {settled(older), "Running"}, // a reported failure has no influence on the life of a Machine
		"deleting":               {settled(deleted), "Deleting"},
		"deleted":                {settled(deleted, noProviders, noNode), "Deleted"},
	} {
		if got := status(tc.s, reconciler.Outcome{}).Phase; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	if got := status(settled(), reconciler.Outcome{}).LastUpdated; !got.IsZero() {
		t.Errorf("lastUpdated moves with the phase only: %v", got)
	}
	if got := status(settled(noNode, deleted), reconciler.Outcome{}).LastUpdated; !got.Time.Equal(now) {
		t.Errorf("lastUpdated moves with the phase: %v", got)
	}
}

func TestStatus(t *testing.T) { // MA-04, MA-05, MA-08
	s := fresh(func(s *snapshot) {
		s.Infra, s.Bootstrap, s.Node.Item = infra(readyInfra), bootstrap(readyBootstrap), node()
	})
	r := report(s, decide(s), reconciler.Outcome{})
	got := r.Status.(clusterv1.MachineStatus)
	want := clusterv1.MachineStatus{
		Initialization: clusterv1.MachineInitializationStatus{InfrastructureProvisioned: ptr.To(true), BootstrapDataSecretCreated: ptr.To(true)},
		NodeRef:        clusterv1.MachineNodeReference{Name: "n"}, NodeInfo: &node().Status.NodeInfo, FailureDomain: "a",
		Addresses: clusterv1.MachineAddresses{{Type: "InternalIP", Address: "10.0.0.1"}}, Phase: "Running", ObservedGeneration: 7, LastUpdated: metav1.NewTime(now),
	}
	got.Conditions, got.Deprecated = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(r.Events) != 1 || r.Events[0].Reason != "SuccessfulSetNodeRef" {
		t.Errorf("MA-08: events %v", r.Events)
	}
	if r := report(settled(), decide(settled()), reconciler.Outcome{}); len(r.Events) != 0 {
		t.Errorf("MA-08: once: %v", r.Events)
	}
	kept := settled(noProviders, func(s *snapshot) {
		s.Node, s.Machine.Status.Addresses = observedNode{Unreachable: true}, want.Addresses
	})
	if got := status(kept, reconciler.Outcome{}); got.NodeRef.Name != "n" || len(got.Addresses) != 1 || !ptr.Deref(got.Initialization.InfrastructureProvisioned, false) || got.ObservedGeneration != 0 {
		t.Errorf("MA-07: what was reached stays, and the pass is one in error: %+v", got)
	}
	failing := settled(deleted, noProviders, func(s *snapshot) { s.ControlPlane.External = true })
	plan := decide(failing)
	if r := report(failing, plan, reconciler.Outcome{Failed: plan.Actions[0], Err: errors.New("x")}); len(r.Events) != 1 || r.Events[0].Reason != "FailedDeleteNode" {
		t.Errorf("MD-15: events %v", r.Events)
	}
}

// A Machine whose infrastructure was provisioned once follows what that says, also while it is on its way to be so again; bootstrap data
// that is named is there, whatever its config says.
func TestProvisionedOnce(t *testing.T) { // MA-04, MA-05
	s := settled(func(s *snapshot) {
		s.Machine.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		s.Machine.Status.Addresses = clusterv1.MachineAddresses{{Type: "InternalIP", Address: "10.0.0.1"}}
		s.Infra = infra("spec: {providerID: x://1}\nstatus: {initialization: {provisioned: false}, addresses: [{type: InternalIP, address: 10.0.0.2}], failureDomain: b}")
	})
	if got := status(s, reconciler.Outcome{}); len(got.Addresses) != 1 || got.Addresses[0].Address != "10.0.0.2" || got.FailureDomain != "b" {
		t.Errorf("%+v", got)
	}
	restored := fresh(func(s *snapshot) {
		s.Machine.Spec.Bootstrap.DataSecretName = ptr.To("data")
		s.Bootstrap = bootstrap("status: {}")
	})
	if got := status(restored, reconciler.Outcome{}); !ptr.Deref(got.Initialization.BootstrapDataSecretCreated, false) {
		t.Errorf("%+v", got.Initialization)
	}
}

// What was read of a field before stays for as long as it cannot be read.
func TestUnreadableAddresses(t *testing.T) { // MA-05, CT-07
	s := settled(func(s *snapshot) {
		s.Machine.Status.Addresses = clusterv1.MachineAddresses{{Type: "InternalIP", Address: "10.0.0.1"}}
		s.Infra = infra("spec: {providerID: x://1}\nstatus: {initialization: {provisioned: true}, addresses: none}")
	})
	got := status(s, reconciler.Outcome{})
	if len(got.Addresses) != 1 || got.ObservedGeneration != 0 || !ptr.Deref(got.Initialization.InfrastructureProvisioned, false) {
		t.Errorf("%+v", got)
	}
}

func TestDeprecated(t *testing.T) { // CO-02, MA-07
	type brief struct{ Type, Status, Severity, Reason string }
	read := func(s snapshot) []brief {
		var out []brief
		for _, c := range status(s, reconciler.Outcome{}).Deprecated.V1Beta1.Conditions {
			out = append(out, brief{string(c.Type), string(c.Status), string(c.Severity), c.Reason})
		}
		return out
	}
	good := []brief{{"Ready", "True", "", ""}, {"BootstrapReady", "True", "", ""}, {"InfrastructureReady", "True", "", ""}, {"NodeHealthy", "True", "", ""}}
	if diff := cmp.Diff(good, read(settled())); diff != "" {
		t.Errorf("good (-want +got):\n%s", diff)
	}
	waits := fresh(func(s *snapshot) { s.Infra, s.Bootstrap = infra("status: {}"), bootstrap("status: {}") })
	want := []brief{{"Ready", "False", "Info", "NotReady"}, {"BootstrapReady", "False", "Info", "WaitingForDataSecret"},
		{"InfrastructureReady", "False", "Info", "WaitingForInfrastructure"}, {"NodeHealthy", "Unknown", "", "NodeProvisioning"}}
	if diff := cmp.Diff(want, read(waits)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if got := read(settled(noNode))[3]; got != (brief{"NodeHealthy", "False", "Error", "NodeNotFound"}) {
		t.Errorf("%v", got)
	}
	if got := read(settled(nodeSays("Ready", "False", "x")))[3]; got != (brief{"NodeHealthy", "False", "Warning", "NodeConditionsFailed"}) {
		t.Errorf("%v", got)
	}
	lost := status(settled(func(s *snapshot) { s.Infra = contract.InfraMachineView{} }), reconciler.Outcome{}).Deprecated.V1Beta1
	if lost.FailureReason == nil || *lost.FailureReason != "InvalidConfiguration" {
		t.Errorf("MA-07: %v", lost.FailureReason)
	}
}

func TestCertificatesExpiry(t *testing.T) { // MA-26
	const on = clusterv1.MachineCertificatesExpiryDateAnnotation
	controlPlane := func(s *snapshot) { s.Machine.Labels[clusterv1.MachineControlPlaneLabel] = "" }
	machineSays := func(text string) func(*snapshot) {
		return func(s *snapshot) { s.Machine.Annotations = map[string]string{on: text} }
	}
	bootstrapSays := func(text string) func(*snapshot) {
		return func(s *snapshot) { s.Bootstrap.SetAnnotations(map[string]string{on: text}) }
	}
	before := func(s *snapshot) { s.Machine.Status.CertificatesExpiryDate = metav1.NewTime(now) }
	const a, b = "2027-01-02T03:04:05Z", "2028-01-02T03:04:05Z"
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   string
	}{
		"bootstrap":  {"of the bootstrap config", settled(controlPlane, bootstrapSays(a)), a},
		"machine":    {"the Machine's own goes first", settled(controlPlane, bootstrapSays(a), machineSays(b)), b},
		"worker":     {"has none", settled(machineSays(b)), ""},
		"gone":       {"cleared", settled(controlPlane, before), ""},
		"unreadable": {"cleared", settled(controlPlane, before, machineSays("soon")), ""},
	} {
		got := status(tc.s, reconciler.Outcome{}).CertificatesExpiryDate
		if text := got.UTC().Format(time.RFC3339); got.IsZero() != (tc.want == "") || tc.want != "" && text != tc.want {
			t.Errorf("%s: %s: %s, want %q", name, tc.reason, text, tc.want)
		}
	}
}
