package progress_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

var (
	infraRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infra.example.com", Kind: "ExampleCluster", Name: "demo"}
	planeRef = clusterv1.ContractVersionedObjectReference{APIGroup: "plane.example.com", Kind: "ExamplePlane", Name: "demo"}
)

func yes() *bool { v := true; return &v }

func n(v int32) *int32 { return &v }

func cond(conditionType, status, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: "R", Message: message}
}

func provider(s *describe.Snapshot, ref clusterv1.ContractVersionedObjectReference, conditionType, status, message string) {
	if s.Objects == nil {
		s.Objects = map[describe.Ref]*unstructured.Unstructured{}
	}
	s.Objects[describe.Ref{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}] = &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": ref.Name},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": conditionType, "status": status, "message": message}}},
	}}
}

// because sets a condition with a reason and no message on a provider's object.
func because(s *describe.Snapshot, ref clusterv1.ContractVersionedObjectReference, conditionType, status, reason string) {
	provider(s, ref, conditionType, status, "")
	o := s.Objects[describe.Ref{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}]
	o.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["reason"] = reason
}

// created returns a snapshot of a cluster with a pool of two; change makes it what the test needs.
func created(change func(*describe.Snapshot)) describe.Snapshot {
	s := describe.Snapshot{
		Cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"},
			Spec:       clusterv1.ClusterSpec{InfrastructureRef: infraRef, ControlPlaneRef: planeRef},
		},
		Pools: []clusterv1.MachinePool{{
			ObjectMeta: metav1.ObjectMeta{Name: "pool"},
			Spec:       clusterv1.MachinePoolSpec{Replicas: n(2)},
		}},
	}
	if change != nil {
		change(&s)
	}
	return s
}

func provisioned(s *describe.Snapshot) {
	s.Cluster.Status.Initialization.InfrastructureProvisioned = yes()
}

func initialized(s *describe.Snapshot) {
	provisioned(s)
	s.Cluster.Status.Initialization.ControlPlaneInitialized = yes()
	s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions, cond("ControlPlaneAvailable", "True", ""))
}

func joined(count int32) func(*describe.Snapshot) {
	return func(s *describe.Snapshot) {
		initialized(s)
		s.Pools[0].Status.Replicas = n(2)
		s.Pools[0].Status.AvailableReplicas = n(count)
	}
}

func ready(s *describe.Snapshot) {
	joined(2)(s)
	s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions, cond("Available", "True", ""))
}

func machine(name, status, message string) clusterv1.Machine {
	return clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.MachinePoolNameLabel: "pool", clusterv1.MachineSetNameLabel: "md-1"}},
		Status:     clusterv1.MachineStatus{Conditions: []metav1.Condition{cond("Ready", status, message)}},
	}
}

