package reference

import (
	"fmt"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// ComputeCondition returns the owner's condition for the object, such as InfrastructureReady. The condition tables of
// the Cluster, Machine and MachinePool controllers call it. If the reference is not set, Reached decides whether the
// owner needs the object.
func (l Link) ComputeCondition() condition.Result {
	switch presence := l.Presence(); {
	case presence == contract.NotSet && l.Reached:
		return condition.True(l.DoneReason)
	case presence == contract.NotSet:
		return condition.False(l.NotDoneReason, "The "+l.Name+" is not there yet")
	case l.Problem() != "":
		return condition.Unknown(clusterv1.InternalErrorReason, l.Problem())
	case presence == contract.Missing:
		return l.missing()
	case l.View.Completion().Unnamed():
		return condition.False(l.NotDoneReason, l.awaitedFieldText())
	}
	return l.mirror()
}

// lostText returns the message for an object that was deleted while it was in use.
func (l Link) lostText() string {
	return fmt.Sprintf("%s has been deleted while it was in use: restore it, or delete %s %s", l, l.Owner.Kind, l.From.GetName())
}

func (l Link) missing() condition.Result {
	switch {
	case !l.From.GetDeletionTimestamp().IsZero():
		return condition.False(clusterv1.ObjectDeletedReason, l.Ref.Kind+" has been deleted")
	case l.Reached:
		return condition.False(clusterv1.ObjectDeletedReason, l.lostText())
	}
	return condition.False(clusterv1.ObjectDoesNotExistReason, l.Ref.Kind+" does not exist")
}

// mirror returns the mirrored condition of the object. If the object does not have the condition, the result depends on
// whether the object is done.
func (l Link) mirror() condition.Result {
	o := l.Object()
	f := o.Condition(l.Source)
	if f.Presence() == contract.Missing && o.Contract == contract.V1Beta1 { // v1beta1 objects have no other condition
		f = o.Ready()
	}
	if err := f.Err(); err != nil {
		return condition.Unknown(clusterv1.InvalidConditionReportedReason, err.Error())
	}
	if c, ok := f.Get(); ok {
		return condition.Result{Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
	failure := l.failure()
	if l.IsDone() || l.Reached && failure == (contract.Failure{}) {
		return condition.True(l.DoneReason)
	}
	message := fmt.Sprintf("%s %s is false", l.Ref.Kind, l.View.Completion().Flag.Path())
	if o.Object["status"] == nil {
		message = fmt.Sprintf("%s has no status: no controller has reconciled it yet; if that stays so, check that its provider runs", l)
	}
	if failure != (contract.Failure{}) {
		message += ", and it reports a failure: " + strings.Trim(failure.Reason+": "+failure.Message, ": ")
	}
	return condition.False(l.NotDoneReason, message+ownership.MissingWatchLabel(l.From, o))
}

// Events returns a warning for each object that has a new problem. The argument before contains the owner's
// previous conditions, so that each problem is reported once. The Cluster, Machine and MachinePool controllers report
// them.
func Events(before condition.Set, links ...Link) []reconciler.Event {
	var out []reconciler.Event
	for _, l := range links {
		problem, c := l.Problem(), before.Get(l.Condition)
		if problem != "" && (c == nil || c.Message != problem) {
			out = append(out, reconciler.Warning("ReferenceUnreadable", "%s", problem))
		}
	}
	return out
}

// Legacy returns the v1beta1 condition for the role's condition. The argument waiting is its v1beta1 reason while
// the object is not done. The same three controllers call it for the conditions of older API versions.
func (r Role) Legacy(conditionType clusterv1.ConditionType, waiting string) condition.V1Beta1Row {
	return condition.V1Beta1Row{Type: conditionType, From: r.Condition, Severity: severity, Reason: func(reason string) string {
		switch reason {
		case r.NotDoneReason:
			return waiting
		case clusterv1.ObjectDeletedReason:
			return clusterv1.DeletedV1Beta1Reason
		}
		return reason
	}}
}

// severity is Error for a deleted object, Warning for an unreadable one, and Info for everything that is only
// waited for.
func severity(reason string) clusterv1.ConditionSeverity {
	switch reason {
	case clusterv1.ObjectDeletedReason:
		return clusterv1.ConditionSeverityError
	case clusterv1.InvalidConditionReportedReason, clusterv1.InternalErrorReason:
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}
