package contract

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Object is a provider object together with the contract version that its API version fulfils.
type Object struct {
	*unstructured.Unstructured
	Contract Version
}

// Endpoint is where an API server answers.
type Endpoint struct {
	Host string `json:"host,omitempty"`
	// Port, 1 to 65535.
	Port int32 `json:"port,omitempty"`
}

// IsValid reports whether both host and port are set.
func (e Endpoint) IsValid() bool { return e.Host != "" && e.Port > 0 }

// flag returns the boolean at the v1beta2 path, or at the v1beta1 path for objects of that contract.
func (o Object) flag(v1beta2, v1beta1 string) Field[bool] {
	if o.Contract == V1Beta1 {
		return read[bool](o.Object, v1beta1)
	}
	return read[bool](o.Object, v1beta2)
}

// Failure is the terminal failure that objects of contract v1beta1 may report (CT-08).
type Failure struct{ Reason, Message string }

// Failure returns what status.failureReason and status.failureMessage say; both empty where nothing failed.
// Objects of contract v1beta2 never report one.
func (o Object) Failure() Failure {
	if o.Contract != V1Beta1 {
		return Failure{}
	}
	return o.reported()
}

// reported is the failure that the object reports, whatever contract it follows.
func (o Object) reported() Failure {
	return Failure{
		Reason:  read[string](o.Object, "status.failureReason").Or(""),
		Message: read[string](o.Object, "status.failureMessage").Or(""),
	}
}

// Condition returns the condition of the type (CT-07), from status.conditions of either layout: conditions
// with a severity (CT-12) are read too. The reason of a v1beta1 condition that has none is made from its
// status. A condition that cannot be read is an Unreadable field.
func (o Object) Condition(conditionType string) Field[metav1.Condition] {
	path := "status.conditions[" + conditionType + "]"
	for _, list := range []string{"status.conditions", "status.v1beta2.conditions"} {
		raw, ok := read[[]any](o.Object, list).Get()
		if !ok {
			continue
		}
		for _, item := range raw {
			m, ok := item.(map[string]any)
			if !ok || m["type"] != conditionType {
				continue
			}
			return readCondition(path, m)
		}
	}
	return Field[metav1.Condition]{presence: Missing, path: path}
}

func readCondition(path string, m map[string]any) Field[metav1.Condition] {
	text := func(key string) string { s, _ := m[key].(string); return s }
	c := metav1.Condition{
		Type: text("type"), Status: metav1.ConditionStatus(text("status")),
		Reason: text("reason"), Message: text("message"),
	}
	switch c.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		return Field[metav1.Condition]{presence: Unreadable, path: path,
			cause: fmt.Errorf("status is %q, want True, False or Unknown", c.Status)}
	}
	if c.Reason == "" {
		c.Reason = "Reported" + string(c.Status)
	}
	switch n := m["observedGeneration"].(type) {
	case int64:
		c.ObservedGeneration = n
	case float64:
		c.ObservedGeneration = int64(n)
	}
	if at, err := time.Parse(time.RFC3339, text("lastTransitionTime")); err == nil {
		c.LastTransitionTime = metav1.NewTime(at)
	}
	return Field[metav1.Condition]{presence: Found, path: path, value: c}
}

// Ready returns the Ready condition.
func (o Object) Ready() Field[metav1.Condition] { return o.Condition(clusterv1.ReadyCondition) }
