package kube

import "sigs.k8s.io/controller-runtime/pkg/client"

// OwnsCondition reports whether the controller is an owner of the condition in status.conditions: it applied the
// condition and has not removed it since. Another writer may have changed it.
func OwnsCondition(o client.Object, controller, conditionType string) bool {
	return hasCondition(owned(o.GetManagedFields(), Prefix+controller, statusSubresource), conditionType)
}

// IsOwnedUpstream reports whether field manager [upstreamManager], which Cluster API's controllers use, still owns a
// condition in status.conditions, because its ownership was not transferred; see [Writer.TransferStatusOwnership].
func IsOwnedUpstream(o client.Object, conditionType string) bool {
	for _, e := range o.GetManagedFields() {
		if e.Manager == upstreamManager && e.Subresource == statusSubresource && e.FieldsV1 != nil &&
			hasCondition(parsedFieldSets.object(e.FieldsV1.GetRawBytes()), conditionType) {
			return true
		}
	}
	return false
}

// hasCondition reports whether the fields include a condition.
func hasCondition(fields map[string]any, conditionType string) bool {
	for _, step := range []string{"f:status", "f:conditions", `k:{"type":"` + conditionType + `"}`} {
		below, ok := fields[step].(map[string]any)
		if !ok {
			return false
		}
		fields = below
	}
	return true
}
