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
	// Budget is how long the evictions of one pass may take together.
	Budget = 10 * time.Second
	// each is how long one of them may take: an API server that asks to come back later must not hold up the others.
	each = 3 * time.Second
)

// Results are what became of evictions.
type Results struct {
	// Accepted are the Pods that are on their way out.
	Accepted []types.NamespacedName
	// Refused are those that may not leave now.
	Refused []Refusal
	// Left are those that were not asked: the time of the pass was over.
	Left []types.NamespacedName
}

// Refusal is a Pod that could not be evicted, and why.
type Refusal struct {
	Pod types.NamespacedName
	Why Why
	// Message says for users what stands in the way.
	Message string
}

// Why a Pod could not be evicted.
type Why int

const (
	// Failed: something is wrong.
	Failed Why = iota
	// Budgeted: a PodDisruptionBudget protects it now.
	Budgeted
	// Terminating: its Namespace is being deleted.
	Terminating
	// Busy: the API server asks to try again later.
	Busy
)

// HeldByBudget begins the messages of refusals that are Budgeted.
const HeldByBudget = "a PodDisruptionBudget does not allow it now"

// Budgets are the messages of what PodDisruptionBudgets hold, each once, with its Pods.
func (r Results) Budgets() []string {
	held := Results{Refused: slices.DeleteFunc(slices.Clone(r.Refused), func(f Refusal) bool { return f.Why != Budgeted })}
	return Describe(Plan{}, held)
}

// Failures reports whether an eviction failed for another reason than a PodDisruptionBudget or a Namespace.
func (r Results) Failures() bool {
	return slices.ContainsFunc(r.Refused, func(r Refusal) bool { return r.Why == Failed })
}

// Evict asks the Pods to leave, one after the other, for no longer than the Budget. What is refused is a result, not
// an error: it is retried in a later pass. Pods that are gone, or were replaced by another of the name, are not
// mentioned.
func Evict(ctx context.Context, workload client.Client, targets []Target) Results {
	ctx, cancel := context.WithTimeout(ctx, Budget)
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
			out.Refused = append(out.Refused, Refusal{Pod: t.Pod, Why: why, Message: message})
		}
	}
	return out
}

func evict(ctx context.Context, workload client.Client, t Target) error {
	ctx, cancel := context.WithTimeout(ctx, each)
	defer cancel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.Pod.Namespace, Name: t.Pod.Name}}
	return workload.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Pod.Namespace, Name: t.Pod.Name},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: t.GraceSeconds, Preconditions: &metav1.Preconditions{UID: &t.UID},
		},
	})
}

// explain says why an eviction did not happen.
func explain(err error) (Why, string) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Failed, "the API server of the workload cluster does not answer"
	}
	budgets := causes(err, policyv1.DisruptionBudgetCause)
	switch {
	case len(budgets) > 0:
		return Budgeted, join(HeldByBudget+": ", budgets)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Terminating, "their Namespace is being deleted, and takes them along"
	case apierrors.IsTooManyRequests(err):
		return Busy, "the API server of the workload cluster asks to try again later"
	}
	return Failed, "the eviction failed: " + status.Status().Message
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
