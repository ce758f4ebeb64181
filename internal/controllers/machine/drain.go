package machine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controllers/machine/drain"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// This file has the stages of the deletion of a Machine that empty its Node: drainNode and waitForVolumes, which
// deletion.go calls, the reads that they request, and their actions. Package drain decides which Pods are evicted.

// A drain is checked again after an eighth of its duration so far: frequently at the beginning, when most Pods
// terminate, and less often later. Pods are not watched.
const (
	soonestRecheck = time.Second
	latestRecheck  = 20 * time.Second
	// removedDrain limits the drain of a removed machine. Its Pods are already being replaced, and a
	// PodDisruptionBudget cannot protect them any more.
	removedDrain = 10 * time.Second
)

// connection is the condition that ends a wait for an unreachable workload cluster.
const connection = "condition " + clusterv1.ClusterRemoteConnectionProbeCondition

// The reads that a deletion requests.
type (
	// askPods requests the Pods of the Node and the other inputs of the drain.
	askPods struct{ Node string }
	// askVolumes requests the volumes that are attached to the Node.
	askVolumes struct{ Node string }
)

func (q askPods) String() string    { return "the Pods of Node " + q.Node }
func (q askVolumes) String() string { return "the volumes attached to Node " + q.Node }

// drainNode cordons the Node, then evicts its Pods until the drain is complete. It is a stage of the deletion
// (planDeletion).
func drainNode(s snapshot, p *reconciler.Plan) {
	if !needsDrain(s) {
		return
	}
	const reason = clusterv1.MachineDeletingDrainingNodeReason
	n := s.Node.Item
	switch {
	case s.Node.Unreachable:
		p.WaitFor(reason, "Node %s cannot be drained while the workload cluster does not answer",
			s.Machine.Status.NodeRef.Name).For(clusterv1.ClusterKind, s.Machine.Spec.ClusterName).ToChange(connection)
	case n == nil:
		return
	case !n.Spec.Unschedulable:
		p.Do(cordon{Node: n.Name})
		p.WaitFor(reason, "%s", drainMessage(s, nil)).For("Node", n.Name).ForTime()
	case s.PodsProblem != "":
		p.WaitFor(reason, "%s", s.PodsProblem).For("Node", n.Name).UntilUserActs()
	case s.Drain == nil && s.Node.RetryAfter > 0:
		p.WaitFor(reason, "%s", drainMessage(s, nil)).For("Node", n.Name).ForTime()
	case s.Drain == nil:
		p.Reads = append(p.Reads, askPods{Node: n.Name})
		return
	default:
		if s.Drain.Done() {
			return
		}
		if pods := len(s.Drain.Evict); pods > 0 {
			p.Do(evict{Node: n.Name, Pods: pods, results: &drain.Results{}})
		}
		p.WaitFor(reason, "%s", drainWait(s)).For("Node", n.Name).ForTime()
	}
	recheck(s, drainStart(s), p)
	if left, limited := drainLeft(s); limited {
		p.RecheckIn(left)
	}
	p.RecheckIn(staleDrain - s.Now.Sub(drainStart(s).Time))
}

