package machine

import (
	"context"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// kubeletRecheck is the interval for reading the state of the kubelet while the Node is not ready.
const kubeletRecheck = 30 * time.Second

// kubeletTimeout limits the read of the state, because a node that is not ready may hang.
const kubeletTimeout = 10 * time.Second

// reasonKubeletStopped: the kubelet of a provisioned machine was stopped.
const reasonKubeletStopped = "KubeletStopped"

// readKubelet reads the state of the kubelet. controller.readRequested (observe.go) reads it when [decide] requests it.
type readKubelet struct{}

func (readKubelet) String() string { return "the state of the kubelet" }

// decideKubelet reads the state of the kubelet while the Node is not ready, because the API of the workload cluster
// shows only that the kubelet is silent. It is the part of [decide] for the kubelet of a provisioned machine.
func decideKubelet(s snapshot, p *reconciler.Plan) {
	if !s.Capabilities.Scripted || nodeReady(s.Machine) != metav1.ConditionFalse && nodeReady(s.Machine) != metav1.ConditionUnknown {
		return
	}
	if s.Kubelet == nil {
		p.Reads = append(p.Reads, readKubelet{})
	}
	p.RecheckIn(kubeletRecheck)
}

// nodeReady returns the status of the Machine's condition about its Node; empty if the Machine has no Node yet.
func nodeReady(m *clusterv1.Machine) metav1.ConditionStatus {
	if m == nil || !m.Status.NodeRef.IsDefined() {
		return ""
	}
	c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineNodeReadyCondition)
	if c == nil {
		return ""
	}
	return c.Status
}

// nodeReadyChanged selects updates of Machines that change whether their Node is ready. [Add] enqueues the LocalMachine
// on these updates.
func nodeReadyChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1.Machine)
		after, ok2 := e.ObjectNew.(*clusterv1.Machine)
		return ok && ok2 && nodeReady(before) != nodeReady(after)
	}}
}

// readKubeletState reads the state of the kubelet. Errors leave it unknown, because the state only explains a
// condition. controller.readRequested (observe.go) calls it.
func readKubeletState(ctx context.Context, kubelets backend.Kubelets, s snapshot) snapshot {
	s.Kubelet = &backend.KubeletState{}
	if kubelets == nil {
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	if state, err := kubelets.Kubelet(ctx, s.ref()); err == nil {
		s.Kubelet = &state
	}
	return s
}

// kubeletRunning evaluates the condition about the kubelet of a machine whose Node is not ready. The report (status.go)
// calls it.
func (j conditionInput) kubeletRunning() condition.Result {
	if j.Kubelet == nil {
		return condition.Absent()
	}
	log := fmt.Sprintf("\"slipway logs node %s --unit kubelet\" has its log", j.Object.Name)
	switch j.Kubelet.Service {
	case backend.ServiceStopped:
		return condition.False(reasonKubeletStopped, fmt.Sprintf("The kubelet in machine %s is stopped: start it with `%s`, or delete the Machine to have it replaced; %s",
			j.Name, j.Kubelet.Start, log))
	case backend.ServiceFailing:
		return condition.False(reasonKubeletFails, fmt.Sprintf("The kubelet in machine %s exits repeatedly; %s. Correct its configuration, or delete the Machine to have it replaced",
			j.Name, log))
	case "": // unknown
		return condition.Mirror(j.Object.Status.Conditions, infrav1.KubeletRunningCondition, condition.Absent())
	}
	return condition.Absent()
}
