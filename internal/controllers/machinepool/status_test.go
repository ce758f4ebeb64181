package machinepool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestConditions(t *testing.T) { // MP-12
	type wants = map[string]string
	cases := map[string]struct {
		reason string
		s      snapshot
		want   wants // "Type": "Status Reason[: message]"
	}{
		"settled": {"all nine are there", settled(), wants{
			"Available": "True Available", "BootstrapConfigReady": "True Ready", "InfrastructureReady": "True Ready",
			"MachinesReady": "True Ready", "MachinesUpToDate": "True UpToDate", "ScalingUp": "False NotScalingUp",
			"ScalingDown": "False NotScalingDown", "Remediating": "False NotRemediating", "Deleting": "False NotDeleting",
		}},
		"nothing yet": {"", settled(func(s *snapshot) {
			s.Infra, s.Bootstrap, s.Nodes = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}, observedNodes{}
		}), wants{
			"Available":            "False NotAvailable: * BootstrapConfigReady: FooConfig does not exist\n* InfrastructureReady: FooPool does not exist",
			"BootstrapConfigReady": "False ObjectDoesNotExist: FooConfig does not exist", "InfrastructureReady": "False ObjectDoesNotExist: FooPool does not exist",
			"MachinesReady": "True NoReplicas", "ScalingUp": "True ScalingUp: Scaling up from 0 to 2 replicas",
		}},
		"no Cluster": {"nothing else matters", settled(func(s *snapshot) { s.Cluster = nil }), wants{
			"Available": "False NotAvailable: Cluster c does not exist: create it, or delete MachinePool p"}},
		"IP2-07 mirrored": {"Ready of the infrastructure is the pool's InfrastructureReady", settled(func(s *snapshot) {
			s.Infra = infra(`{ready: true, replicas: 2, conditions: [{type: Ready, status: "False", reason: NoQuota, message: ask for more}]}`)
		}), wants{"InfrastructureReady": "False NoQuota: ask for more", "Available": "False NotAvailable: * InfrastructureReady: ask for more"}},
		"no bootstrap data": {"what is missing first is said first", settled(func(s *snapshot) {
			s.Bootstrap, s.Infra = contract.BootstrapConfigView{}, infra(`{ready: false, conditions: [{type: Ready, status: "False", reason: Waits, message: waiting}]}`)
			s.Pool.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
		}), wants{"Available": "False NotAvailable: * BootstrapConfigReady: FooConfig b has been deleted while it was in use: restore it, or delete MachinePool p\n* InfrastructureReady: waiting"}},
		"bootstrap data lost": {"no further machine can join", settled(func(s *snapshot) {
			s.Bootstrap, s.Pool.Spec.Replicas = contract.BootstrapConfigView{}, ptr.To[int32](3)
			s.Pool.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
		}), wants{"Available": "False NotAvailable: FooConfig b has been deleted while it was in use: restore it, or delete MachinePool p\n2 available replicas, at least 3 required"}},
		"CT-07 invalid": {"", settled(func(s *snapshot) {
			s.Infra = infra(`{ready: true, conditions: [{type: Ready, status: maybe}]}`)
		}), wants{"InfrastructureReady": `Unknown InvalidConditionReported: field status.conditions[Ready]: status is "maybe", want True, False or Unknown`}},
		"infrastructure deleted": {"", settled(func(s *snapshot) {
			s.Infra = contract.InfraMachinePoolView{}
			s.Pool.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		}), wants{"InfrastructureReady": "False ObjectDeleted: FooPool i has been deleted while it was in use: restore it, or delete MachinePool p"}},
		"kind missing": {"", settled(func(s *snapshot) { s.Infra = contract.InfraMachinePool(contract.Object{Problem: "install it"}) }), wants{"InfrastructureReady": "Unknown InternalError: install it"}},
		"secret provided": {"", settled(func(s *snapshot) {
			s.Pool.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{}
		}), wants{"BootstrapConfigReady": "True DataSecretProvided"}},
		"more than allowed": {"", settled(atMost(1)), wants{"ScalingUp": "True ScalingUp: " + tooMany}},
		"scaling down": {"", settled(func(s *snapshot) { s.Pool.Spec.Replicas = ptr.To[int32](1) }), wants{
			"ScalingDown": "True ScalingDown: Scaling down from 2 to 1 replicas", "ScalingUp": "False NotScalingUp"}},
		"replicas unset": {"", settled(func(s *snapshot) { s.Pool.Spec.Replicas = nil }), wants{
			"Available": "Unknown WaitingForReplicasSet: Waiting for spec.replicas to be set; until then the desired number of replicas is unknown", "ScalingUp": "Unknown WaitingForReplicasSet: Waiting for spec.replicas to be set; until then the desired number of replicas is unknown", "ScalingDown": "Unknown WaitingForReplicasSet: Waiting for spec.replicas to be set; until then the desired number of replicas is unknown"}},
		"node not ready": {"", settled(func(s *snapshot) {
			n := s.Nodes.Items["x://0"]
			n.Status.Conditions = nil
			s.Nodes.Items["x://0"] = n
		}), wants{"MachinesReady": "False NotReady: Node n0 is not ready", "Available": "False NotAvailable: 1 available replicas, at least 2 required"}},
		"not connected": {"", settled(func(s *snapshot) { s.Nodes = observedNodes{Problem: "the workload cluster is not connected"} }), wants{
			"MachinesReady": "Unknown ReadyUnknown: the workload cluster is not connected", "MachinesUpToDate": "Unknown UpToDateUnknown: the workload cluster is not connected"}},
		"nodes of a vendor": {"MP-12: of the version, with a suffix", settled(func(s *snapshot) {
			for id, n := range s.Nodes.Items {
				n.Status.NodeInfo.KubeletVersion = "v1.36.0-gke.1"
				s.Nodes.Items[id] = n
			}
		}), wants{"MachinesUpToDate": "True UpToDate"}},
		"machines of a vendor": {"MP-12", settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.0-eks-5e0fdde"), machine("m1", "v1.36.0+x")}
		}), wants{"MachinesUpToDate": "True UpToDate"}},
		"unnamed secret": {"B10d: it says created, and not what", settled(func(s *snapshot) {
			s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil
			s.Bootstrap = bootstrap(`{initialization: {dataSecretCreated: true}, conditions: [{type: Ready, status: "True"}]}`)
		}), wants{"BootstrapConfigReady": "False NotReady: Waiting for FooConfig b to set status.dataSecretName: it reports status.initialization.dataSecretCreated"}},
		"machine kind missing": {"X15", settled(withMachines, func(s *snapshot) { s.Infra.Problem = "install FooMachine" }), wants{
			"InfrastructureReady": "Unknown InternalError: install FooMachine", "Available": "Unknown AvailableUnknown: * InfrastructureReady: install FooMachine"}},
		"nonsense": {"CT-07: what cannot be read is said", settled(func(s *snapshot) { s.Infra = infra(`{ready: true, replicas: -3}`) }), wants{
			"InfrastructureReady": "Unknown InternalError: FooPool i reports what its contract does not allow: field status.replicas: want 0 or more, have -3"}},
		"failures": {"M52, B14: of either contract, where no condition says more", settled(func(s *snapshot) {
			s.Infra = infra(`{failureReason: InvalidConfiguration, failureMessage: no such type}`)
			s.Bootstrap = bootstrap(`{failureMessage: "no template"}`)
		}), wants{
			"InfrastructureReady":  "False NotReady: FooPool status.initialization.provisioned is false, and it reports a failure: InvalidConfiguration: no such type",
			"BootstrapConfigReady": "False NotReady: FooConfig status.initialization.dataSecretCreated is false, and it reports a failure: no template"}},
		"not watched": {"PA-02: their providers may not see them", settled(func(s *snapshot) {
			s.Pool.Labels = map[string]string{clusterv1.WatchLabel: "blue"}
			s.Infra, s.Bootstrap = infra(`{}`), bootstrap(`{}`)
		}), wants{
			"InfrastructureReady":  "False NotReady: FooPool status.initialization.provisioned is false; it lacks the label cluster.x-k8s.io/watch-filter=blue: set it if its provider runs with --watch-filter",
			"BootstrapConfigReady": "False NotReady: FooConfig status.initialization.dataSecretCreated is false; it lacks the label cluster.x-k8s.io/watch-filter=blue: set it if its provider runs with --watch-filter"}},
		"old nodes": {"", settled(func(s *snapshot) { s.Pool.Spec.Template.Spec.Version = "v1.37.0" }), wants{
			"MachinesUpToDate": "False NotUpToDate: Nodes n0 (v1.36.0), n1 (v1.36.0) are not of version v1.37.0"}},
		"machines": {"aggregated from Machines where there are some", settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{
				machine("m0", "v1.36.0", is("Ready", "True"), is("Available", "True")),
				machine("m1", "v1.35.0", metav1.Condition{Type: "Ready", Status: "False", Reason: "NotReady", Message: "* NodeHealthy: disk"},
					metav1.Condition{Type: "OwnerRemediated", Status: "False", Reason: "WaitingForRemediation", Message: "waiting"}),
			}
		}), wants{
			"MachinesReady":    "False NotReady: * Machine m1:\n  * NodeHealthy: disk",
			"MachinesUpToDate": "False NotUpToDate: * Machine m1:\n  * Version v1.35.0, v1.36.0 required",
			"Remediating":      "True Remediating: * Machine m1: waiting",
			"Available":        "False NotAvailable: 1 available replicas, at least 2 required",
		}},
		"deleting": {"", settled(deleted), wants{
			"Deleting": "True WaitingForInfrastructureDeletion: Waiting for FooPool i to be deleted", "Available": "False NotAvailable: Deletion in progress",
			"ScalingDown": "True ScalingDown: Scaling down from 2 to 0 replicas"}},
		"deleted": {"", settled(deleted, func(s *snapshot) {
			s.Infra, s.Bootstrap, s.Nodes = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}, observedNodes{Known: true}
		}), wants{"Deleting": "True DeletionCompleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := report(tc.s, decide(tc.s), reconciler.Outcome{}).Status.(clusterv1.MachinePoolStatus)
			if len(status.Conditions) != 9 {
				t.Errorf("%d conditions, want all nine", len(status.Conditions))
			}
			for conditionType, want := range tc.want {
				c := condition.Set(status.Conditions).Get(conditionType)
				got := string(c.Status) + " " + c.Reason
				if c.Message != "" {
					got += ": " + c.Message
				}
				if got != want {
					t.Errorf("%s: %s\n got %s\nwant %s", tc.reason, conditionType, got, want)
				}
			}
		})
	}
}

