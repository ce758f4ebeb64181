package machines

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/kstatus"
)

// What the controller reports is read here as the core reads it: through the contracts.

const claim = "aaaaaaaaaaaaaaaaaaaaaaaaaa"

var then = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

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

// machine is an SSHMachine on a host in a state.
func machine(state infrav1.SSHHostState, progress remote.BootstrapState) snapshot {
	o := &infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Generation: 7}}
	o.Spec.ClaimID, o.Spec.ProviderID = claim, "ssh://"+claim
	h := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "h"}}
	h.Spec.Address, h.Spec.FailureDomain, h.Spec.Interruptible = "192.0.2.1", "rack-1", ptr.To(true)
	h.Status.State, h.Status.ConfirmedClaimID, h.Status.Facts.Hostname = state, claim, "h"
	h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "ns", Name: "m", ClaimID: claim}
	cluster := &clusterv1.Cluster{}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	return snapshot{Object: o, Host: h, Machine: &clusterv1.Machine{}, Cluster: cluster, Now: then, Progress: &remote.Progress{State: progress}}
}

func reported(s snapshot) *infrav1.SSHMachine {
	s.Object.Status = report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.SSHMachineStatus)
	return s.Object
}

func TestInfraMachineContract(t *testing.T) { // IM-01 to IM-06, IM-12
	o := reported(machine(infrav1.SSHHostPreparing, remote.BootstrapDone))
	v := contract.InfraMachine(seen(t, o))
	checkCommon(t, v.Object)
	if !v.Provisioned.Or(false) || v.ProviderID.Or("") != "ssh://"+claim || v.FailureDomain.Or("") != "rack-1" || !v.Interruptible.Or(false) {
		t.Errorf("got %+v, %+v, %+v, %+v", v.Provisioned, v.ProviderID, v.FailureDomain, v.Interruptible)
	}
	want := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: "h"}, {Type: clusterv1.MachineInternalIP, Address: "192.0.2.1"}}
	if diff := cmp.Diff(want, v.Addresses.Or(nil)); diff != "" {
		t.Errorf("IM-04 (-want +got):\n%s", diff)
	}
	if got := kstatus.Compute(t, o); got != kstatus.Current {
		t.Errorf("tools that wait for objects of any kind: %s", got)
	}
}

// The core replaces a machine that failed or is lost without waiting for its Node.
func TestFailuresAreContracts(t *testing.T) {
	if v := contract.InfraMachine(seen(t, reported(machine(infrav1.SSHHostPreparing, remote.BootstrapFailed)))); !v.Failed || v.Provisioned.Or(false) {
		t.Errorf("failed: %+v", v)
	}
	s := machine(infrav1.SSHHostQuarantined, "")
	s.Object.Status.Initialization.Provisioned = ptr.To(true)
	if v := contract.InfraMachine(seen(t, reported(s))); !v.Removed || !v.Provisioned.Or(false) {
		t.Errorf("lost: %+v", v)
	}
	s = machine(infrav1.SSHHostPreparing, remote.BootstrapRunning)
	if got := kstatus.Compute(t, reported(s)); got != kstatus.InProgress {
		t.Errorf("its bootstrap data runs: %s", got)
	}
}
