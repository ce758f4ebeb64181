package kube

import "sigs.k8s.io/controller-runtime/pkg/client"

// OwnsCondition reports whether the controller owns a share of the condition in status.conditions: it applied the
// condition once, and has not given it up since. Somebody else may have changed it.
func OwnsCondition(o client.Object, controller, conditionType string) bool {
	fields := owned(o.GetManagedFields(), Prefix+controller, "status")
	for _, step := range []string{"f:status", "f:conditions", `k:{"type":"` + conditionType + `"}`} {
		below, ok := fields[step].(map[string]any)
		if !ok {
			return false
		}
		fields = below
	}
	return true
}
