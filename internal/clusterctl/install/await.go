package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

// reasonNoNode is the reason when Pods have no Node to run on; Invalid.
const reasonNoNode = "NoNode"

// ReasonUnavailable is the reason when a Deployment did not become available in time; Invalid, because a user must
// solve the problem that its Pods report.
const ReasonUnavailable = "DeploymentUnavailable"

// awaitAvailable executes a step with the verb [Await]: it waits until a Deployment is available. If the cluster has no
// Node, it returns an error immediately. Steps without a timeout share the timeout of the Runner.
func (r Runner) awaitAvailable(ctx context.Context, s Step, spent *time.Duration) error {
	limit, o := r.Timeout, s.Object
	if s.Timeout > 0 {
		limit, spent = s.Timeout, new(time.Duration)
	}
	for ; ; *spent += poll {
		waits, err := r.unavailableReason(ctx, client.ObjectKeyFromObject(o))
		if err != nil || waits == "" {
			return err
		}
		if *spent >= limit {
			said, err := r.podProblems(ctx, o)
			if err != nil {
				return err
			}
			return fault.New(fault.Invalid, ReasonUnavailable, "%s after %s%s", waits, limit, said)
		}
		if err := r.Pause(ctx, poll); err != nil {
			return err
		}
	}
}

// awaitAccepted executes a step with the verb [Accept]: it waits until the API server accepts an object in a dry run.
func (r Runner) awaitAccepted(ctx context.Context, w *kube.Writer, s Step) error {
	return r.pollUntilEmpty(ctx, s.Timeout, func() (string, error) {
		_, err := w.DryRun(ctx, &unstructured.Unstructured{}, s.Object)
		if err == nil {
			return "", nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return fmt.Sprintf("%s cannot be created: %v", s.Object.GetKind(), err), nil
	})
}

// checkNodes returns an error before anything is written if the plan waits for Deployments in a cluster without Nodes.
// [Runner.Run] calls it before the first step.
func (r Runner) checkNodes(ctx context.Context, steps []Step) error {
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Verb == Await })
	if i < 0 {
		return nil
	}
	nodes := &corev1.NodeList{}
	if err := r.Client.List(ctx, nodes, client.Limit(1)); apierrors.IsForbidden(err) {
		return nil
	} else if err != nil {
		return err
	}
	if len(nodes.Items) > 0 {
		return nil
	}
	return fault.New(fault.Invalid, reasonNoNode,
		"Deployment %s cannot become available, because this cluster has no Nodes; nothing was changed. Add a Node to an embedded management cluster with `slipway up --node`, or omit --wait-providers", steps[i].Object.GetName())
}

// unavailableReason returns the reason why a Deployment is not available; empty if it is.
func (r Runner) unavailableReason(ctx context.Context, key client.ObjectKey) (string, error) {
	d := &appsv1.Deployment{}
	if err := r.Client.Get(ctx, key, d); err != nil {
		return "", err
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	if d.Status.ObservedGeneration >= d.Generation && (wanted == 0 || available(d)) {
		return "", nil
	}
	nodes := &corev1.NodeList{}
	if err := r.Client.List(ctx, nodes, client.Limit(1)); err != nil {
		return "", err
	}
	if len(nodes.Items) == 0 {
		return "", fault.New(fault.Invalid, reasonNoNode,
			"Deployment %s in namespace %s cannot become available, because this cluster has no Nodes; add one to an embedded management cluster with `slipway up --node`", key.Name, key.Namespace)
	}
	return fmt.Sprintf("Deployment %s in namespace %s is not available (%d of %d replicas)", key.Name, key.Namespace, d.Status.AvailableReplicas, wanted), nil
}

func available(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podProblems describes why the Pods of a Deployment are not ready.
func (r Runner) podProblems(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	d := &appsv1.Deployment{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), d); err != nil {
		return "", err
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return "", fault.New(fault.Invalid, ReasonRequest, "the selector of Deployment %s is invalid", d.Name).From(err)
	}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return "", err
	}
	var out []string
	for _, p := range pods.Items {
		if said := podProblem(p); said != "" {
			out = append(out, fmt.Sprintf("Pod %s: %s", p.Name, said))
		}
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			out = append(out, c.Message)
		}
	}
	if len(out) == 0 {
		return "", nil
	}
	return " (" + strings.Join(out, "; ") + ")", nil
}

// podProblem describes why a Pod is not ready: the reason for which a container waits, its exit status, or a condition.
func podProblem(p corev1.Pod) string {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if w := c.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
				return strings.TrimSuffix(fmt.Sprintf("container %s is waiting, %s: %s", c.Name, w.Reason, w.Message), ": ")
			}
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
				return strings.TrimSuffix(fmt.Sprintf("container %s terminated with exit code %d: %s", c.Name, t.ExitCode, t.Message), ": ")
			}
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	return ""
}