// waitForVolumes waits until the volumes of drained Pods are detached. It is the stage of the deletion after the drain.
// planDeletion (deletion.go) calls it.
func waitForVolumes(s snapshot, p *reconciler.Plan) {
	if !waitsForVolumes(s) {
		return
	}
	const reason = clusterv1.MachineDeletingWaitingForVolumeDetachReason
	n := s.Node.Item
	switch {
	case s.Node.Unreachable:
		p.WaitFor(reason, "Volumes of Node %s cannot be read while the workload cluster does not answer",
			s.Machine.Status.NodeRef.Name).For(clusterv1.ClusterKind, s.Machine.Spec.ClusterName).ToChange(connection)
	case n == nil, drain.Unreachable(n):
		return
	case s.Node.RetryAfter > 0:
		p.WaitFor(reason, "Waiting for a turn to read which volumes are attached to Node %s", n.Name).For("Node", n.Name).ForTime()
	case s.Volumes == nil && (s.Settings.VolumeAttachments || len(n.Status.VolumesAttached) > 0):
		p.Reads = append(p.Reads, askVolumes{Node: n.Name})
		return
	case s.Volumes == nil, s.Volumes.None():
		return
	case s.PodsProblem != "":
		p.WaitFor(reason, "%s", s.PodsProblem).For("Node", n.Name).UntilUserActs()
	case s.Drain == nil:
		p.Reads = append(p.Reads, askPods{Node: n.Name})
		return
	default:
		attached := s.Volumes.Attached(s.Drain.Stay)
		if len(attached) == 0 {
			return
		}
		remedy := ""
		if _, limited := timeLeft(s.Now, detachStart(s), s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds); !limited {
			remedy = "; check their CSI driver, or limit the wait with spec.deletion.nodeVolumeDetachTimeoutSeconds of the Machine"
		}
		p.WaitFor(reason, "Waiting for volumes to be detached from Node %s since %s: %s%s",
			n.Name, formatTime(detachStart(s)), drain.DescribeVolumes(attached), remedy).For("Node", n.Name).ToChange("status.volumesAttached")
	}
	recheck(s, detachStart(s), p)
	if left, limited := timeLeft(s.Now, detachStart(s), s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds); limited {
		p.RecheckIn(left)
	}
}

// needsDrain reports whether the Node has to be drained. deletionStatus checks it, too, so that a skipped drain has no
// start time.
func needsDrain(s snapshot) bool {
	_, excluded := s.Machine.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	left, limited := drainLeft(s)
	return !skipsNodeStages(s) && !excluded && !isLeaving(s) && (left > 0 || !limited)
}

// waitsForVolumes reports whether volumes have to be detached before the machine is deleted.
func waitsForVolumes(s snapshot) bool {
	_, excluded := s.Machine.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	left, limited := timeLeft(s.Now, detachStart(s), s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds)
	return !skipsNodeStages(s) && !excluded && !isLeaving(s) && !s.Infra.Removed && (left > 0 || !limited)
}

// isLeaving reports whether the machine may already be terminating: the drain was reported as complete to the
// owners of pre-terminate hooks, or the infrastructure machine is being deleted.
func isLeaving(s snapshot) bool {
	d := s.Machine.Status.Deletion
	i := s.infra()
	return d != nil && !d.WaitForPreTerminateHookStartTime.IsZero() ||
		i.IsGone() || i.Presence() == contract.Found && !i.Object().GetDeletionTimestamp().IsZero()
}

func drainStart(s snapshot) metav1.Time {
	return cmp.Or(stageStartTimes(s).NodeDrainStartTime, thisSecond(s))
}

func detachStart(s snapshot) metav1.Time {
	return cmp.Or(stageStartTimes(s).WaitForNodeVolumeDetachStartTime, thisSecond(s))
}

func thisSecond(s snapshot) metav1.Time { return metav1.NewTime(s.Now.Truncate(time.Second)) }

// drainLeft returns the time left for the drain, and whether there is a limit.
func drainLeft(s snapshot) (left time.Duration, limited bool) {
	left, limited = timeLeft(s.Now, drainStart(s), s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds)
	if removed := removedDrain - s.Now.Sub(drainStart(s).Time); s.Infra.Removed && (!limited || removed < left) {
		return removed, true
	}
	return left, limited
}

// timeLeft returns the time left of a timeout that started at start. A timeout of nil or 0 means no limit.
func timeLeft(now time.Time, start metav1.Time, seconds *int32) (left time.Duration, limited bool) {
	if seconds == nil || *seconds == 0 {
		return 0, false
	}
	return time.Duration(*seconds)*time.Second - now.Sub(start.Time), true
}

func recheck(s snapshot, since metav1.Time, p *reconciler.Plan) {
	if s.Node.RetryAfter > 0 { // an earlier attempt would only delay other callers
		return
	}
	p.RecheckIn(min(max(s.Now.Sub(since.Time)/8, soonestRecheck), latestRecheck))
}

func formatTime(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }

