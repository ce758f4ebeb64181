package link

import (
	"fmt"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Verdict is the owner's condition over the object. Of a reference that is not set it says by Reached whether the owner can do
// without.
func (l Link) Verdict() condition.Verdict {
	switch presence := l.Presence(); {
	case presence == contract.NotSet && l.Reached:
		return condition.True(l.Good)
	case presence == contract.NotSet:
		return condition.False(l.Bad, "The "+l.Name+" is not there yet")
	case l.Problem() != "":
		return condition.Unknown(clusterv1.InternalErrorReason, l.Problem())
	case presence == contract.Missing:
		return l.missing()
	case l.View.Completion().Unnamed():
		return condition.False(l.Bad, l.unfinished())
	}
	return l.mirror()
}

// lostText says that the object has been deleted under its owner, and what to do.
func (l Link) lostText() string {
	return fmt.Sprintf("%s has been deleted while it was in use: restore it, or delete %s %s", l, l.Owner.Kind, l.From.GetName())
}

func (l Link) missing() condition.Verdict {
	switch {
	case !l.From.GetDeletionTimestamp().IsZero():
		return condition.False(clusterv1.ObjectDeletedReason, l.Ref.Kind+" has been deleted")
	case l.Reached:
		return condition.False(clusterv1.ObjectDeletedReason, l.lostText())
	}
	return condition.False(clusterv1.ObjectDoesNotExistReason, l.Ref.Kind+" does not exist")
}

// mirror repeats a condition of the object. One that does not have it is judged by how far it has come.
func (l Link) mirror() condition.Verdict {
	o := l.Object()
	f := o.Condition(l.Source)
	if f.Presence() == contract.Missing && o.Contract == contract.V1Beta1 { // which knows no other
		f = o.Ready()
	}
	if err := f.Err(); err != nil {
		return condition.Unknown(clusterv1.InvalidConditionReportedReason, err.Error())
	}
	if c, ok := f.Get(); ok {
		return condition.Verdict{Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
	failure := l.failure()
	if l.IsDone() || l.Reached && failure == (contract.Failure{}) {
		return condition.True(l.Good)
	}
	message := fmt.Sprintf("%s %s is false", l.Ref.Kind, l.View.Completion().Flag.Path())
	if o.Object["status"] == nil {
		message = fmt.Sprintf("%s has no status: no controller has reconciled it yet; if that stays so, check that its provider runs", l)
	}
	if failure != (contract.Failure{}) {
		message += ", and it reports a failure: " + strings.Trim(failure.Reason+": "+failure.Message, ": ")
	}
	return condition.False(l.Bad, message+ownership.MissingWatchLabel(l.From, o))
}

// Events tell once of each object that cannot be relied on. before are the conditions of the owner as they were.
func Events(before condition.Set, links ...Link) []loop.Event {
	var out []loop.Event
	for _, l := range links {
		problem, c := l.Problem(), before.Get(l.Condition)
		if problem != "" && (c == nil || c.Message != problem) {
			out = append(out, loop.Warning("ReferenceUnreadable", "%s", problem))
		}
	}
	return out
}

// Legacy is how v1beta1 calls the condition of the role; waiting is its reason while the object is not done.
func (r Role) Legacy(conditionType clusterv1.ConditionType, waiting string) condition.Legacy {
	return condition.Legacy{Type: conditionType, From: r.Condition, Severity: Severity, Reason: func(reason string) string {
		switch reason {
		case r.Bad:
			return waiting
		case clusterv1.ObjectDeletedReason:
			return clusterv1.DeletedV1Beta1Reason
		}
		return reason
	}}
}

// Severity tells what is only waited for from what a person has to look at.
func Severity(reason string) clusterv1.ConditionSeverity {
	switch reason {
	case clusterv1.ObjectDeletedReason:
		return clusterv1.ConditionSeverityError
	case clusterv1.InvalidConditionReportedReason, clusterv1.InternalErrorReason:
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}
