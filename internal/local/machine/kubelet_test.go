package machine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

func machineWithNode(ready metav1.ConditionStatus) *clusterv1.Machine {
	m := &clusterv1.Machine{Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "n"}}}
	if ready != "" {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineNodeReadyCondition, Status: ready}}
	}
	return m
}

// The kubelet is read only where the Node is not ready: faults W3.
func TestDecideKubelet(t *testing.T) {
	noNode := machineWithNode(metav1.ConditionUnknown)
	noNode.Status.NodeRef = clusterv1.MachineNodeReference{}
	for name, tc := range map[string]struct {
		reason   string
		machine  *clusterv1.Machine
		scripted bool
		known    bool
		read     bool
		recheck  bool
	}{
		"ready":      {"nothing to explain", machineWithNode(metav1.ConditionTrue), true, false, false, false},
		"silent":     {"the kubelet does not report", machineWithNode(metav1.ConditionUnknown), true, false, true, true},
		"not ready":  {"it reports a problem", machineWithNode(metav1.ConditionFalse), true, false, true, true},
		"read":       {"once in a reconciliation", machineWithNode(metav1.ConditionUnknown), true, true, false, true},
		"no Node":    {"the bootstrap explains itself", noNode, true, false, false, false},
		"no Machine": {"nothing is known", nil, true, false, false, false},
		"simulated":  {"there is no kubelet", machineWithNode(metav1.ConditionUnknown), false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot{Machine: tc.machine, Capabilities: backend.Capabilities{Scripted: tc.scripted}}
			if tc.known {
				s.Kubelet = &backend.KubeletState{}
			}
			var p reconciler.Plan
			decideKubelet(s, &p)
			if got := slices.Contains(p.Reads, reconciler.ReadRequest(readKubelet{})); got != tc.read || (p.Recheck == kubeletRecheck) != tc.recheck {
				t.Errorf("%s: reads %v, recheck %s", tc.reason, p.Reads, p.Recheck)
			}
		})
	}
}

func TestKubeletRunning(t *testing.T) {
	for name, tc := range map[string]struct {
		state   *backend.KubeletState
		reason  string
		message string
	}{
		"not read": {nil, "", ""},
		"unknown":  {&backend.KubeletState{}, "", ""},
		"running":  {&backend.KubeletState{Service: backend.ServiceRunning}, "", ""},
		"stopped":  {&backend.KubeletState{Service: backend.ServiceStopped, Start: "docker exec c systemctl start kubelet"}, reasonKubeletStopped, "start it with `docker exec c systemctl start kubelet`, or delete the Machine"},
		"failing":  {&backend.KubeletState{Service: backend.ServiceFailing}, reasonKubeletFails, "slipway logs node m --unit kubelet"},
	} {
		t.Run(name, func(t *testing.T) {
			j := conditionInput{snapshot: snapshot{Name: "c", Object: &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, Kubelet: tc.state}}
			got := j.kubeletRunning()
			if got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

type kubelets struct {
	state backend.KubeletState
	err   error
}

func (k kubelets) Kubelet(context.Context, backend.Ref) (backend.KubeletState, error) {
	return k.state, k.err
}

// A kubelet that cannot be read is unknown, and never fails the reconciliation.
func TestReadKubeletState(t *testing.T) {
	s := snapshot{Object: &infrav1.LocalMachine{}}
	stopped := backend.KubeletState{Service: backend.ServiceStopped}
	for name, tc := range map[string]struct {
		from backend.Kubelets
		want backend.KubeletState
	}{"none": {nil, backend.KubeletState{}}, "fails": {kubelets{stopped, errors.New("x")}, backend.KubeletState{}}, "stopped": {kubelets{state: stopped}, stopped}} {
		if got := readKubeletState(t.Context(), tc.from, s).Kubelet; got == nil || *got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestNodeReadyChanged(t *testing.T) {
	ready, silent := machineWithNode(metav1.ConditionTrue), machineWithNode(metav1.ConditionUnknown)
	p := nodeReadyChanged()
	if !p.Update(event.UpdateEvent{ObjectOld: ready, ObjectNew: silent}) || p.Update(event.UpdateEvent{ObjectOld: ready, ObjectNew: ready.DeepCopy()}) {
		t.Error("changes of the condition are selected, and nothing else")
	}
}
