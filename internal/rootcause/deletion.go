package rootcause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// stuckAfter is the time after which a deletion whose controller reports nothing is a user's problem.
const stuckAfter = 5 * time.Minute

// maxFinalizers is the number of finalizers of an object that are considered.
const maxFinalizers = 50

// finalizers returns the finalizers of the object inside of its own API group, and outside of it. The finalizers of the
// garbage collector are neither.
func (o object) finalizers() (own, foreign []string) {
	all := o.content.GetFinalizers()
	all = slices.DeleteFunc(slices.Clone(all[:min(len(all), maxFinalizers)]), func(finalizer string) bool {
		return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
	})
	return condition.SplitFinalizers(o.ref.Group, all)
}

// deletionProblem returns what an object that is being deleted waits for. object.problems calls it.
func (o object) deletionProblem(now time.Time) problem {
	deleted := o.content.GetDeletionTimestamp().Time
	p := problem{weight: weightDeletion, Link: Link{Object: o.ref, Reason: clusterv1.DeletingReason, Since: deleted}}
	own, foreign := o.finalizers()
	reported := o.condition(clusterv1.DeletingCondition)
	switch {
	case len(foreign) > 0 && len(own) == 0:
		return finalizerProblem(p, foreign, now)
	case reported != nil && reported.Status == metav1.ConditionTrue && reported.Message != "":
		p.Type, p.Reason, p.Message = reported.Type, reported.Reason, clip(reported.Message)
		if !reported.LastTransitionTime.IsZero() && p.Reason != clusterv1.DeletingReason {
			p.Since = reported.LastTransitionTime.Time
		}
		if r, known := findRemedy(p.Link, now); known && !r.automatic && !replaces(r.text) {
			p.weight = weightUser
		}
		return p
	case len(own) == 0:
		p.Message = "Deletion waits for the deletion of its dependents"
	default:
		p.Message = "Deletion waits for finalizer " + condition.Names(slices.Concat(own, foreign))
		if now.Sub(deleted) > stuckAfter {
			p.fixed = Remedy{
				Text:    "Check that the provider of {kind} (group {group}) runs: its controller has to remove the finalizer " + own[0],
				Command: "slipway kubectl get pods --all-namespaces -l cluster.x-k8s.io/provider",
			}
		}
	}
	return p
}

// finalizerProblem reports finalizers that another controller than that of the object has to remove.
func finalizerProblem(p problem, finalizers []string, now time.Time) problem {
	domain, _, _ := strings.Cut(finalizers[0], "/")
	p.weight, p.Reason = weightFinalizer, "ForeignFinalizer"
	p.Message = fmt.Sprintf("Deletion waits for finalizer %s, which its owner (the controller of %s) has not removed", condition.Names(finalizers), cmp.Or(domain, finalizers[0]))
	if now.Sub(p.Since) < stuckAfter {
		p.fixed = Remedy{Text: fmt.Sprintf("The controller of %s removes finalizer %s after its cleanup; no action is needed", domain, finalizers[0]), Automatic: true}
		return p
	}
	p.fixed = Remedy{
		Text: fmt.Sprintf("The controller of %s has to finish its cleanup and remove finalizer %s. If that controller was uninstalled, clean up in its place, then remove the finalizer",
			domain, finalizers[0]),
		Command: editText,
	}
	return p
}
