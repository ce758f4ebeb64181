package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestDecide(t *testing.T) {
	unowned := func(kind, rest string) contract.Object {
		return object("kind: "+kind+"\nmetadata: {name: x, ownerReferences: [{kind: MachineSet, name: ms, uid: ms, controller: true}]}\n"+rest, contract.V1Beta2)
	}
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"settled": {"nothing to do", settled(), nil},
		"no cluster": {"a watch on Clusters wakes it", settled(func(s *snapshot) { s.Cluster = nil }),
			[]string{"wait: Waiting for Cluster c to be created"}},
		"no label":    {"MA-03: always enforced", settled(func(s *snapshot) { s.Machine.Labels = nil }), []string{"do: join Cluster c"}},
		"wrong label": {"MA-03", settled(func(s *snapshot) { s.Machine.Labels[clusterv1.ClusterNameLabel] = "x" }), []string{"do: join Cluster c"}},
		"standalone":  {"MA-02: adopted", settled(func(s *snapshot) { s.Machine.OwnerReferences = nil }), []string{"do: join Cluster c"}},
		"restored set": {"MA-02: its MachineSet will adopt it", settled(func(s *snapshot) {
			s.Machine.OwnerReferences, s.Machine.Labels[clusterv1.MachineSetNameLabel] = nil, "ms"
		}), nil},
		"restored pool": {"MA-02", settled(func(s *snapshot) {
			s.Machine.OwnerReferences, s.Machine.Labels[clusterv1.MachinePoolNameLabel] = nil, "mp"
		}), nil},
		"restored control plane": {"MA-02", settled(func(s *snapshot) {
			s.Machine.OwnerReferences, s.Machine.Labels[clusterv1.MachineControlPlaneNameLabel] = nil, "cp"
		}), nil},
		"controlled": {"MA-02: belongs to its controller", settled(ofPool), nil},
		"nothing there": {"waits for both, with a timer", fresh(),
			[]string{"wait: Waiting for FooConfig b to be created", "wait: Waiting for FooMachine i to be created", "recheck: 30s"}},
		"made by a set": {"MA-06: the Machine takes over", fresh(func(s *snapshot) {
			b, i := contract.BootstrapConfig(unowned("FooConfig", "")), contract.InfraMachine(unowned("FooMachine", ""))
			s.Bootstrap, s.Infra = b, i
		}), []string{"do: own FooConfig b: it is the Machine's bootstrap config", "do: own FooMachine i: it is the Machine's infrastructure"}},
		"bootstrap to come": {"MA-04", fresh(func(s *snapshot) { s.Bootstrap, s.Infra = bootstrap("status: {}"), infra("status: {}") }),
			[]string{"wait: Waiting for FooConfig b to report status.initialization.dataSecretCreated", "wait: Waiting for FooMachine i to report status.initialization.provisioned"}},
		"bootstrap done": {"MA-04: the name of the Secret is copied", fresh(func(s *snapshot) { s.Bootstrap, s.Infra = bootstrap(readyBootstrap), infra("status: {}") }),
			[]string{"do: copy the results of bootstrap and infrastructure", "wait: Waiting for FooMachine i to report status.initialization.provisioned"}},
		"no provider ID": {"MA-05: provisioned is not enough", fresh(func(s *snapshot) {
			s.Bootstrap, s.Infra = bootstrap("status: {}"), infra("status: {initialization: {provisioned: true}}")
		}), []string{"wait: Waiting for FooConfig b to report status.initialization.dataSecretCreated", "wait: Waiting for FooMachine i to set spec.providerID: it reports status.initialization.provisioned"}},
		"infrastructure done": {"MA-05", settled(func(s *snapshot) { s.Machine.Spec.ProviderID = "" }), []string{"do: copy the results of bootstrap and infrastructure"}},
		"placed elsewhere":    {"MA-05, IM-03: the spec is what the user asks for; where the machine is stands in the status", settled(func(s *snapshot) { s.Machine.Spec.FailureDomain = "b" }), nil},
		"moved by provider": {"MA-05, IM-03: the deprecated field of either contract is followed", settled(func(s *snapshot) {
			s.Infra = infra("spec: {providerID: x://1, failureDomain: b}\nstatus: {initialization: {provisioned: true}}")
		}), []string{"do: copy the results of bootstrap and infrastructure"}},
		"older contract": {"MA-05: v1beta1 has other fields", fresh(func(s *snapshot) {
			s.Bootstrap, s.Infra = bootstrap(readyBootstrap), infraOf(contract.V1Beta1, "spec: {providerID: x://1, failureDomain: z}\nstatus: {ready: true}")
		}), []string{"do: copy the results of bootstrap and infrastructure"}},
		"infrastructure lost": {"MA-07: waiting for a person", settled(func(s *snapshot) { s.Infra = contract.InfraMachineView{} }),
			[]string{"wait: FooMachine i has been deleted while it was in use: restore it, or delete Machine m"}},
		"bootstrap lost": {"MA-04: its work is done", settled(func(s *snapshot) { s.Bootstrap = contract.BootstrapConfigView{} }), nil},
		"kind not installed": {"looked at again later", fresh(func(s *snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachine(contract.Object{Problem: "install it"}), bootstrap("status: {}")
		}),
			[]string{"wait: Waiting for FooConfig b to report status.initialization.dataSecretCreated", "wait: install it", "recheck: 30s"}},
		"pool Machine":  {"MP-07: no bootstrap config to wait for", fresh(ofPool, func(s *snapshot) { s.Infra = infra("status: {}") }), []string{"wait: Waiting for FooMachine i to report status.initialization.provisioned"}},
		"new Node":      {"MA-10, MA-18: one patch", settled(func(s *snapshot) { s.Node.Item = node() }), []string{"do: sync labels, annotations and taints to Node n"}},
		"not available": {"MA-23: woken when it will be", settled(was(metav1.Condition{Type: "Ready", Status: "True", LastTransitionTime: metav1.NewTime(ago(4 * time.Second))}), func(s *snapshot) { s.Machine.Spec.MinReadySeconds = ptr.To[int32](10) }), []string{"recheck: 6s"}},
		"connection down": {"MA-20: woken when the grace is over", settled(func(s *snapshot) {
			s.Node = observedNode{Unreachable: true}
			s.Connection = slipwayworkload.Health{LastProbeSuccess: ago(time.Minute), ConsecutiveFailures: 5}
		}), []string{"recheck: 4m0s"}},
		"cache fills": {"asked again soon", settled(func(s *snapshot) { s.Node = observedNode{Unreachable: true} }), []string{"recheck: 5s"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			if diff := cmp.Diff(tc.want, texts(p)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, w := range p.Waits {
				if len(w.On) == 0 || w.Until == "" {
					t.Errorf("what is waited for, and what ends it, is not said: %+v", w)
				}
			}
		})
	}
}

