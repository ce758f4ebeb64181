package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	mark        = clusterv1.UpdateInProgressAnnotation
	updateHooks = runtimev1.PendingHooksAnnotation
)

func yes() *bool { b := true; return &b }

func updateObject(kind, name string, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"memory": int64(2)}}}
	u.SetAPIVersion("example.org/v1")
	u.SetKind(kind)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetAnnotations(annotations)
	return u
}

// running is a Machine that is updated in place and has all it needs.
func running(changes ...func(*inPlaceUpdate)) inPlaceUpdate {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Annotations: map[string]string{mark: "", updateHooks: "UpdateMachine"}}}
	name := "data"
	m.Spec.ClusterName, m.Spec.Bootstrap.DataSecretName = "c", &name
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: "FooMachine", Name: "i"}
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: "FooConfig", Name: "b"}
	m.Status.Initialization.InfrastructureProvisioned, m.Status.NodeRef.Name = yes(), "n"
	u := inPlaceUpdate{Machine: m, Enabled: true}
	u.see(updateObject("FooMachine", "i", map[string]string{mark: ""}), updateObject("FooConfig", "b", map[string]string{mark: ""}))
	for _, change := range changes {
		change(&u)
	}
	return u
}

func (u *inPlaceUpdate) see(infra, bootstrap *unstructured.Unstructured) {
	role := reference.Role{Owner: clusterv1.GroupVersion.WithKind("Machine"), Name: "x"}
	u.Infrastructure = reference.Link{Role: role, From: u.Machine, Ref: u.Machine.Spec.InfrastructureRef, View: contract.InfraMachine(contract.Object{Unstructured: infra, Contract: contract.V1Beta2})}
	u.Bootstrap = reference.Link{Role: role, From: u.Machine, Ref: u.Machine.Spec.Bootstrap.ConfigRef, View: contract.BootstrapConfig(contract.Object{Unstructured: bootstrap, Contract: contract.V1Beta2})}
}

func updateAnnotated(annotations map[string]string) func(*inPlaceUpdate) {
	return func(u *inPlaceUpdate) { u.Machine.Annotations = annotations }
}

func progress(p inplace.Progress) func(*inPlaceUpdate) {
	return func(u *inPlaceUpdate) { u.Progress = &p }
}

func updateTexts(p reconciler.Plan) []string {
	var out []string
	for _, q := range p.Reads {
		out = append(out, "ask: "+q.String())
	}
	for _, a := range p.Actions {
		out = append(out, "do: "+a.String())
	}
	for _, w := range p.Waits {
		out = append(out, "wait for "+string(w.Until)+": "+w.Message)
	}
	if p.Recheck > 0 {
		out = append(out, "recheck: "+p.Recheck.String())
	}
	return out
}

