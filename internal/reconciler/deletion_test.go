package reconciler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// doomed is a Machine that is being deleted.
func doomed(t *testing.T, window time.Duration) *paced {
	t.Helper()
	p := newPaced(t)
	p.r.writes.Interval = window
	p.doom()
	p.act = func() error { return nil }
	return p
}

// doom begins the deletion of the Machine, which waits for a finalizer.
func (p *paced) doom() {
	p.t.Helper()
	p.r.Finalizer = "test/finalizer"
	m := &clusterv1.Machine{}
	if err := p.client.Get(p.t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, m); err != nil {
		p.t.Fatal(err)
	}
	m.Finalizers = []string{"test/finalizer"}
	if err := p.client.Update(p.t.Context(), m); err != nil {
		p.t.Fatal(err)
	}
	if err := p.client.Delete(p.t.Context(), m); err != nil {
		p.t.Fatal(err)
	}
}

func (p *paced) isGone() bool {
	p.t.Helper()
	err := p.client.Get(p.t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, &clusterv1.Machine{})
	if client.IgnoreNotFound(err) != nil {
		p.t.Fatal(err)
	}
	return apierrors.IsNotFound(err)
}

// once makes a pass after some time.
func (p *paced) once(later time.Duration) {
	p.t.Helper()
	p.now = p.now.Add(later)
	if _, err := p.r.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}}); err != nil {
		p.t.Fatal(err)
	}
}

// TestEventsOfAShortDeletion: what is over before its status is written still tells what was done.
func TestEventsOfAShortDeletion(t *testing.T) { // MD-11, MD-16, FG-03
	p := doomed(t, time.Second)
	p.actions, p.events = []Action{touch{}}, []Event{Normal("SuccessfulDrainNode", "the Node is drained")}
	p.status.Phase = "Deleting"
	p.once(0)
	if p.isGone() || p.recorded() != nil {
		t.Error("the events wait for it, too")
	}
	p.actions, p.events, p.status.Phase = nil, nil, "Deleted"
	p.once(time.Millisecond)
	if !p.isGone() || p.writes != 0 {
		t.Errorf("MD-16: the finalizer does not wait for a status that nobody will read: %d writes", p.writes)
	}
	if diff := cmp.Diff([]string{"Normal SuccessfulDrainNode the Node is drained"}, p.recorded()); diff != "" {
		t.Errorf("MD-11: events (-want +got):\n%s", diff)
	}
}

// TestLastStatus: where nothing is paced, the last status is written before the finalizer goes.
func TestLastStatus(t *testing.T) { // MD-16
	p := doomed(t, 0)
	p.status.Conditions = []metav1.Condition{{Type: "Deleting", Status: "True", Reason: "DeletionCompleted", LastTransitionTime: metav1.NewTime(p.now)}}
	p.once(0)
	m := &clusterv1.Machine{}
	if err := p.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, m); err != nil || len(m.Status.Conditions) == 0 ||
		m.Status.Conditions[0].Reason != "DeletionCompleted" {
		t.Fatalf("whoever watches sees the end: %v %+v", err, m.Status)
	}
	p.once(time.Millisecond)
	if !p.isGone() || p.writes != 1 {
		t.Errorf("MD-16: then the finalizer goes: %d writes", p.writes)
	}
}