// drainMessage returns a message with the start of the drain and the Pods that it waits for. Before the first evictions
// results is nil.
func drainMessage(s snapshot, results *drain.Results) string {
	if s.Drain == nil {
		return drainHead(s)
	}
	if results == nil {
		return strings.Join(append([]string{drainHead(s)}, drain.DescribeBefore(*s.Drain, "")...), "\n")
	}
	return strings.Join(append([]string{drainHead(s)}, drain.Describe(*s.Drain, *results)...), "\n")
}

func drainHead(s snapshot) string {
	return fmt.Sprintf("Draining Node %s since %s", s.Node.Item.Name, formatTime(drainStart(s)))
}

// drainWait returns the message of a drain before this reconciliation has evicted Pods, with the reasons why evictions were
// rejected in the previous one.
func drainWait(s snapshot) string {
	previous := ""
	if c := apimeta.FindStatusCondition(s.Machine.Status.Conditions, clusterv1.MachineDeletingCondition); c != nil && c.Reason == clusterv1.MachineDeletingDrainingNodeReason {
		previous = c.Message
	}
	return strings.Join(append([]string{drainHead(s)}, drain.DescribeBefore(*s.Drain, previous)...), "\n")
}

// answer performs the reads that a deletion or an update requests. Package reconciler calls it for each read in a plan
// of [decide]. An unreachable workload cluster is recorded in the snapshot and is not an error.
func (c *controller) answer(ctx context.Context, s snapshot, q reconciler.ReadRequest) (_ snapshot, err error) {
	if _, updating := q.(askProgress); updating {
		s.Progress, err = s.update().callExtension(ctx, c.caller)
		return s, err
	}
	workload, err := c.workloads.Client(ctx, clusterKey(s.Machine))
	if err == nil {
		switch q.(type) {
		case askPods:
			err = c.lookAtPods(ctx, &s, workload)
		case askVolumes:
			var v drain.Volumes
			v, err = drain.ReadVolumes(ctx, workload, s.Node.Item, s.Settings.VolumeAttachments)
			s.Volumes = &v
		default:
			err = reconciler.UnknownRead("machine", q)
		}
	}
	if s.Node.RetryAfter = retryAfterRejection(err); s.Node.RetryAfter > 0 {
		s.Volumes = nil
		return s, nil
	}
	if fault.KindOf(err) == fault.Unreachable {
		s.Node, err = observedNode{Unreachable: true}, nil
	}
	return s, err
}

func (c *controller) lookAtPods(ctx context.Context, s *snapshot, workload client.Reader) error {
	list := &clusterv1.MachineDrainRuleList{}
	err := c.client.List(ctx, list, client.InNamespace(s.Machine.Namespace))
	if err != nil && !apimeta.IsNoMatchError(err) {
		return fmt.Errorf("listing MachineDrainRules: %w", err)
	}
	rules, err := drain.RulesFor(list.Items, s.Machine, s.Cluster)
	if err != nil {
		s.PodsProblem = fault.As(err).Message
		return nil
	}
	view, err := drain.ReadView(ctx, workload, s.Node.Item, rules)
	if err != nil {
		return err
	}
	view = view.At(s.Now)
	view.Removed = s.Infra.Removed
	plan := drain.Decide(view)
	s.Drain = &plan
	return nil
}

// cordon marks the Node as unschedulable. act calls it.
func (c *controller) cordon(ctx context.Context, s snapshot) error {
	workload, err := c.workloads.Client(ctx, clusterKey(s.Machine))
	if err != nil {
		return err
	}
	err = c.writer.WithClient(workload).Patch(ctx, s.Node.Item, func(o client.Object) {
		o.(*corev1.Node).Spec.Unschedulable = true
	})
	return client.IgnoreNotFound(err)
}

// evict evicts the Pods and records the results. act calls it.
func (c *controller) evict(ctx context.Context, s snapshot, a evict) error {
	workload, err := c.workloads.Client(ctx, clusterKey(s.Machine))
	if err != nil {
		return err
	}
	*a.results = drain.Evict(ctx, workload, s.Drain.Evict)
	return nil
}