// Every step says how it is, or what it waits for, in the words of whoever knows best.
func TestCreation(t *testing.T) {
	cases := map[string]struct {
		reason string
		s      describe.Snapshot
		want   map[string]string
	}{
		"nothing yet": {"no controller has looked at it", created(nil), map[string]string{
			"infrastructure":   "infrastructure: waits until ExampleCluster demo reports that it is provisioned",
			"control plane":    "control plane: waits until ExamplePlane demo reports that it is available",
			"MachinePool pool": "MachinePool pool: waits until 2 nodes are Ready and up to date (0 of 2 nodes ready)",
			"cluster":          "cluster: waits until Cluster demo reports Available",
		}},
		"infrastructure missing": {"a wrong reference is seen at once", created(func(s *describe.Snapshot) {
			s.Missing = map[describe.Ref]string{{Group: infraRef.APIGroup, Kind: infraRef.Kind, Name: infraRef.Name}: "does not exist"}
		}), map[string]string{"infrastructure": "infrastructure: waits until ExampleCluster demo reports that it is provisioned (ExampleCluster demo: does not exist)"}},
		"provider speaks": {"the provider's object knows better than the Cluster's mirror of it", created(func(s *describe.Snapshot) {
			provider(s, infraRef, "Ready", "False", "Docker does not respond:\n* start it")
			s.Cluster.Status.Conditions = []metav1.Condition{cond("InfrastructureReady", "False", "mirror")}
		}), map[string]string{"infrastructure": "infrastructure: waits until ExampleCluster demo reports that it is provisioned (Docker does not respond: start it)"}},
		"cluster speaks": {"without a provider's word the Cluster's is shown", created(func(s *describe.Snapshot) {
			provisioned(s)
			s.Cluster.Status.Conditions = []metav1.Condition{cond("ControlPlaneInitialized", "False", "not yet")}
		}), map[string]string{
			"infrastructure": "infrastructure: done",
			"control plane":  "control plane: waits until ExamplePlane demo reports that it is available (not yet)",
		}},
		"control plane lost": {"initialized is not enough: it has to be there now", created(func(s *describe.Snapshot) {
			provisioned(s)
			s.Cluster.Status.Initialization.ControlPlaneInitialized = yes()
			provider(s, planeRef, "Available", "False", "process is restarting")
		}), map[string]string{"control plane": "control plane: waits until ExamplePlane demo reports that it is available (process is restarting)"}},
		"machine speaks": {"the machine that is behind explains its pool", created(func(s *describe.Snapshot) {
			joined(1)(s)
			s.Machines = []clusterv1.Machine{machine("a", "True", ""), machine("b", "False", "* NodeHealthy: CNI is not ready")}
		}), map[string]string{"MachinePool pool": "MachinePool pool: waits until 2 nodes are Ready and up to date (1 of 2 nodes ready: Machine b: NodeHealthy: CNI is not ready)"}},
		"pool speaks": {"before there are machines the pool explains itself", created(func(s *describe.Snapshot) {
			s.Pools[0].Status.Conditions = []metav1.Condition{cond("Available", "False", "bootstrap data is not ready")}
		}), map[string]string{"MachinePool pool": "MachinePool pool: waits until 2 nodes are Ready and up to date (0 of 2 nodes ready: bootstrap data is not ready)"}},
		"deployment": {"deployments count like pools", created(func(s *describe.Snapshot) {
			s.Deployments = []clusterv1.MachineDeployment{{ObjectMeta: metav1.ObjectMeta{Name: "md"}, Spec: clusterv1.MachineDeploymentSpec{Replicas: n(1)}}}
			s.Sets = []clusterv1.MachineSet{{ObjectMeta: metav1.ObjectMeta{Name: "md-1", Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "md"}}}}
			s.Machines = []clusterv1.Machine{machine("a", "False", "booting")}
		}), map[string]string{"MachineDeployment md": "MachineDeployment md: waits until 1 node is Ready and up to date (0 of 1 nodes ready: Machine a: booting)"}},
		"too many": {"a pool that is still shrinking is not done", created(func(s *describe.Snapshot) {
			joined(3)(s)
			s.Pools[0].Status.Replicas = n(3)
		}), map[string]string{"MachinePool pool": "MachinePool pool: waits until 2 nodes are Ready and up to date (3 of 2 nodes ready)"}},
		"unavailable": {"all nodes are there but the cluster is not available", created(func(s *describe.Snapshot) {
			joined(2)(s)
			s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions, cond("Available", "Unknown", "* RemoteConnectionProbe: no answer"))
			provider(s, infraRef, "Ready", "True", "")
			provider(s, planeRef, "Available", "True", "")
		}), map[string]string{
			"MachinePool pool": "MachinePool pool: done, 2 of 2 nodes ready",
			"cluster":          "cluster: waits until Cluster demo reports Available (RemoteConnectionProbe: no answer)",
		}},
		"add-ons": {"without DNS, Pods find nothing", created(func(s *describe.Snapshot) {
			ready(s)
			provider(s, planeRef, "AddonsAvailable", "False", "Deployment coredns is not available in the workload cluster: 2 Pods have no Node")
		}), map[string]string{
			"cluster": "cluster: done",
			"add-ons": "add-ons: waits until ExamplePlane demo reports that the add-ons are available (Deployment coredns is not available in the workload cluster: 2 Pods have no Node)",
		}},
		"add-ons available": {"nothing more is waited for", created(func(s *describe.Snapshot) {
			ready(s)
			provider(s, planeRef, "AddonsAvailable", "True", "")
		}), map[string]string{"add-ons": "add-ons: done"}},
		"add-ons without Nodes": {"they cannot run, and no Node is to come", created(func(s *describe.Snapshot) {
			ready(s)
			s.Pools = nil
			because(s, planeRef, "AddonsAvailable", "Unknown", "NoNodes")
		}), map[string]string{"add-ons": "add-ons: done, they start on the first Node"}},
		"add-ons before Nodes": {"Nodes are to come", created(func(s *describe.Snapshot) {
			initialized(s)
			because(s, planeRef, "AddonsAvailable", "Unknown", "NoNodes")
		}), map[string]string{"add-ons": "add-ons: waits until ExamplePlane demo reports that the add-ons are available"}},
		"no add-ons": {"a simulated cluster has none", created(func(s *describe.Snapshot) {
			ready(s)
			because(s, planeRef, "AddonsAvailable", "True", "NotNeeded")
		}), map[string]string{}},
		"ready": {"nothing to wait for", created(ready), map[string]string{
			"control plane": "control plane: done", "cluster": "cluster: done",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			steps, err := progress.Creation(tc.s)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got := map[string]string{}
			for _, s := range steps {
				if _, asked := tc.want[s.Name]; asked {
					got[s.Name] = s.String()
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

// What no waiting can mend ends the wait at once.
func TestCreationIsHopeless(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*describe.Snapshot)
		kind   fault.Kind
		want   string
	}{
		"paused":   {"a paused cluster does nothing", func(s *describe.Snapshot) { s.Cluster.Spec.Paused = yes() }, fault.Invalid, "until spec.paused is false"},
		"deleting": {"it will not come back", func(s *describe.Snapshot) { at := metav1.NewTime(time.Unix(1, 0)); s.Cluster.DeletionTimestamp = &at }, fault.Gone, "is being deleted"},
		"denied": {"the operator or the spec has to change", func(s *describe.Snapshot) {
			provider(s, infraRef, "NetworkReady", "False", "range 8.8.0.0/16 is not allowed")
			o := s.Objects[describe.Ref{Group: infraRef.APIGroup, Kind: infraRef.Kind, Name: infraRef.Name}]
			o.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["reason"] = "DeniedByPolicy"
		}, fault.Invalid, `demo of cluster "demo" is refused: range 8.8.0.0/16 is not allowed`},
		"taken": {"so has the subnet", func(s *describe.Snapshot) {
			provider(s, infraRef, "NetworkReady", "False", "a network of this host uses it")
			o := s.Objects[describe.Ref{Group: infraRef.APIGroup, Kind: infraRef.Kind, Name: infraRef.Name}]
			o.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["reason"] = "SubnetTaken"
		}, fault.Invalid, `demo of cluster "demo" is refused: a network of this host uses it`},
		"version": {"the spec has to change", func(s *describe.Snapshot) { provider(s, planeRef, "VersionSupported", "False", "carried are: v1.36.3") }, fault.Invalid, "carried are: v1.36.3"},
		"no controller": {"nothing will ever start it", func(s *describe.Snapshot) {
			c := cond("ControlPlaneInitialized", "False", "use HostedControlPlane")
			c.Reason = "NoController"
			s.Cluster.Status.Conditions = []metav1.Condition{c}
		}, fault.Invalid, `the control plane of cluster "demo" cannot start: use HostedControlPlane`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := progress.Creation(created(tc.change))
			if err == nil || fault.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %v with %q", tc.reason, err, tc.kind, tc.want)
			}
		})
	}
}

