package machinepool

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/test/testkit"
)

func TestNewMachine(t *testing.T) { // MP-07
	s := settled(withMachines, func(s *snapshot) {
		s.Pool.Spec.Template.Labels = map[string]string{"a": "b"}
		s.Pool.Spec.FailureDomains = []string{"one"} // MP-17: the infrastructure's to use, not the Machines'
	})
	m := newMachine(s, createMachine{Name: "m0", Kind: "FooMachine"})
	if m.Name != "m0" || *m.Spec.Bootstrap.DataSecretName != "" || m.Spec.Bootstrap.ConfigRef.Name != "" || m.Spec.FailureDomain != "" {
		t.Errorf("%+v", m.Spec)
	}
	if owner := metav1.GetControllerOf(m); owner == nil || owner.UID != "pool" {
		t.Errorf("owner %v", owner)
	}
	want := map[string]string{"a": "b", clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p"}
	if diff := cmp.Diff(want, m.Labels); diff != "" {
		t.Error(diff)
	}
	if m.Spec.InfrastructureRef != (clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachine", Name: "m0"}) {
		t.Errorf("%+v", m.Spec.InfrastructureRef)
	}
}

// edit changes an object as a person would who tries again when that fails.
func edit[O client.Object](t *testing.T, c client.Client, o O, change func(O)) {
	t.Helper()
	for range 3 {
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		change(o)
		err := c.Update(context.Background(), o, client.FieldOwner("somebody"))
		if err == nil {
			return
		}
		if !errors.Is(err, testkit.ErrInjected) {
			t.Fatal(err)
		}
	}
}

func named[O client.Object](o O, name string) O {
	o.SetNamespace("ns")
	o.SetName(name)
	return o
}

// changed gives the template of the pool everything that Machines follow in place.
func changed(p *clusterv1.MachinePool) {
	template := &p.Spec.Template
	template.Labels, template.Annotations = map[string]string{"a": "b", "node-role.kubernetes.io/x": ""}, map[string]string{"c": "d"}
	template.Spec.Deletion.NodeDrainTimeoutSeconds, template.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = ptr.To[int32](60), ptr.To[int32](61)
	template.Spec.Deletion.NodeDeletionTimeoutSeconds, template.Spec.MinReadySeconds = ptr.To[int32](62), ptr.To[int32](5)
	template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Checked"}}
	template.Spec.Taints = []clusterv1.MachineTaint{{Key: "t", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways}}
}

// inPlace is what of a Machine follows the template.
func inPlace(m clusterv1.Machine) clusterv1.Machine {
	out := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: m.Labels, Annotations: m.Annotations}}
	out.Spec.Deletion, out.Spec.MinReadySeconds = m.Spec.Deletion, m.Spec.MinReadySeconds
	out.Spec.ReadinessGates, out.Spec.Taints = m.Spec.ReadinessGates, m.Spec.Taints
	return out
}

func machinesOf(t *testing.T, c client.Client) []clusterv1.Machine {
	t.Helper()
	list := &clusterv1.MachineList{}
	if err := c.List(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 {
		t.Fatalf("%d Machines", len(list.Items))
	}
	return list.Items
}

// Machines follow the template in place, and what others said of them stays.
func TestMachinesFollowTheTemplate(t *testing.T) { // MP-07
	wanted := &clusterv1.MachinePool{}
	changed(wanted)
	testkit.FailEachWrite(t, world, func(t *testing.T, c client.WithWatch) {
		settle(t, c)
		edit(t, c, named(&clusterv1.Machine{}, "m0"), func(m *clusterv1.Machine) { m.Labels["theirs"] = "stays" })
		edit(t, c, named(&clusterv1.MachinePool{}, "p"), changed)
		settle(t, c)
		for _, m := range machinesOf(t, c) {
			want := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"c": "d"}, Labels: map[string]string{
				"a": "b", "node-role.kubernetes.io/x": "", clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p",
			}}, Spec: wanted.Spec.Template.Spec}
			if m.Name == "m0" {
				want.Labels["theirs"] = "stays"
			}
			if diff := cmp.Diff(want, inPlace(m)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", m.Name, diff)
			}
		}
		edit(t, c, named(&clusterv1.MachinePool{}, "p"), func(p *clusterv1.MachinePool) {
			before := settled().Pool.Spec.Template
			before.Spec.Bootstrap, before.Labels = p.Spec.Template.Spec.Bootstrap, map[string]string{"a": "new"}
			p.Spec.Template = before
		})
		settle(t, c)
		for _, m := range machinesOf(t, c) {
			want := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
				"a": "new", clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p",
			}}}
			if m.Name == "m0" {
				want.Labels["theirs"] = "stays"
			}
			want.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](10)
			if diff := cmp.Diff(want, inPlace(m)); diff != "" {
				t.Errorf("%s, what the template has no more (-want +got):\n%s", m.Name, diff)
			}
			if m.Spec.InfrastructureRef.Kind != "FooMachine" || text(m.Spec.Bootstrap.DataSecretName) != "" || metav1.GetControllerOf(&m) == nil || len(m.Finalizers) != 1 {
				t.Errorf("%s lost what it was created with: %+v", m.Name, m)
			}
		}
	})
}

// A change of the template is one write for each Machine, and no change is none.
func TestOneWriteForEachMachine(t *testing.T) { // MP-07
	writes := map[string]int{}
	c := world().WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if o.GetObjectKind().GroupVersionKind().Kind == "Machine" {
				writes[o.GetName()]++
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	settle(t, c)
	clear(writes)
	edit(t, c, named(&clusterv1.MachinePool{}, "p"), changed)
	settle(t, c)
	if diff := cmp.Diff(map[string]int{"m0": 1, "m1": 1}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	clear(writes)
	settle(t, c)
	if len(writes) > 0 {
		t.Errorf("nothing has changed: %v", writes)
	}
}

// Machines of an earlier version, and of the reference implementation, follow as well, also where a label goes.
func TestMachinesOfOthersFollow(t *testing.T) { // MP-07
	testkit.FailEachWrite(t, world, func(t *testing.T, c client.WithWatch) {
		s := settled(withMachines, func(s *snapshot) { s.Pool.Spec.Template.Labels = map[string]string{"old": "x"} })
		for range 2 { // the first may fail
			earlier := newMachine(s, createMachine{Name: "m0", Kind: "FooMachine"})
			if err := c.Create(context.Background(), earlier, client.FieldOwner(fieldManager)); client.IgnoreAlreadyExists(err) != nil && !errors.Is(err, testkit.ErrInjected) {
				t.Fatal(err)
			}
			reference, err := machines.Applied(newMachine(s, createMachine{Name: "m1", Kind: "FooMachine"}))
			if err != nil {
				t.Fatal(err)
			}
			err = c.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(reference), client.FieldOwner(referenceManager))
			if err != nil && !errors.Is(err, testkit.ErrInjected) {
				t.Fatal(err)
			}
		}
		edit(t, c, named(&clusterv1.MachinePool{}, "p"), func(p *clusterv1.MachinePool) { p.Spec.Template.Labels = map[string]string{"new": "y"} })
		settle(t, c)
		for _, m := range machinesOf(t, c) {
			want := map[string]string{"new": "y", clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p"}
			if diff := cmp.Diff(want, m.Labels); diff != "" {
				t.Errorf("%s (-want +got):\n%s", m.Name, diff)
			}
		}
	})
}