func TestUpdateDecide(t *testing.T) { // IP-05, IP-06
	const updating, failed = clusterv1.MachineInPlaceUpdatingReason, clusterv1.MachineInPlaceUpdateFailedReason
	none := condition.False(clusterv1.MachineNotUpdatingReason, "")
	for name, tc := range map[string]struct {
		update  inPlaceUpdate
		want    []string
		verdict condition.Result
	}{
		"no update":               {running(updateAnnotated(nil)), nil, none},
		"another hook is pending": {running(updateAnnotated(map[string]string{updateHooks: "AfterSomething"})), nil, none},
		"moved": {running(updateAnnotated(map[string]string{mark: "", clusterv1.PendingAcknowledgeMoveAnnotation: ""})),
			[]string{"wait for change: Waiting for the MachineDeployment to acknowledge the Machine in its MachineSet"},
			condition.TrueBecause(updating, "Waiting for the MachineDeployment to acknowledge the Machine in its MachineSet")},
		"triggered in part": {running(updateAnnotated(map[string]string{mark: ""})),
			[]string{"wait for change: Waiting for the owner of the Machine to write its desired state"},
			condition.TrueBecause(updating, "Waiting for the owner of the Machine to write its desired state")},
		"not called yet": {running(), []string{"ask: how far the extension is with the in-place update"}, condition.TrueBecause(updating, "In-place update in progress")},
		"the gate is off": {running(func(u *inPlaceUpdate) { u.Enabled = false }),
			[]string{"wait for person: The feature gate InPlaceUpdates is off: turn it on again, or delete the Machine"},
			condition.TrueBecause(updating, "The feature gate InPlaceUpdates is off: turn it on again, or delete the Machine")},
		"no infrastructure": {running(func(u *inPlaceUpdate) { u.see(nil, nil) }),
			[]string{"wait for person: FooMachine i does not exist: restore it, or delete the Machine"},
			condition.TrueBecause(failed, "In-place update cannot be made: FooMachine i does not exist: restore it, or delete the Machine")},
		"not provisioned": {running(func(u *inPlaceUpdate) { u.Machine.Status.Initialization.InfrastructureProvisioned = nil }),
			[]string{"wait for change: Waiting for the infrastructure to be provisioned"}, condition.TrueBecause(updating, "Waiting for the infrastructure to be provisioned")},
		"no bootstrap data": {running(func(u *inPlaceUpdate) { u.Machine.Spec.Bootstrap.DataSecretName = nil }),
			[]string{"wait for change: Waiting for the bootstrap data Secret to be created"}, condition.TrueBecause(updating, "Waiting for the bootstrap data Secret to be created")},
		"no Node": {running(func(u *inPlaceUpdate) { u.Machine.Status.NodeRef.Name = "" }),
			[]string{"wait for change: Waiting for the Node to be found"}, condition.TrueBecause(updating, "Waiting for the Node to be found")},
		"the cache shows the bootstrap config as it was": {running(func(u *inPlaceUpdate) {
			u.see(updateObject("FooMachine", "i", map[string]string{mark: ""}), updateObject("FooConfig", "b", nil))
		}),
			[]string{"wait for change: Waiting for FooConfig b to be written by the owner of the Machine"},
			condition.TrueBecause(updating, "Waiting for FooConfig b to be written by the owner of the Machine")},
		"the bootstrap config is gone": {running(func(u *inPlaceUpdate) { u.see(updateObject("FooMachine", "i", map[string]string{mark: ""}), nil) }),
			[]string{"ask: how far the extension is with the in-place update"}, condition.TrueBecause(updating, "In-place update in progress")},
		"in progress": {running(progress(inplace.Progress{Handler: "h.x", Message: "growing", Retry: 7 * time.Second})),
			[]string{"wait for time: In-place update in progress: growing", "recheck: 7s"}, condition.TrueBecause(updating, "In-place update in progress: growing")},
		"in progress, without a message": {running(progress(inplace.Progress{Handler: "h.x", Retry: time.Second})),
			[]string{"wait for time: In-place update in progress: handler h.x has more to do", "recheck: 1s"},
			condition.TrueBecause(updating, "In-place update in progress: handler h.x has more to do")},
		"not callable yet": {running(progress(inplace.Progress{CallAfter: time.Second})),
			[]string{"wait for time: Waiting for the extension to be callable", "recheck: 1s"}, condition.TrueBecause(updating, "Waiting for the extension to be callable")},
		"failed": {running(progress(inplace.Progress{Handler: "h.x", Problem: fault.New(fault.Transient, "X", "handler h.x: responded with status Failure: no")})),
			[]string{"wait for time: In-place update failed: handler h.x: responded with status Failure: no; retrying", "recheck: 30s"},
			condition.TrueBecause(failed, "In-place update failed: handler h.x: responded with status Failure: no; retrying")},
		"done": {running(progress(inplace.Progress{Handler: "h.x", Done: true})),
			[]string{"do: end the in-place update: handler h.x is done"}, condition.TrueBecause(updating, "In-place update in progress")},
		"what is left": {running(updateAnnotated(map[string]string{updateHooks: "A,UpdateMachine"})), []string{
			"do: unmark FooMachine i: its Machine is not updating in place any more",
			"do: unmark FooConfig b: its Machine is not updating in place any more",
			"do: remove the pending hook UpdateMachine: the Machine is not updating in place any more",
		}, none},
		"being deleted": {running(func(u *inPlaceUpdate) { now := metav1.Now(); u.Machine.DeletionTimestamp = &now }),
			[]string{"ask: how far the extension is with the in-place update"}, none}, // the controller does not ask it of such a Machine
	} {
		t.Run(name, func(t *testing.T) {
			var p reconciler.Plan
			tc.update.Decide(&p)
			if diff := cmp.Diff(tc.want, updateTexts(p)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.verdict, tc.update.Verdict()); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUpdateEveryWriteFailsOnce: an update ends, whichever of its writes fails; marks of the objects are gone before the hook is, and other
// hooks stay.
func TestUpdateEveryWriteFailsOnce(t *testing.T) { // IP-08
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for failing := range 5 {
		start := running(updateAnnotated(map[string]string{mark: "", updateHooks: "A,UpdateMachine"}))
		writes, refused := 0, errors.New("refused")
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(start.Machine, updateObject("FooMachine", "i", map[string]string{mark: "", "x": "y"}), updateObject("FooConfig", "b", map[string]string{mark: ""})).
			WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if writes++; writes == failing {
					return refused
				}
				return w.Patch(ctx, o, p, opts...)
			}}).Build()
		var log []string
		for range 12 {
			u := running(progress(inplace.Progress{Handler: "h.x", Done: true}))
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(start.Machine), u.Machine); err != nil {
				t.Fatal(err)
			}
			infra, bootstrap := updateObject("FooMachine", "i", nil), updateObject("FooConfig", "b", nil)
			if err := errors.Join(c.Get(t.Context(), client.ObjectKeyFromObject(infra), infra), c.Get(t.Context(), client.ObjectKeyFromObject(bootstrap), bootstrap)); err != nil {
				t.Fatal(err)
			}
			u.see(infra, bootstrap)
			if inplace.StateOf(u.Machine) == inplace.None && (inplace.IsMarked(infra) || inplace.IsMarked(bootstrap)) {
				t.Fatal("the hook is gone, and a mark is not")
			}
			var p reconciler.Plan
			if u.Decide(&p); p.Idle() {
				break
			}
			for _, a := range p.Actions {
				handled, err := u.Act(t.Context(), kube.NewWriter(c, "machine"), a)
				if !handled {
					t.Fatalf("unknown: %s", a)
				}
				if log = append(log, a.String()); err != nil {
					if !errors.Is(err, refused) {
						t.Fatal(err)
					}
					break
				}
			}
		}
		var m clusterv1.Machine
		infra, bootstrap := updateObject("FooMachine", "i", nil), updateObject("FooConfig", "b", nil)
		err := errors.Join(c.Get(t.Context(), client.ObjectKeyFromObject(start.Machine), &m), c.Get(t.Context(), client.ObjectKeyFromObject(infra), infra),
			c.Get(t.Context(), client.ObjectKeyFromObject(bootstrap), bootstrap))
		if err != nil {
			t.Fatal(err)
		}
		got := []map[string]string{m.Annotations, infra.GetAnnotations(), bootstrap.GetAnnotations()}
		if diff := cmp.Diff([]map[string]string{{updateHooks: "A"}, {"x": "y"}, nil}, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("write %d fails, after %q (-want +got):\n%s", failing, log, diff)
		}
	}
}