func TestPhase(t *testing.T) { // MP-10
	cases := map[string]struct {
		s    snapshot
		want clusterv1.MachinePoolPhase
	}{
		"Pending": {settled(func(s *snapshot) {
			s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil
			s.Bootstrap = bootstrap(`{}`)
		}), "Pending"},
		"Provisioning": {settled(func(s *snapshot) { s.Infra = infra(`{}`) }), "Provisioning"},
		"Running":      {settled(), "Running"},
		"ScalingUp":    {settled(func(s *snapshot) { s.Pool.Spec.Replicas = ptr.To[int32](3) }), "ScalingUp"},
		"ScalingDown":  {settled(func(s *snapshot) { s.Pool.Spec.Replicas = ptr.To[int32](1) }), "ScalingDown"},
		"Scaling": {settled(func(s *snapshot) {
			s.Pool.Spec.Replicas = ptr.To[int32](3)
			s.Pool.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: ""}
		}), "Scaling"},
		"Provisioned": {settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "", is("Ready", "True")), machine("m1", "", is("Ready", "True"))}
			s.Nodes.Items = nil
		}), "Provisioned"},
		"Deleting": {settled(deleted), "Deleting"},
	}
	for name, tc := range cases {
		status := report(tc.s, decide(tc.s), reconciler.Outcome{}).Status.(clusterv1.MachinePoolStatus)
		if status.Phase != string(tc.want) {
			t.Errorf("%s: got %s", name, status.Phase)
		}
	}
}

