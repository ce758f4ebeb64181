package progress_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// finished is a cluster with a deployment of two, ready and up to date.
func finished(change func(*describe.Snapshot)) describe.Snapshot {
	s := created(ready)
	provider(&s, infraRef, "Ready", "True", "")
	provider(&s, planeRef, "Available", "True", "")
	plane := s.Objects[describe.Ref{Group: planeRef.APIGroup, Kind: planeRef.Kind, Name: planeRef.Name}]
	plane.Object["spec"] = map[string]any{"version": "v1.36.3"}
	plane.Object["status"].(map[string]any)["version"] = "v1.36.3"
	s.Pools = nil
	spec := clusterv1.MachineSpec{ClusterName: "demo", Version: "v1.36.3", InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: "ExampleMachineTemplate", Name: "md-0"}}
	d := clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "md", Generation: 1}}
	d.Spec.Replicas, d.Spec.Template.Spec = n(2), spec
	d.Status.ObservedGeneration, d.Status.Replicas, d.Status.AvailableReplicas, d.Status.UpToDateReplicas = 1, n(2), n(2), n(2)
	set := clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "md-1", Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "md"}}}
	set.Spec.Template.Spec = spec
	s.Deployments, s.Sets = []clusterv1.MachineDeployment{d}, []clusterv1.MachineSet{set}
	s.Machines = []clusterv1.Machine{machine("a", "True", ""), machine("b", "True", "")}
	for i := range s.Machines {
		s.Machines[i].Labels = map[string]string{clusterv1.MachineSetNameLabel: "md-1"}
	}
	if change != nil {
		change(&s)
	}
	return s
}

func rollOut(s *describe.Snapshot) {
	d := &s.Deployments[0]
	d.Generation = 2
	d.Spec.Template.Spec.InfrastructureRef.Name = "md-1"
}

