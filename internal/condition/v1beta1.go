package condition

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// V1Beta1Row describes one condition in status.deprecated.v1beta1, and the condition that it is computed from. Each
// controller declares the rows for its kind; types and reasons are those that clients of Cluster API's v1beta1 know.
// The controllers pass the rows to [Project].
type V1Beta1Row struct {
	// Type is the type of the v1beta1 condition.
	Type clusterv1.ConditionType
	// From is the type of the source condition.
	From string
	// FromPolarity is the polarity of the source condition. All v1beta1 conditions are positive.
	FromPolarity Polarity
	// Reason maps the reason of the source condition to the v1beta1 reason. If it is nil, the reason is copied.
	Reason func(reason string) string
	// Severity returns the severity of a False condition for its v1beta2 reason. If it is nil, the severity is
	// Info.
	Severity func(reason string) clusterv1.ConditionSeverity
	// Sticky conditions stay True once they have been True.
	Sticky bool
}

// The maximum lengths in bytes that the API accepts in v1beta1 conditions.
const maxLegacyReason, maxLegacyMessage = 256, 10240

// Project returns the deprecated v1beta1 conditions for the conditions in set. Controllers call it when they compute
// the new status. The argument old contains the object's current v1beta1 conditions, from which transition times and
// sticky conditions are taken. Conditions in old without a row belong to other writers and are copied, because an apply
// replaces the list as a whole and would remove them.
func Project(rows []V1Beta1Row, set Set, old clusterv1.Conditions) clusterv1.Conditions {
	var out clusterv1.Conditions
	for _, row := range rows {
		before := legacyOf(old, row.Type)
		if row.Sticky && before != nil && before.Status == "True" {
			out = append(out, *before)
			continue
		}
		if c := set.Get(row.From); c != nil {
			out = append(out, project(row, *c, before))
		}
	}
	for _, c := range old {
		if !slices.ContainsFunc(rows, func(row V1Beta1Row) bool { return row.Type == c.Type }) {
			out = append(out, c)
		}
	}
	return out
}

func project(row V1Beta1Row, c metav1.Condition, before *clusterv1.Condition) clusterv1.Condition {
	l := clusterv1.Condition{Type: row.Type, Status: "Unknown", LastTransitionTime: c.LastTransitionTime, Message: c.Message}
	good := metav1.ConditionTrue
	if row.FromPolarity == Negative {
		good = metav1.ConditionFalse
	}
	l.Reason = c.Reason
	if row.Reason != nil {
		l.Reason = row.Reason(c.Reason)
	}
	switch c.Status {
	case good:
		l.Status, l.Reason, l.Message = "True", "", ""
	case metav1.ConditionUnknown:
	default:
		l.Status, l.Severity = "False", clusterv1.ConditionSeverityInfo
		if row.Severity != nil {
			l.Severity = row.Severity(c.Reason)
		}
	}
	l.Reason, l.Message = l.Reason[:min(len(l.Reason), maxLegacyReason)], clip(l.Message, maxLegacyMessage)
	if before != nil && before.Status == l.Status {
		l.LastTransitionTime = before.LastTransitionTime
	}
	return l
}

func legacyOf(conditions clusterv1.Conditions, t clusterv1.ConditionType) *clusterv1.Condition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}
