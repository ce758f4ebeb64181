package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestDecide(t *testing.T) {
	waiting := `status: {initialization: {provisioned: false}}`
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"settled": {"nothing to do", settled(), nil},
		"nothing there": {"CL-06: waits for both, with a timer", fresh(),
			[]string{"wait: Waiting for FooCluster i to be created", "wait: Waiting for FooPlane p to be created", "recheck: 30s"}},
		"not ours": {"CL-04, OR-01: owner and label come first", fresh(func(s *snapshot) {
			v := contract.InfraCluster(object("kind: FooCluster\nmetadata: {name: i}\n"+waiting, contract.V1Beta2))
			s.Infra, s.ControlPlane = v, control("status: {}")
		}), []string{"do: own FooCluster i: it is the Cluster's infrastructure", "wait: Waiting for FooPlane p to report status.initialization.controlPlaneInitialized"}},
		"provisioning": {"CL-08: a watch tells when it is done", fresh(func(s *snapshot) { s.Infra, s.ControlPlane = infra(waiting), control("status: {}") }),
			[]string{"wait: Waiting for FooCluster i to report status.initialization.provisioned", "wait: Waiting for FooPlane p to report status.initialization.controlPlaneInitialized"}},
		"endpoint of infrastructure": {"CL-08: copied while there is none", fresh(func(s *snapshot) { s.Infra, s.ControlPlane = infra(readyInfra), control("status: {}") }),
			[]string{"do: set endpoint h:6443: FooCluster reports it", "wait: Waiting for FooPlane p to report status.initialization.controlPlaneInitialized"}},
		"endpoint of unprovisioned infrastructure": {"CL-08: not copied before it is provisioned", fresh(func(s *snapshot) {
			s.Infra, s.ControlPlane = infra("spec: {controlPlaneEndpoint: {host: h, port: 6443}}\n"+waiting), control(readyControl)
		}), []string{"wait: Waiting for FooCluster i to report status.initialization.provisioned"}},
		"endpoint of control plane": {"CL-09: where the control plane supplies it", settled(func(s *snapshot) {
			s.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
			s.Infra = infra("status: {initialization: {provisioned: true}}")
			s.ControlPlane = control("spec: {controlPlaneEndpoint: {host: k, port: 443}}\nstatus: {initialization: {controlPlaneInitialized: true}}")
		}), []string{"do: set endpoint k:443: FooPlane reports it"}},
		"half an endpoint": {"CL-08: which half is missing", fresh(func(s *snapshot) {
			s.Infra = infra("spec: {controlPlaneEndpoint: {host: h}}\nstatus: {initialization: {provisioned: true}}")
			s.Infra, s.ControlPlane = s.Infra.NeedingEndpoint(), control(readyControl)
		}), []string{"wait: FooCluster i reports what its contract does not allow: field spec.controlPlaneEndpoint: want host and port, have no port"}},
		"endpoint stays": {"CL-08: a valid endpoint is never replaced", settled(func(s *snapshot) {
			s.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "mine", Port: 1}
		}), nil},
		"infrastructure lost": {"CL-06: a person has to say what shall be", settled(func(s *snapshot) { s.Infra = contract.InfraClusterView{} }),
			[]string{"wait: FooCluster i has been deleted while it was in use: restore it, or delete Cluster c"}},
		"control plane lost": {"CL-06", settled(func(s *snapshot) { s.ControlPlane = contract.ControlPlaneView{} }),
			[]string{"wait: FooPlane p has been deleted while it was in use: restore it, or delete Cluster c"}},
		"kind not installed": {"CL-03, CL-06: looked at again later, since nothing can be watched", fresh(func(s *snapshot) {
			s.Infra, s.ControlPlane = contract.InfraCluster(contract.Object{Problem: "install it"}), control(readyControl)
		}),
			[]string{"wait: install it", "recheck: 30s"}},
		"no references": {"CL-07: nothing to wait for", fresh(noControlPlaneRef, func(s *snapshot) {
			s.Cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{}
		}), nil},
		"no certificate authority": {"CL-11: the kubeconfig is made from it", settled(noControlPlaneRef),
			[]string{"wait: Waiting for Secret c-ca to be created: the kubeconfig is issued by it", "recheck: 30s"}},
		"kubeconfig": {"CL-11", settled(noControlPlaneRef, func(s *snapshot) { s.Access.CA = certificateAuthority(nil, nil) }),
			[]string{"do: create Secret c-kubeconfig: the Cluster has no control plane object that would"}},
		"kubeconfig there": {"CL-11: made once", settled(noControlPlaneRef, func(s *snapshot) { s.Access.Kubeconfig = true }), nil},
		"young Machine": {"CL-20: its UpToDate condition is looked for when it is 10 s old", settled(func(s *snapshot) {
			s.Machines = append(s.Machines, machine("new", with(), func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(ago(4 * time.Second)) }))
		}), []string{"recheck: 6s"}},
		"probes fail": {"CL-23: until the grace is over", settled(func(s *snapshot) {
			s.Connection.LastProbeSuccess, s.Connection.ConsecutiveFailures = ago(20*time.Second), 2
		}), []string{"recheck: 30s"}},
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