func TestFollow(t *testing.T) { // MA-04, MA-05
	s := fresh(func(s *snapshot) { s.Infra, s.Bootstrap = infra(readyInfra), bootstrap(readyBootstrap) })
	copyProviderFields(s, s.Machine)
	if s.Machine.Spec.ProviderID != "x://1" || s.Machine.Spec.FailureDomain != "" || *s.Machine.Spec.Bootstrap.DataSecretName != "data" {
		t.Errorf("%+v", s.Machine.Spec)
	}
	s = settled(func(s *snapshot) { s.Machine.Spec.Bootstrap.DataSecretName = ptr.To("mine") })
	copyProviderFields(s, s.Machine)
	if *s.Machine.Spec.Bootstrap.DataSecretName != "mine" {
		t.Error("a data secret that is set stays")
	}
}

func TestDecideDeletion(t *testing.T) {
	external := func(s *snapshot) { s.ControlPlane.External = true }
	goneBut := func(changes ...func(*snapshot)) snapshot {
		return settled(append([]func(*snapshot){deleted, noProviders, external}, changes...)...)
	}
	tried := was(is("Deleting", "True", "DeletingNode", ""))
	down := func(s *snapshot) { s.Node = observedNode{Unreachable: true} }
	deleteNode := []string{"do: delete Node n: its Machine is deleted", "wait: Waiting for Node n to be deleted", "recheck: 10s"}
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"infrastructure first": {"MD-14", settled(deleted, external, drained), []string{"do: delete FooMachine i: the Machine is deleted", "wait: Waiting for FooMachine i to be deleted", "recheck: 15m0s"}},
		"infrastructure goes": {"MD-14: awaited, not deleted twice", settled(deleted, external, drained, func(s *snapshot) {
			s.Infra.SetDeletionTimestamp(ptr.To(metav1.NewTime(now)))
		}), []string{"wait: Waiting for FooMachine i to be deleted", "recheck: 15m0s"}},
		"then bootstrap": {"MD-14", settled(deleted, external, drained, func(s *snapshot) { s.Infra = contract.InfraMachineView{} }), []string{"do: delete FooConfig b: the Machine is deleted", "wait: Waiting for FooConfig b to be deleted", "recheck: 15m0s"}},
		"then the Node":  {"MD-15", goneBut(), deleteNode},
		"Node gone":      {"MD-16: nothing left", goneBut(noNode), nil},
		"unreadable":     {"a person has to help", settled(deleted, func(s *snapshot) { s.Infra = contract.InfraMachine(contract.Object{Problem: "no label"}) }), []string{"wait: no label", "recheck: 30s"}},
		"cluster deleted too": {"MD-01: the Node goes with it", goneBut(func(s *snapshot) {
			s.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}), nil},
		"no cluster":             {"MD-01", goneBut(func(s *snapshot) { s.Cluster = nil }), nil},
		"control plane deleted":  {"MD-01", goneBut(func(s *snapshot) { s.ControlPlane.Deleting = true }), nil},
		"no control plane left":  {"MD-01: nobody could delete it", goneBut(func(s *snapshot) { s.ControlPlane = controlPlane{} }), nil},
		"control plane Machines": {"MD-01: another is left", goneBut(func(s *snapshot) { s.ControlPlane = controlPlane{Others: 1} }), deleteNode},
		"never had a Node":       {"MD-01", goneBut(noNode, func(s *snapshot) { s.Machine.Status.NodeRef.Name = "" }), nil},
		"found by provider ID":   {"MD-01: the retry", goneBut(func(s *snapshot) { s.Machine.Status.NodeRef.Name = "" }), deleteNode},
		"late":                   {"MD-15: tried once however late it is", goneBut(deletedSince(time.Minute)), []string{"do: delete Node n: its Machine is deleted", "wait: Waiting for Node n to be deleted", "recheck: 14m0s"}},
		"given up":               {"MD-15: after the timeout", goneBut(deletedSince(time.Minute), tried), nil},
		"tried again":            {"MD-15: until the timeout", goneBut(deletedSince(4*time.Second), tried), []string{"do: delete Node n: its Machine is deleted", "wait: Waiting for Node n to be deleted", "recheck: 6s"}},
		"forever": {"MD-15: 0 is never", goneBut(deletedSince(time.Hour), tried, func(s *snapshot) { s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0) }),
			[]string{"do: delete Node n: its Machine is deleted", "wait: Waiting for Node n to be deleted"}},
		"held": {"MD-15: a finalizer of another party, and what ends the wait", goneBut(deletedSince(time.Hour), tried, func(s *snapshot) {
			s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0)
			s.Node.Item.DeletionTimestamp, s.Node.Item.Finalizers = ptr.To(metav1.NewTime(now)), []string{"example.com/inventory"}
		}), []string{"do: delete Node n: its Machine is deleted", "wait: Waiting for Node n to be deleted; blocked by finalizers, which their owners have to remove: " +
			"Node n, deleted at " + now.UTC().Format(time.RFC3339) + ", by example.com/inventory; a spec.deletion.nodeDeletionTimeoutSeconds above 0 ends the wait, too"}},
		"own timeout":      {"MD-15", goneBut(deletedSince(4*time.Second), func(s *snapshot) { s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](60) }), []string{"do: delete Node n: its Machine is deleted", "wait: Waiting for Node n to be deleted", "recheck: 56s"}},
		"busy":             {"MD-15: asked again soon", goneBut(down), []string{"wait: Node n cannot be deleted while the workload cluster does not answer", "recheck: 5s"}},
		"not connected":    {"MD-15: waits until the timeout", goneBut(down, func(s *snapshot) { s.Connection = slipwayworkload.Health{} }), []string{"wait: Node n cannot be deleted while the workload cluster does not answer", "recheck: 10s"}},
		"never connected":  {"MD-15: given up", goneBut(down, deletedSince(time.Minute)), nil},
		"pool Machine":     {"MP-07: has no bootstrap config", settled(ofPool, deleted, external, drained, func(s *snapshot) { s.Infra = contract.InfraMachineView{} }), deleteNode},
		"no bootstrap ref": {"MD-14: what is missing is not missed", settled(deleted, noProviders, noNode), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			if diff := cmp.Diff(tc.want, texts(p)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, w := range p.Waits {
				if len(w.On) == 0 || w.Until == "" {
					t.Errorf("what is waited for, and what ends it, is not said: %+v", w)
				}
			}
		})
	}
}