func TestDeletion(t *testing.T) {
	first := created(func(s *describe.Snapshot) {
		ready(s)
		s.Machines = []clusterv1.Machine{machine("a", "True", ""), machine("b", "True", "")}
		provider(s, infraRef, "Ready", "True", "")
		provider(s, planeRef, "Available", "True", "")
	})
	draining := first
	draining.Machines = []clusterv1.Machine{{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Status:     clusterv1.MachineStatus{Conditions: []metav1.Condition{cond("Deleting", "True", "waits for Pod web")}},
	}}
	pools := draining
	pools.Machines = nil
	pools.Pools = []clusterv1.MachinePool{{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Status: clusterv1.MachinePoolStatus{Conditions: []metav1.Condition{cond("Deleting", "True", "its infrastructure")}}}}
	plane := pools
	plane.Pools = nil
	plane.Objects = nil
	provider(&plane, infraRef, "Deleting", "True", "the network is in use")
	cases := map[string]struct {
		reason string
		last   describe.Snapshot
		want   []string
	}{
		"machines": {"machines go first", draining, []string{
			"workers: waits until their nodes are removed (1 Machine left; Machine a: waits for Pod web)",
			"control plane: waits until ExamplePlane demo is gone", "infrastructure: waits until ExampleCluster demo is gone", "cluster: waits until Cluster demo is gone"}},
		"pools": {"then what made them", pools, []string{
			"workers: waits until their nodes are removed (MachinePool pool: its infrastructure)",
			"control plane: waits until ExamplePlane demo is gone", "infrastructure: waits until ExampleCluster demo is gone", "cluster: waits until Cluster demo is gone"}},
		"infrastructure": {"then the control plane, then the infrastructure", plane, []string{
			"workers: done", "control plane: done",
			"infrastructure: waits until ExampleCluster demo is gone (the network is in use)", "cluster: waits until Cluster demo is gone"}},
		"gone": {"the Cluster goes last", describe.Snapshot{}, []string{"workers: done", "control plane: done", "infrastructure: done", "cluster: done"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range progress.Deletion(first, tc.last) {
				got = append(got, s.String())
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

// A Cluster of a class has nothing but its topology at first: what is not there yet is not done.
func TestTopology(t *testing.T) {
	s := created(nil)
	s.Cluster.Generation = 2
	s.Cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "small"}, Version: "v1.36.3"}
	s.Cluster.Spec.InfrastructureRef, s.Cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}, clusterv1.ContractVersionedObjectReference{}
	s.Pools = nil
	reconciled := func(status metav1.ConditionStatus, generation int64, message string) {
		s.Cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterTopologyReconciledCondition, Status: status, ObservedGeneration: generation, Message: message}}
	}
	lines := func() string {
		steps, err := progress.Creation(s)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, step := range steps[:3] {
			out = append(out, step.String())
		}
		return strings.Join(out, "\n")
	}
	const nothing = "\ninfrastructure: waits until the topology has created it\ncontrol plane: waits until the topology has created it"
	const ends = "topology: waits until Cluster demo matches ClusterClass small"
	for _, tc := range []struct {
		status     metav1.ConditionStatus
		generation int64
		message    string
		want       string
	}{
		{"False", 2, "A hook holds it back", ends + " (A hook holds it back)"},
		{"True", 1, "", ends},
		{"True", 2, "", "topology: done"},
	} {
		reconciled(tc.status, tc.generation, tc.message)
		if got := lines(); got != tc.want+nothing {
			t.Errorf("%s of generation %d: %s", tc.status, tc.generation, got)
		}
	}
}
