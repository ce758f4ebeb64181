package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
)

// MachineState is the input of the conditions of a Machine. The KubeadmControlPlane controller fills it in for each of
// its Machines in each reconciliation.
type MachineState struct {
	machines.OwnedMachine
	State State
	// Etcd maps Machines to etcd members.
	Etcd MemberMatching
	// Initialized is true if the cluster has been initialized.
	Initialized bool
	// Managed is true if etcd runs on the Machines.
	Managed bool
	// Expired is the time at which the Machine's certificates expired, or zero if they have not or it is unknown.
	Expired time.Time
	// Unchanged means that the conditions remain unchanged, because nothing could be read and the grace period is not
	// over. Down means that the grace period is over.
	Unchanged, Down bool
	// Lost is the reason why the Machine's etcd member is lost, if etcd has lost its quorum; otherwise it is empty.
	Lost string
}

// MachineConditions returns the conditions of a control plane Machine that its KubeadmControlPlane sets. Types and
// reasons are the API of Cluster API; the conditions are also readiness gates of the Machine, so a Machine becomes
// ready only if all of them are True. The KubeadmControlPlane controller calls it for each Machine in each
// reconciliation.
func MachineConditions() condition.Table[MachineState] {
	return condition.Table[MachineState]{
		{Type: controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition, Compute: MachineState.labelsAndTaints},
		{Type: controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition, Compute: MachineState.apiServer},
		{Type: controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition, Compute: MachineState.controllerManager},
		{Type: controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition, Compute: MachineState.scheduler},
		{Type: controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition, Compute: MachineState.etcdPod},
		{Type: controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition, Compute: MachineState.etcdMember},
	}
}

// ConditionTypes returns the condition types of a Machine's components, including etcd if it is managed. The first type
// must stay the first: it is a readiness gate only, and [UnhealthyReason] skips it.
func ConditionTypes(managed bool) []string {
	out := append([]string{controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition}, componentTypes()...)
	if managed {
		out = append(out, etcdTypes()...)
	}
	return out
}

func componentTypes() []string {
	return []string{
		controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
	}
}

func etcdTypes() []string {
	return []string{
		controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition,
	}
}

// ReadinessGates returns the readiness gates of control plane Machines. The KubeadmControlPlane controller writes them
// to all its Machines.
func ReadinessGates(managed bool) []clusterv1.MachineReadinessGate {
	var out []clusterv1.MachineReadinessGate
	for _, t := range ConditionTypes(managed) {
		out = append(out, clusterv1.MachineReadinessGate{ConditionType: t})
	}
	return out
}

// disconnected returns the message for a component of a disconnected workload cluster. The problem describes the lost
// connection.
func disconnected(problem string) string {
	if problem == "" {
		return "The workload cluster is not connected"
	}
	return strings.ToUpper(problem[:1]) + problem[1:]
}

// unread returns the condition of a component whose state is unknown, or Absent if the state is known.
func (f MachineState) unread(conditionType string) condition.Result {
	old := condition.Set(f.Status.Conditions)
	const inspectionFailed, connectionDown = clusterv1.InspectionFailedReason, clusterv1.ConnectionDownReason
	switch {
	case f.Unchanged && old.Get(conditionType) != nil:
		return condition.Mirror(old, conditionType, condition.Absent())
	case f.Down:
		return condition.Unknown(connectionDown, disconnected(f.State.Problem))
	case !f.Status.NodeRef.IsDefined() && (!f.Initialized || f.State.Problem == ""): // the same before and after the initialization, which saves an update
		return condition.Unknown(inspectionFailed, "Waiting for the Node of the Machine to exist")
	case !f.Initialized:
		return condition.Unknown(inspectionFailed, "Waiting for the control plane to be initialized")
	case f.State.At.IsZero():
		return condition.Unknown(inspectionFailed, "Waiting for the workload cluster to be read")
	case f.State.Problem != "":
		return condition.Unknown(inspectionFailed, f.State.Problem)
	}
	return condition.Absent()
}

// deleting returns the condition of a component that no longer exists on a Machine that is being deleted.
func deleting() condition.Result {
	return condition.False(controlplanev1.KubeadmControlPlaneMachinePodDeletingReason, "Machine is being deleted")
}

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

func (f MachineState) labelsAndTaints() condition.Result {
	if v := f.unread(controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition); v != condition.Absent() {
		return v
	}
	node := f.State.Nodes[f.Status.NodeRef.Name]
	switch {
	case node == nil && f.Deleted:
		return deleting()
	case node == nil:
		return condition.Unknown(clusterv1.InspectionFailedReason, "Node "+f.Status.NodeRef.Name+" does not exist")
	}
	if _, labelled := node.Labels[controlPlaneLabel]; !labelled {
		return condition.False(controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsNotSetReason,
			fmt.Sprintf("Waiting for kubeadm to set the label %s on Node %s", controlPlaneLabel, node.Name))
	}
	return condition.True(controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetReason)
}

