package drain

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// evictionsTimeout limits the total duration of the evictions in one reconciliation.
	evictionsTimeout = 10 * time.Second
	// evictionTimeout limits the duration of one eviction, so that a throttling API server does not delay the other
	// evictions.
	evictionTimeout = 3 * time.Second
)

// Results are the results of evictions. The Machine controller and `slipway hosts reboot` pass them to [Describe]; the
// Machine controller also reports them in events.
type Results struct {
	// Accepted lists the Pods whose eviction was accepted.
	Accepted []types.NamespacedName
	// Refused lists the Pods whose eviction was rejected.
	Refused []Refusal
	// Left lists the Pods that were not evicted because the time limit was reached.
	Left []types.NamespacedName
}

// Refusal is a rejected eviction with its reason. [Results] contains them.
type Refusal struct {
	Pod    types.NamespacedName
	Reason RefusalReason
	// Message explains to users why the Pod cannot be evicted.
	Message string
}

// RefusalReason classifies the reason of a rejected eviction. [Delays] checks it.
type RefusalReason int

const (
	// failed is any other error.
	failed RefusalReason = iota
	// budgeted: a PodDisruptionBudget does not allow the eviction now.
	budgeted
	// terminating: the Pod's Namespace is being deleted.
	terminating
	// busy: the API server throttles the request.
	busy
)

// HeldByBudget is the prefix of messages for refusals because of a budget. The Machine controller finds it in the condition, so
// that it records the event about budgets once.
const HeldByBudget = "a PodDisruptionBudget does not allow it now"

// Budgets returns one line for each distinct PodDisruptionBudget message, with the Pods that it affects. The Machine
// controller joins the lines in one event.
func (r Results) Budgets() []string {
	held := Results{Refused: slices.DeleteFunc(slices.Clone(r.Refused), func(f Refusal) bool { return f.Reason != budgeted })}
	return Describe(Plan{}, held)
}

// Failures reports whether an eviction failed for a reason other than a PodDisruptionBudget, a terminating
// Namespace or throttling. The v1beta1 condition DrainingSucceeded of the Machine reports it.
func (r Results) Failures() bool {
	return slices.ContainsFunc(r.Refused, func(r Refusal) bool { return r.Reason == failed })
}

// Evict evicts the Pods one after the other, within [evictionsTimeout]. The Machine controller calls it for the Pods in
// [Plan.Evict], and so does `slipway hosts reboot`. A rejected eviction is a result, not an error: a later
// reconciliation retries it. Pods that no longer exist, or were replaced by another Pod with the same name, are omitted
// from the results.
func Evict(ctx context.Context, workload client.Client, targets []Target) Results {
	ctx, cancel := context.WithTimeout(ctx, evictionsTimeout)
	defer cancel()
	var out Results
	for _, t := range targets {
		if ctx.Err() != nil {
			out.Left = append(out.Left, t.Pod)
			continue
		}
		err := evict(ctx, workload, t)
		switch {
		case err == nil:
			out.Accepted = append(out.Accepted, t.Pod)
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		default:
			why, message := explain(err)
			out.Refused = append(out.Refused, Refusal{Pod: t.Pod, Reason: why, Message: message})
		}
	}
	return out
}

func evict(ctx context.Context, workload client.Client, t Target) error {
	ctx, cancel := context.WithTimeout(ctx, evictionTimeout)
	defer cancel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.Pod.Namespace, Name: t.Pod.Name}}
	return workload.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Pod.Namespace, Name: t.Pod.Name},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: t.GraceSeconds, Preconditions: &metav1.Preconditions{UID: &t.UID},
		},
	})
}

// explain classifies the error of an eviction and returns a message for users.
func explain(err error) (RefusalReason, string) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return failed, "the API server of the workload cluster does not answer"
	}
	budgets := causes(err, policyv1.DisruptionBudgetCause)
	switch {
	case len(budgets) > 0:
		return budgeted, join(HeldByBudget+": ", budgets)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return terminating, "their Namespace is being deleted, and takes them along"
	case apierrors.IsTooManyRequests(err):
		return busy, "the API server of the workload cluster throttles requests"
	}
	return failed, "the eviction failed: " + status.Status().Message
}

func causes(err error, t metav1.CauseType) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var out []string
	for _, c := range status.Status().Details.Causes {
		if c.Type == t {
			out = append(out, c.Message)
		}
	}
	slices.Sort(out)
	return out
}
