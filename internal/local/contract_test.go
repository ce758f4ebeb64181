package local

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/cluster"
	"github.com/slipwayhq/slipway/internal/local/machine"
	"github.com/slipwayhq/slipway/internal/local/machinepool"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// What the controllers report is read here as the core reads it: through the contracts.

func seen(t *testing.T, o runtime.Object) contract.Object {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return contract.Object{Unstructured: &unstructured.Unstructured{Object: fields}, Contract: contract.V1Beta2}
}

func checkCommon(t *testing.T, o contract.Object) {
	t.Helper()
	c, ok := o.Ready().Get()
	if !ok || c.Status != metav1.ConditionTrue || c.Reason == "" || c.LastTransitionTime.IsZero() || c.ObservedGeneration != 7 {
		t.Errorf("CT-07: Ready is %+v, found %v", c, ok)
	}
	if f := o.Failure(); f != (contract.Failure{}) {
		t.Errorf("CT-08: there are no terminal failures; got %+v", f)
	}
}

var then = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestInfraClusterContract(t *testing.T) { // IC-01 to IC-05
	o := &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Generation: 7}}
	o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "172.16.0.1", Port: 6443}
	o.Spec.FailureDomains = []clusterv1.FailureDomain{{Name: "a"}}
	s := cluster.Snapshot{Object: o, Cluster: &clusterv1.Cluster{}, Now: then,
		Network: &backend.Network{Name: "n", Subnet: netip.MustParsePrefix("172.16.0.0/18"), Gateway: netip.MustParseAddr("172.16.0.1")}}
	o.Status = cluster.Report(s, cluster.Decide(s), reconciler.Outcome{}).Status.(infrav1.LocalClusterStatus)
	v := contract.InfraCluster(seen(t, o))
	checkCommon(t, v.Object)
	if e := v.ControlPlaneEndpoint.Or(contract.Endpoint{}); !v.Provisioned.Or(false) || e != (contract.Endpoint{Host: "172.16.0.1", Port: 6443}) {
		t.Errorf("got %+v, %+v", v.Provisioned, e)
	}
	if diff := cmp.Diff(o.Spec.FailureDomains, v.FailureDomains.Or(nil)); diff != "" {
		t.Errorf("IC-03 (-want +got):\n%s", diff)
	}
}

func TestInfraMachineContract(t *testing.T) { // IM-01 to IM-06, IM-12
	o := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Generation: 7}}
	o.Spec.ProviderID, o.Spec.FailureDomain = backend.ProviderID("n"), "a"
	s := machine.Snapshot{Object: o, Name: "n", Now: then, Progress: &backend.Progress{Phase: backend.Succeeded},
		HostMachine: backend.Machine{Name: "n", ID: "i", State: backend.Running, Hostname: "m", Address: netip.MustParseAddr("172.16.0.2")}}
	o.Status = machine.Report(s, machine.Decide(s), reconciler.Outcome{}).Status.(infrav1.LocalMachineStatus)
	v := contract.InfraMachine(seen(t, o))
	checkCommon(t, v.Object)
	if !v.Provisioned.Or(false) || v.ProviderID.Or("") != "slipway:///n" || v.FailureDomain.Or("") != "a" {
		t.Errorf("got %+v, %+v, %+v", v.Provisioned, v.ProviderID, v.FailureDomain)
	}
	want := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: "m"}, {Type: clusterv1.MachineInternalIP, Address: "172.16.0.2"}}
	if diff := cmp.Diff(want, v.Addresses.Or(nil)); diff != "" {
		t.Errorf("IM-04 (-want +got):\n%s", diff)
	}
	if v.Interruptible.Presence() != contract.Missing {
		t.Errorf("IM-12: containers are not taken away; got %+v", v.Interruptible)
	}
}

func TestInfraMachinePoolContract(t *testing.T) { // IP2-01 to IP2-08
	yes, one := true, int32(1)
	m := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	m.Spec.ProviderID = backend.ProviderID("n")
	m.Status.Initialization.Provisioned = &yes
	m.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready"}}
	o := &infrav1.LocalMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Generation: 7}}
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: infrav1.GroupVersion.String(), Kind: "LocalMachinePool", Name: "p", UID: "u"}}
	o.Spec.ProviderID, o.Spec.ProviderIDList = "slipway:///ns/p", []string{"slipway:///n"}
	pool := &clusterv1.MachinePool{}
	pool.Spec.Replicas, o.Status.Replicas = &one, &one
	s := machinepool.Snapshot{Object: o, Pool: pool, Members: []machinepool.PoolMember{{Local: m}}, Live: true, Now: then}
	plan := machinepool.Decide(s)
	if !plan.Idle() {
		t.Fatalf("the list is right and nothing is to be done; got %v", plan)
	}
	o.Status = machinepool.Report(s, plan, reconciler.Outcome{}).Status.(infrav1.LocalMachinePoolStatus)
	v := contract.InfraMachinePool(seen(t, o))
	checkCommon(t, v.Object)
	if !v.Provisioned.Or(false) || v.Replicas.Or(0) != 1 || v.MachineKind.Or("") != "LocalMachine" || len(v.ProviderIDList.Or(nil)) != 1 {
		t.Errorf("got %+v", v)
	}
	older := v.Object
	older.Contract = contract.V1Beta1
	if !contract.InfraMachinePool(older).Provisioned.Or(false) {
		t.Error("IP2-06: the field that the reference implementation reads is set too")
	}
}