func (f MachineState) apiServer() condition.Result {
	if !f.Expired.IsZero() && !f.Deleted { // also if the workload cluster cannot be read, because this may be the cause
		return condition.False(controlplanev1.KubeadmControlPlaneMachinePodFailedReason, fmt.Sprintf("The certificate of the API server on Node %s expired on %s: "+
			"replace the Machine, or run `kubeadm certs renew all` on the node and restart its static Pods; spec.rollout.before.certificatesExpiryDays of the "+
			"KubeadmControlPlane replaces Machines in time", f.Status.NodeRef.Name, f.Expired.UTC().Format(time.RFC3339)))
	}
	return f.pod(controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition, apiServerPod)
}

func (f MachineState) controllerManager() condition.Result {
	return f.pod(controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition, controllerManagerPod)
}

func (f MachineState) scheduler() condition.Result {
	return f.pod(controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition, schedulerPod)
}

func (f MachineState) etcdPod() condition.Result {
	if !f.Managed {
		return condition.Absent()
	}
	return f.pod(controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition, etcdPod)
}

// pod returns the condition of a component's static Pod.
func (f MachineState) pod(conditionType, component string) condition.Result {
	if v := f.unread(conditionType); v != condition.Absent() {
		return v
	}
	pod := f.State.PodOf(component, f.Status.NodeRef.Name)
	switch {
	case pod == nil && f.Deleted:
		return deleting()
	case pod == nil:
		return condition.False(controlplanev1.KubeadmControlPlaneMachinePodDoesNotExistReason,
			fmt.Sprintf("Pod %s-%s does not exist", component, f.Status.NodeRef.Name))
	case !pod.DeletionTimestamp.IsZero():
		return condition.False(controlplanev1.KubeadmControlPlaneMachinePodDeletingReason, "Pod "+pod.Name+" is being deleted")
	}
	return podVerdict(pod)
}

// podVerdict returns the condition of a static Pod that exists.
func podVerdict(pod *corev1.Pod) condition.Result {
	const provisioning, failed = controlplanev1.KubeadmControlPlaneMachinePodProvisioningReason, controlplanev1.KubeadmControlPlaneMachinePodFailedReason
	crashed := crashes(pod)
	switch {
	case pod.Status.Phase == corev1.PodRunning && isReady(pod):
		return condition.True(controlplanev1.KubeadmControlPlaneMachinePodRunningReason)
	case len(crashed) > 0:
		return condition.False(failed, "Pod "+pod.Name+": "+strings.Join(crashed, ", "))
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return condition.False(failed, "Pod "+pod.Name+": all containers have terminated")
	case pod.Status.Phase == corev1.PodPending:
		return condition.False(provisioning, "Waiting for the containers of Pod "+pod.Name+" to start")
	case pod.Status.Phase == corev1.PodRunning:
		return condition.False(provisioning, "Waiting for Pod "+pod.Name+" to be ready")
	}
	return condition.Unknown(clusterv1.InspectionFailedReason, "Pod "+pod.Name+" reports an unknown phase")
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// crashes returns the reasons why containers do not run, except for containers that are about to start.
func crashes(pod *corev1.Pod) []string {
	var out []string
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil && !slices.Contains([]string{"ContainerCreating", "PodInitializing", ""}, c.State.Waiting.Reason):
			out = append(out, c.Name+" "+c.State.Waiting.Reason)
		case c.State.Terminated != nil:
			out = append(out, c.Name+" terminated with "+c.State.Terminated.Reason)
		}
	}
	slices.Sort(out)
	return out
}

func (f MachineState) etcdMember() condition.Result {
	if !f.Managed {
		return condition.Absent()
	}
	if f.Lost != "" && f.State.Problem != "" { // determined without the API server, which does not respond
		return condition.False(controlplanev1.KubeadmControlPlaneMachineEtcdMemberNotHealthyReason, f.Lost)
	}
	if v := f.unread(controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition); v != condition.Absent() {
		return v
	}
	if f.State.Etcd.Problem != "" {
		return condition.Unknown(clusterv1.InspectionFailedReason, f.State.Etcd.Problem)
	}
	member, is := f.Etcd.MemberOf(f.Name)
	switch {
	case !is && f.Deleted:
		return deleting()
	case !is && f.Etcd.Doubt(f.Name) != "":
		return condition.Unknown(clusterv1.InspectionFailedReason, "The etcd member of the Machine is unknown: "+f.Etcd.Doubt(f.Name))
	case !is:
		return condition.False(controlplanev1.KubeadmControlPlaneMachineEtcdMemberNotHealthyReason, "Etcd has no member on Node "+f.Status.NodeRef.Name)
	case member.Health == memberUnknown:
		return condition.Unknown(clusterv1.InspectionFailedReason, member.Problem)
	case member.Health == MemberUnhealthy:
		return condition.False(controlplanev1.KubeadmControlPlaneMachineEtcdMemberNotHealthyReason, member.Problem)
	}
	return condition.True(controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyReason)
}