// A cluster is waited for until it is as its specs say, also in the second after a change, when no status tells of it yet.
func TestWaitsForUpToDate(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*describe.Snapshot)
		want   string
	}{
		"finished": {"nothing to wait for", nil, ""},
		"unseen":   {"the controller has not seen the change", func(s *describe.Snapshot) { s.Deployments[0].Generation = 2 }, "2 of 2 nodes ready, the last change of the spec has yet to be observed"},
		"just now": {"the status says that all is well, of the spec before", rollOut, "2 of 2 nodes ready, 0 of 2 up to date, the last change of the spec has yet to be observed"},
		"rolling":  {"the change is seen, the Machines not yet judged", func(s *describe.Snapshot) { rollOut(s); s.Deployments[0].Status.ObservedGeneration = 2 }, "MachineDeployment md: waits until 2 nodes are Ready and up to date (2 of 2 nodes ready, 0 of 2 up to date)"},
		"stuck": {"what holds a rollout is said", func(s *describe.Snapshot) {
			rollOut(s)
			s.Deployments[0].Status.Conditions = []metav1.Condition{cond("Available", "True", ""), cond("RollingOut", "True", "Rolling out 2 not up-to-date replicas\n* ExampleMachineTemplate md-1 does not exist")}
		}, "0 of 2 up to date, the last change of the spec has yet to be observed: ExampleMachineTemplate md-1 does not exist"},
		"draining": {"a drain that is blocked says by what", func(s *describe.Snapshot) {
			s.Deployments[0].Status.Replicas = n(3)
			now := metav1.Now()
			m := machine("c", "False", "* Deleting: Machine deletion in progress, stage: DrainingNode")
			m.DeletionTimestamp, m.Labels = &now, map[string]string{clusterv1.MachineSetNameLabel: "md-1"}
			m.Status.Conditions = append(m.Status.Conditions, cond("Deleting", "True", "Drain not completed yet:\n* Pod default/app: The disruption budget app needs 2 healthy pods"))
			s.Machines = append(s.Machines, m)
		}, "Machine c: Drain not completed yet: Pod default/app: The disruption budget app needs 2 healthy pods)"},
		"held up": {"the Machine that holds a rollout up is said, not one that is yet to be replaced", func(s *describe.Snapshot) {
			rollOut(s)
			now := metav1.Now()
			for i := range s.Machines {
				s.Machines[i].Status.Conditions = append(s.Machines[i].Status.Conditions, cond("UpToDate", "False", "* Version v1.35.4, v1.36.3 required"))
			}
			m := &s.Machines[1]
			m.DeletionTimestamp = &now
			m.Status.Conditions = append(m.Status.Conditions, cond("Deleting", "True", "Drain not completed yet:\n* Pod default/app: The disruption budget app needs 2 healthy pods"))
		}, "Machine b: Drain not completed yet: Pod default/app: The disruption budget app needs 2 healthy pods; Version v1.35.4, v1.36.3 required; 1 more Machines are not as they should be)"},
		"summarized": {"what a Machine says itself is not said of it by others, too", func(s *describe.Snapshot) {
			s.Deployments[0].Status.AvailableReplicas = n(1)
			s.Deployments[0].Status.Conditions = []metav1.Condition{cond("Available", "False", "1 available replicas, at least 2 required"), cond("MachinesReady", "False", "* Machine b:\n  * NodeHealthy: an older reason")}
			s.Machines[1] = machine("b", "False", "* NodeHealthy: no CNI")
			s.Machines[1].Labels = map[string]string{clusterv1.MachineSetNameLabel: "md-1"}
		}, "1 of 2 nodes ready: Machine b: NodeHealthy: no CNI)"},
		"control plane": {"the control plane runs another version", func(s *describe.Snapshot) {
			s.Objects[describe.Ref{Group: planeRef.APIGroup, Kind: planeRef.Kind, Name: planeRef.Name}].Object["spec"] = map[string]any{"version": "v1.36.4"}
		}, "control plane: waits until ExamplePlane demo is up to date (Kubernetes v1.36.3 runs, v1.36.4 is asked for)"},
		"control plane nodes": {"one node of three makes a control plane available", replicas(3, 3, 1),
			"control plane: waits until ExamplePlane demo is up to date (1 of 3 replicas available)"},
		"control plane surplus": {"", replicas(4, 4, 4), "ExamplePlane demo is up to date (4 replicas exist, 3 are asked for)"},
		"control plane rolling": {"", replicas(4, 1, 4), "ExamplePlane demo is up to date (1 of 3 replicas up to date)"},
		"control plane whole":   {"", replicas(3, 3, 3), ""},
		"machine alone": {"a Machine that stands alone counts, too", func(s *describe.Snapshot) {
			m := machine("alone", "False", "* NodeHealthy: no CNI")
			m.Labels = nil
			s.Machines = append(s.Machines, m)
		}, "Machine alone: waits until Machine alone reports Ready (NodeHealthy: no CNI)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := finished(tc.change)
			out := printed(t, s)
			if !strings.Contains(out, tc.want) || (tc.want == "") != !strings.Contains(out, "waits until") {
				t.Errorf("%s: %q is not in\n%s", tc.reason, tc.want, out)
			}
		})
	}
}

// replicas gives the control plane numbers of nodes, of which three are asked for.
func replicas(there, upToDate, available int64) func(*describe.Snapshot) {
	return func(s *describe.Snapshot) {
		plane := s.Objects[describe.Ref{Group: planeRef.APIGroup, Kind: planeRef.Kind, Name: planeRef.Name}].Object
		plane["spec"].(map[string]any)["replicas"] = int64(3)
		for field, n := range map[string]int64{"replicas": there, "upToDateReplicas": upToDate, "availableReplicas": available} {
			plane["status"].(map[string]any)[field] = n
		}
	}
}

// No one waits for a rollout that its own spec stops.
func TestPausedRolloutIsHopeless(t *testing.T) {
	pause := func(s *describe.Snapshot) { s.Deployments[0].Spec.Paused = yes() }
	if out := printed(t, finished(pause)); strings.Contains(out, "waits until") {
		t.Errorf("a paused deployment with nothing to replace is done:\n%s", out)
	}
	_, err := progress.Creation(finished(func(s *describe.Snapshot) { rollOut(s); pause(s) }))
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "2 nodes are not up to date: nothing happens until spec.paused is false") {
		t.Errorf("got %v", err)
	}
}
