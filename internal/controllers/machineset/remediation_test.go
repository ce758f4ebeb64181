package machineset

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/test/testkit"
)

// sickSet is a MachineSet of a MachineDeployment with two Machines, both of which shall be replaced, one at a time.
func sickSet() []client.Object {
	one := intstr.FromInt32(1)
	s := settled(with(sick(), sick()), replicas(2), ofDeployment(func(d *clusterv1.MachineDeployment) {
		d.Spec.Replicas, d.Spec.Remediation.MaxInFlight = new(int32(2)), &one
		d.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"set": "x"}}
	}))
	s.Set.Generation, s.Set.Status.ObservedGeneration = 0, 1
	out := []client.Object{s.Set, s.Deployment}
	for _, m := range s.Machines {
		m.Generation = 0
		out = append(out, m.Machine)
	}
	return out
}

// joinConditions applies conditions of a Machine one by one, as an API server does that knows its schema; the fake client
// replaces the whole list.
func joinConditions(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	said := &clusterv1.Machine{}
	data, err := p.Data(o)
	if err == nil {
		err = json.Unmarshal(data, said)
	}
	if err != nil || said.Kind != "Machine" {
		return errors.Join(err, c.SubResource(sub).Patch(ctx, o, p, opts...))
	}
	live := &clusterv1.Machine{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(said), live); err != nil {
		return err
	}
	says(said.Status.Conditions...)(live)
	return c.Status().Update(ctx, live)
}

// TestRemediationWhileWritesFail: every write fails once, and there is never more than one Machine on its way out.
func TestRemediationWhileWritesFail(t *testing.T) { // MS-18, DP-15
	build := func() *fake.ClientBuilder { return managementCluster(sickSet()...) }
	testkit.FailEachWrite(t, build, func(t *testing.T, c client.WithWatch) {
		gone := 0
		w := newWorld(t, interceptor.NewClient(c, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				err := c.Delete(ctx, o, opts...)
				if _, ok := o.(*clusterv1.Machine); ok && err == nil {
					gone++
				}
				return err
			},
			SubResourcePatch: joinConditions,
		}))
		for turn := 1; turn <= 2; turn++ {
			w.settle()
			w.restart() // what is under way is read from the API, not remembered
			w.settle()
			if gone != turn {
				t.Fatalf("%d Machines were deleted when %d may have been", gone, turn)
			}
			w.finish()
		}
		w.settle()
		if gone != 2 {
			t.Errorf("%d Machines were deleted, want the two that were sick", gone)
		}
		machines := w.machines()
		for _, m := range machines {
			if m.Name == "m1" || m.Name == "m2" || !m.DeletionTimestamp.IsZero() {
				t.Errorf("Machine %s is still there, or going", m.Name)
			}
		}
		if len(machines) != 2 {
			t.Errorf("%d Machines in the end, want 2", len(machines))
		}
	})
}
