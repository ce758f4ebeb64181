package machine

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testhost"
)

// A backend that the controller has never heard of is taken through the whole life of a machine by its facts alone.
func TestThirdBackend(t *testing.T) { // IM-02, IM-05, IM-11
	at := now
	clock := func() time.Time { return at }
	host := &testhost.VMHost{BootDuration: 20 * time.Second, Now: clock, Machines: map[types.NamespacedName]*testhost.VMMachine{}}
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithReturnManagedFields().WithStatusSubresource(&infrav1.LocalMachine{}).
		WithObjects(localMachine(nil), coreMachine(nil), coreCluster(nil), bootSecret()).Build()
	ctl := &controller{client: c, secrets: c, Config: Config{Backends: backend.Set{infrav1.ContainerBackend: host.Backend()}, Instance: "i", Policy: allowed()}, now: clock, writer: kube.NewWriter(c, Name)}
	r := &reconciler.Reconciler[*infrav1.LocalMachine, snapshot]{Controller: ctl.definition(), Client: c, Writer: ctl.writer, Now: clock}
	var again time.Duration
	reconcile := func() {
		t.Helper()
		for range 6 { // a fixed point lies well below
			result, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
			if err != nil {
				t.Fatal(err)
			}
			again = result.RequeueAfter
		}
	}
	type state struct {
		Provisioned, Bootstrapped string
		Instance                  string
		Initialized               bool
	}
	said := func() state {
		t.Helper()
		reconcile()
		o := &infrav1.LocalMachine{}
		if err := c.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
		set := condition.Set(o.Status.Conditions)
		return state{set.Get(infrav1.MachineProvisionedCondition).Reason, set.Get(infrav1.BootstrapExecSucceededCondition).Reason, o.Status.InstanceID, ptr.Deref(o.Status.Initialization.Provisioned, false)}
	}
	step := func(reason string, want state) {
		t.Helper()
		if d := cmp.Diff(want, said()); d != "" {
			t.Errorf("%s (-want +got):\n%s", reason, d)
		}
	}
	step("it starts", state{"Booting", "WaitingForMachine", "vm-" + name, false})
	if again != host.BootDuration {
		t.Errorf("no event tells when it has started: again in %s", again)
	}
	at = at.Add(host.BootDuration)
	step("it has started: the bootstrap data runs", state{"MachineRunning", "Bootstrapping", "vm-" + name, false})
	if again == 0 {
		t.Error("no event tells when its bootstrap has ended")
	}
	vm := host.Machines[types.NamespacedName(key)]
	vm.Phase = backend.Interrupted
	reconcile()
	if other := host.Machines[types.NamespacedName(key)]; other == vm || vm.Scripts != 1 {
		t.Errorf("an interrupted bootstrap is begun again on a new machine: %+v", other)
	}
	at = at.Add(host.BootDuration)
	reconcile()
	host.Machines[types.NamespacedName(key)].Phase = backend.Succeeded
	step("it is a node", state{"MachineRunning", "BootstrapSucceeded", "vm-" + name, true})
	delete(host.Machines, types.NamespacedName(key))
	step("it is lost, which is said and not repaired", state{"MachineRemoved", "BootstrapSucceeded", "vm-" + name, true})
	if len(host.Machines) != 0 {
		t.Error("a provisioned machine is never created again")
	}
	host.Machines[types.NamespacedName(key)] = vm
	o := localMachine(nil)
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if err := c.Get(t.Context(), key, o); !apierrors.IsNotFound(err) || len(host.Machines) != 0 {
		t.Errorf("it goes with its object: %v, %v", err, host.Machines)
	}
}

// A backend that this process does not offer is said, and holds nothing up but its machines.
func TestBackendNotOffered(t *testing.T) {
	_, err := backend.Set{}.Choose(infrav1.SimulatedBackend, nil)
	if f := fault.As(err); f == nil || f.Kind != fault.Unreachable || f.Reason != "BackendNotOffered" {
		t.Errorf("got %v", err)
	}
}

// LocalMachines that the release before stored have other conditions and no instanceID, since the API server leaves out a
// field that it does not know. Nothing is created, restarted or deleted for them, whether the host answers or not.
func TestStoredByTheReleaseBefore(t *testing.T) {
	w := newWorld(t, localMachine(withID), coreMachine(nil), coreCluster(nil), localCluster(), bootSecret())
	w.host.AddMachine(testhost.Machine{Machine: host(backend.Running), Instance: testhost.Instance})
	stored := infrav1.LocalMachineStatus{Initialization: infrav1.LocalMachineInitializationStatus{Provisioned: &yes}, Conditions: []metav1.Condition{
		{Type: "ContainerProvisioned", Status: "True", Reason: "ContainerRunning", LastTransitionTime: metav1.NewTime(now)},
		{Type: infrav1.BootstrapExecSucceededCondition, Status: "True", Reason: "BootstrapSucceeded", LastTransitionTime: metav1.NewTime(now)},
	}}
	if err := w.writer.ApplyStatus(t.Context(), w.get(t), stored); err != nil {
		t.Fatal(err)
	}
	read := func() (*infrav1.LocalMachine, string) {
		t.Helper()
		for range 2 {
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
		}
		o := w.get(t)
		c := condition.Set(o.Status.Conditions).Get(infrav1.MachineProvisionedCondition)
		return o, string(c.Status) + "/" + c.Reason
	}
	w.host.SetUnreachable(down)
	if _, c := read(); c != "Unknown/DockerUnreachable" {
		t.Errorf("a machine that was provisioned may well run while Docker does not respond; got %s", c)
	}
	w.host.SetUnreachable(nil)
	o, c := read()
	if c != "True/MachineRunning" || o.Status.InstanceID != "id" || !condition.Set(o.Status.Conditions).IsTrue(clusterv1.ReadyCondition) {
		t.Errorf("got %s, %+v", c, o.Status)
	}
	if len(w.host.Log()) != 0 {
		t.Errorf("the machine is left as it is; got %v", w.host.Log())
	}
	if c := condition.Set(o.Status.Conditions).Get("ContainerProvisioned"); c != nil {
		t.Errorf("what the release before said goes: %+v", c)
	}
}
