package contract

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Object is a provider object with the contract version of its API version. The zero value represents an object that
// does not exist.
type Object struct {
	*unstructured.Unstructured
	Contract Version
	// Problem is a problem that a user must solve before the object can be used. If Unstructured is nil, it is the
	// reason why the object cannot be read.
	Problem string
}

// Presence reports whether the object exists, is missing, or is unreadable.
func (o Object) Presence() Presence {
	switch {
	case o.Unstructured != nil:
		return Found
	case o.Problem != "":
		return Unreadable
	}
	return Missing
}

// Target returns the object itself; see [View].
func (o Object) Target() Object { return o }

func (o Object) content() map[string]any {
	if o.Unstructured == nil {
		return nil
	}
	return o.Unstructured.Object
}

// View is the common interface of the views of all contracts. The view of an object that does not exist has no fields.
type View interface {
	// Target returns the underlying object.
	Target() Object
	// Completion reports whether the object has completed its purpose.
	Completion() Completion
	// Err returns the error of the first unreadable field, or nil.
	Err() error
}

// Completion reports whether a provider object has completed its purpose.
type Completion struct {
	// Flag is true if it has.
	Flag Field[bool]
	// Result is the result that it must report then; NotSet if the contract does not require one.
	Result Field[string]
}

// Done reports whether the flag is true and the result is set.
func (c Completion) Done() bool { return c.Flag.Or(false) && !c.Unnamed() }

// Unnamed reports whether the flag is true, but the result is missing.
func (c Completion) Unnamed() bool {
	return c.Flag.Or(false) && c.Result.presence != NotSet && c.Result.Or("") == ""
}

// Endpoint is the address of an API server.
type Endpoint struct {
	Host string `json:"host,omitempty"`
	// Port is in the range 1 to 65535.
	Port int32 `json:"port,omitempty"`
}

// IsValid reports whether both host and port are set.
func (e Endpoint) IsValid() bool { return e.Host != "" && e.Port > 0 }

// whole returns the endpoint, marked as unreadable if a completed object has set only its host or its port.
func whole(endpoint Field[Endpoint], done Field[bool]) Field[Endpoint] {
	return endpoint.checked(func(e Endpoint) error {
		switch {
		case !done.Or(false) || e.IsValid() || e == Endpoint{}:
			return nil
		case e.Host == "":
			return errors.New("want host and port, have no host")
		}
		return errors.New("want host and port, have no port")
	})
}

// flag returns the boolean at the v1beta2 path, or at the v1beta1 path for objects of this contract.
func (o Object) flag(v1beta2, v1beta1 string) Field[bool] {
	if o.Contract == V1Beta1 {
		return read[bool](o, v1beta1)
	}
	return read[bool](o, v1beta2)
}

// Failure is the terminal failure of an object of contract v1beta1.
type Failure struct{ Reason, Message string }

// Failure returns status.failureReason and status.failureMessage; both are empty if there is no failure. It is always
// empty for objects of contract v1beta2.
func (o Object) Failure() Failure {
	if o.Contract != V1Beta1 {
		return Failure{}
	}
	return o.ReportedFailure()
}

// ReportedFailure returns the terminal failure that the object reports, regardless of its contract.
func (o Object) ReportedFailure() Failure {
	return Failure{
		Reason:  read[string](o, "status.failureReason").Or(""),
		Message: read[string](o, "status.failureMessage").Or(""),
	}
}

// Condition returns the condition of the type from status.conditions of either layout; conditions with a severity are
// supported, too. A v1beta1 condition without a reason gets one derived from its status. A malformed condition is an
// Unreadable field.
func (o Object) Condition(conditionType string) Field[metav1.Condition] {
	path := "status.conditions[" + conditionType + "]"
	missing := Field[metav1.Condition]{presence: Missing, path: path}
	for _, at := range []string{"status.conditions", "status.v1beta2.conditions"} {
		list := read[[]any](o, at)
		if list.presence == Unreadable {
			return Field[metav1.Condition]{presence: Unreadable, path: at, cause: list.cause}
		}
		for i, item := range list.value {
			m, ok := item.(map[string]any)
			switch {
			case !ok:
				missing = Field[metav1.Condition]{presence: Unreadable, path: at, cause: fmt.Errorf("item %d is not a condition", i)}
			case m["type"] == conditionType:
				return readCondition(path, m)
			}
		}
	}
	return missing
}

// isFalseBecause reports whether a condition of either layout is False with the reason.
func (o Object) isFalseBecause(reason string) bool {
	for _, list := range []string{"status.conditions", "status.v1beta2.conditions"} {
		for _, item := range read[[]any](o, list).Or(nil) {
			if m, ok := item.(map[string]any); ok && m["status"] == string(metav1.ConditionFalse) && m["reason"] == reason {
				return true
			}
		}
	}
	return false
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