func TestDecideDeletion(t *testing.T) {
	gone := func(s *snapshot) {
		s.Infra, s.ControlPlane, s.Pools, s.Machines = contract.InfraClusterView{}, contract.ControlPlaneView{}, nil, nil
	}
	going := metav1.NewTime(now)
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"workers first": {"CL-12: everything that nobody else deletes, at once", settled(deleted, func(s *snapshot) {
			s.Deployments = []clusterv1.MachineDeployment{deployment("md")}
			s.Sets = []clusterv1.MachineSet{set("alone"), set("md-1")}
			s.Sets[1].OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "md", Controller: ptr.To(true)}}
			s.Machines = append(s.Machines, machine("single"), machine("cp", ofControlPlane, ownedBy("FooPlane")))
		}), []string{"do: delete MachinePool mp: the Cluster is deleted", "do: delete MachineDeployment md: the Cluster is deleted",
			"do: delete MachineSet alone: the Cluster is deleted", "do: delete Machine single: the Cluster is deleted",
			"wait: * MachinePool: mp\n* MachineDeployment: md\n* MachineSets: alone, md-1\n* Machines: mp-0, single"}},
		"workers go": {"CL-12: waits without deleting twice", settled(deleted, func(s *snapshot) { s.Pools[0].DeletionTimestamp = &going }),
			[]string{"wait: * MachinePool: mp\n* Machine: mp-0"}},
		"many workers": {"CL-14: the list is cut", settled(deleted, func(s *snapshot) {
			s.Pools = nil
			s.Machines = []clusterv1.Machine{machine("a", ownedBy("x")), machine("b", ownedBy("x")), machine("c", ownedBy("x")), machine("d", ownedBy("x"))}
		}), []string{"wait: * Machines: a, b, c, ... (1 more)"}},
		"control plane second": {"CL-12", settled(deleted, gone, func(s *snapshot) { s.Infra, s.ControlPlane = infra(readyInfra), control(readyControl) }),
			[]string{"do: delete FooPlane p: the Cluster is deleted", "wait: * FooPlane: p"}},
		"control plane Machines": {"CL-15: the control plane object deletes them", settled(deleted, gone, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{machine("cp", ofControlPlane)}
		}), []string{"wait: * Machine: cp"}},
		"control plane without object": {"CL-15: here nobody else does", settled(deleted, gone, noControlPlaneRef, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{machine("cp", ofControlPlane)}
		}), []string{"do: delete Machine cp: the Cluster is deleted", "wait: * Machine: cp"}},
		"infrastructure last": {"CL-12", settled(deleted, gone, func(s *snapshot) { s.Infra = infra(readyInfra) }),
			[]string{"do: delete FooCluster i: the Cluster is deleted", "wait: * FooCluster: i"}},
		"infrastructure goes": {"CL-12", settled(deleted, gone, func(s *snapshot) {
			s.Infra = infra(readyInfra)
			s.Infra.SetDeletionTimestamp(&going)
		}), []string{"wait: * FooCluster: i"}},
		"infrastructure held": {"CL-12: the finalizer of another party is named, and since when", settled(deleted, gone, func(s *snapshot) {
			s.Infra = infra(readyInfra)
			s.Infra.SetDeletionTimestamp(&going)
			s.Infra.SetFinalizers([]string{"acme.example.com/ipam"})
		}), []string{"wait: * FooCluster: i; blocked by finalizers, which their owners have to remove: FooCluster i, deleted at " +
			now.UTC().Format(time.RFC3339) + ", by acme.example.com/ipam"}},
		"Machine held": {"CL-15", settled(deleted, gone, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{machine("cp", ofControlPlane)}
			s.Machines[0].DeletionTimestamp, s.Machines[0].Finalizers = &going, []string{clusterv1.MachineFinalizer, "acme.example.com/cmdb"}
		}), []string{"wait: * Machine: cp; blocked by finalizers, which their owners have to remove: Machine cp, deleted at " +
			now.UTC().Format(time.RFC3339) + ", by acme.example.com/cmdb"}},
		"all gone":   {"CL-12, CL-06: nothing left; what is missing is not missed", settled(deleted, gone), nil},
		"unreadable": {"a person has to help", settled(deleted, gone, func(s *snapshot) { s.Infra = contract.InfraCluster(contract.Object{Problem: "no label"}) }), []string{"wait: * no label"}},
		"hook": {"CL-13: nothing is deleted before the hook allows it", settled(deleted, topology, func(s *snapshot) { s.Settings.DeleteHook = true }),
			[]string{"wait: Waiting for the BeforeClusterDelete hook to allow the deletion"}},
		"hook allows": {"CL-13", settled(deleted, gone, topology, func(s *snapshot) {
			s.Settings.DeleteHook = true
			s.Cluster.Annotations = map[string]string{"runtime.cluster.x-k8s.io/ok-to-delete": ""}
		}), nil},
		"no hook": {"CL-13: not where the gates are off", settled(deleted, gone, topology), nil},
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

func topology(s *snapshot) { s.Cluster.Spec.Topology.ClassRef.Name = "class" }