func TestStatus(t *testing.T) {
	status := func(s snapshot) clusterv1.MachinePoolStatus {
		return report(s, decide(s), reconciler.Outcome{}).Status.(clusterv1.MachinePoolStatus)
	}
	t.Run("MP-05 nodeRefs in the order of the provider IDs", func(t *testing.T) {
		var names []string
		for _, ref := range status(settled()).NodeRefs {
			names = append(names, ref.Name)
		}
		if diff := cmp.Diff([]string{"n0", "n1"}, names); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("MP-05 a lost connection keeps the nodeRefs", func(t *testing.T) {
		s := settled(func(s *snapshot) {
			s.Nodes = observedNodes{Problem: "no"}
			s.Pool.Status.NodeRefs = []corev1.ObjectReference{{Name: "n0"}}
		})
		if got := status(s).NodeRefs; len(got) != 1 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("MP-03 either readiness field will do", func(t *testing.T) {
		for _, text := range []string{`{initialization: {provisioned: true}}`, `{ready: true}`} {
			s := settled(func(s *snapshot) { s.Infra = infra(text) })
			if !ptr.Deref(status(s).Initialization.InfrastructureProvisioned, false) {
				t.Errorf("%s: not provisioned", text)
			}
		}
	})
	t.Run("provisioned is never taken back", func(t *testing.T) {
		s := settled(func(s *snapshot) {
			s.Infra = infra(`{}`)
			s.Pool.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		})
		if !ptr.Deref(status(s).Initialization.InfrastructureProvisioned, false) {
			t.Error("it was")
		}
	})
	t.Run("MP-11 counters from Machines", func(t *testing.T) {
		s := settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.0", is("Ready", "True"), is("Available", "True")), machine("m1", "v1.35.0", is("Ready", "True"))}
		})
		got := status(s)
		if *got.Replicas != 2 || *got.ReadyReplicas != 2 || *got.AvailableReplicas != 1 || *got.UpToDateReplicas != 1 {
			t.Errorf("%d %d %d %d", *got.Replicas, *got.ReadyReplicas, *got.AvailableReplicas, *got.UpToDateReplicas)
		}
		if diff := cmp.Diff([]clusterv1.StatusVersion{{Version: "v1.35.0", Replicas: 1}, {Version: "v1.36.0", Replicas: 1}}, got.Versions); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("MP-11, TP-29: counters and versions from Nodes", func(t *testing.T) {
		got := status(settled())
		if *got.ReadyReplicas != 2 || *got.AvailableReplicas != 2 || *got.UpToDateReplicas != 2 || got.Versions[0] != (clusterv1.StatusVersion{Version: "v1.36.0", Replicas: 2}) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("MP-11 Nodes of a vendor", func(t *testing.T) {
		got := status(settled(func(s *snapshot) {
			n := s.Nodes.Items["x://0"]
			n.Status.NodeInfo.KubeletVersion = "v1.36.0-eks-5e0fdde"
			s.Nodes.Items["x://0"] = n
		}))
		if *got.UpToDateReplicas != 2 || len(got.Versions) != 2 {
			t.Errorf("a suffix is no other version, and is shown: %+v", got)
		}
	})
	t.Run("nonsense freezes nothing", func(t *testing.T) {
		got := status(settled(func(s *snapshot) {
			s.Infra = infraOf(contract.V1Beta2, `spec: {providerIDList: [""]}`, `{ready: true, replicas: -3}`)
			s.Pool.Status.Replicas = ptr.To[int32](2)
		}))
		if *got.Replicas != 2 || len(got.NodeRefs) != 2 {
			t.Errorf("what was known stays: %+v", got)
		}
	})
	t.Run("MP-13 failures are copied", func(t *testing.T) {
		s := settled(func(s *snapshot) {
			s.Infra = infraOf(contract.V1Beta1, "spec: {}", `{failureReason: InvalidConfiguration, failureMessage: "no such type"}`)
		})
		v1 := status(s).Deprecated.V1Beta1
		if v1.FailureReason == nil || *v1.FailureReason != "InvalidConfiguration" || *v1.FailureMessage != "Failure detected from FooPool i: no such type" {
			t.Errorf("%+v", v1)
		}
		for _, version := range contract.Versions() { // the config's where the infrastructure has none; M52, B14: of either contract
			s := settled(func(s *snapshot) {
				b := contract.BootstrapConfig(object("{metadata: {name: b}, status: {failureReason: Bad, failureMessage: "+strings.Repeat("é", 6000)+"}}", version))
				s.Bootstrap = b
			})
			v1 := status(s).Deprecated.V1Beta1
			if v1.FailureReason == nil || *v1.FailureReason != "Bad" || *v1.FailureMessage != "Failure detected from FooConfig b: "+strings.Repeat("é", 5102) {
				t.Errorf("%s: the API takes 10240 bytes: %+v", version, v1)
			}
			s.Infra = infraOf(version, "spec: {}", `{failureReason: Worse}`)
			if v1 := status(s).Deprecated.V1Beta1; *v1.FailureReason != "Worse" || v1.FailureMessage != nil {
				t.Errorf("%s: %+v", version, v1)
			}
		}
		if v1 := status(settled()).Deprecated.V1Beta1; v1.FailureReason != nil || v1.FailureMessage != nil {
			t.Errorf("no failure, none copied: %+v", v1)
		}
	})
	t.Run("CO-02 v1beta1 conditions", func(t *testing.T) {
		var got []string
		for _, c := range status(settled()).Deprecated.V1Beta1.Conditions {
			got = append(got, string(c.Type)+" "+string(c.Status))
		}
		if diff := cmp.Diff([]string{"Ready True", "BootstrapReady True", "InfrastructureReady True", "ReplicasReady True"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("observedGeneration stays while a pass fails", func(t *testing.T) { // CL-28
		s := settled(func(s *snapshot) { s.Pool.Generation = 7 })
		failed := report(s, decide(s), reconciler.Outcome{Err: cmpError("no")}).Status.(clusterv1.MachinePoolStatus)
		if failed.ObservedGeneration != 1 || status(s).ObservedGeneration != 7 {
			t.Error("it moved, or did not")
		}
	})
}

type cmpError string

func (e cmpError) Error() string { return string(e) }

func TestNodesAreCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 Nodes", 1: "1 Node", 12: "12 Nodes"} {
		if got := nodes(n).Message; got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
