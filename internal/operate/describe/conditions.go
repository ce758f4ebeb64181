package describe

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// conditionsOf reads the conditions for an object's row of the tree, in any layout that Cluster API's contract allows:
//
//	                      v1beta2 requested              v1beta1 requested
//	v1beta2 contract      status.conditions              status.deprecated.v1beta1.conditions
//	v1beta1 contract      status.v1beta2.conditions      status.conditions
//
// If an object has only one of the two layouts, its conditions are used.
func conditionsOf(content map[string]any, deprecated bool) []Condition {
	paths := [][]string{{"status", "v1beta2", "conditions"}, {"status", "conditions"}}
	if deprecated {
		paths = [][]string{{"status", "deprecated", "v1beta1", "conditions"}, {"status", "conditions"}}
	}
	for _, path := range paths {
		list, _, _ := unstructured.NestedSlice(content, path...)
		if len(list) > 0 {
			return parse(list)
		}
	}
	return nil
}

func parse(list []any) []Condition {
	var conditions []Condition
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		text := func(name string) string { s, _ := fields[name].(string); return s }
		c := Condition{
			Type:     text("type"),
			Status:   metav1.ConditionStatus(text("status")),
			Severity: text("severity"),
			Reason:   text("reason"),
			Message:  text("message"),
		}
		c.ObservedGeneration, _ = fields["observedGeneration"].(int64)
		if at, err := time.Parse(time.RFC3339, text("lastTransitionTime")); err == nil {
			c.LastTransitionTime = metav1.NewTime(at)
		}
		if c.Type != "" {
			conditions = append(conditions, c)
		}
	}
	slices.SortFunc(conditions, func(a, b Condition) int {
		return cmp.Or(cmp.Compare(rank(a.Type), rank(b.Type)), cmp.Compare(a.Type, b.Type))
	})
	return conditions
}

// rank sorts summary conditions before the others.
func rank(conditionType string) int {
	switch conditionType {
	case "Available":
		return 0
	case "Ready":
		return 1
	default:
		return 2
	}
}

// ConditionsOf returns the conditions of a provider object, in v1beta2 form if available. Package progress, `slipway
// explain` (package rootcause) and the web page (package ui) read conditions with it.
func ConditionsOf(u *unstructured.Unstructured) []Condition { return conditionsOf(u.Object, false) }
