package contract

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Object is a provider object together with the contract version that its API version fulfils. The zero value is one that
// does not exist.
type Object struct {
	*unstructured.Unstructured
	Contract Version
	// Problem says what a person has to change before the object can be used: without an Unstructured, why it cannot be read.
	Problem string
}

// Presence tells whether there is an object and, if not, why: Missing, Unreadable or Found.
func (o Object) Presence() Presence {
	switch {
	case o.Unstructured != nil:
		return Found
	case o.Problem != "":
		return Unreadable
	}
	return Missing
}

// Target returns the object that a view of it sees.
func (o Object) Target() Object { return o }

func (o Object) content() map[string]any {
	if o.Unstructured == nil {
		return nil
	}
	return o.Unstructured.Object
}

// View is what the views of all contracts have in common. One of an object that does not exist has no field.
type View interface {
	// Target returns the object that is seen.
	Target() Object
	// Completion tells whether the object has done what it is for.
	Completion() Completion
	// Err returns what is wrong with the first field that cannot be read, nil where all can.
	Err() error
}

// Completion is how a provider object says that it has done what it is for.
type Completion struct {
	// Flag is true then.
	Flag Field[bool]
	// Result is what it has to name then; NotSet where the contract asks for nothing.
	Result Field[string]
}

// Done reports whether the flag is true and the result is there.
func (c Completion) Done() bool { return c.Flag.Or(false) && !c.Unnamed() }

// Unnamed reports whether the object says that it is done, and not what came of it.
func (c Completion) Unnamed() bool {
	return c.Flag.Or(false) && c.Result.presence != NotSet && c.Result.Or("") == ""
}

// Endpoint is where an API server answers.
type Endpoint struct {
	Host string `json:"host,omitempty"`
	// Port, 1 to 65535.
	Port int32 `json:"port,omitempty"`
}

// IsValid reports whether both host and port are set.
func (e Endpoint) IsValid() bool { return e.Host != "" && e.Port > 0 }

// whole returns the endpoint, which is not readable where an object that is done has set only half of it.
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

// flag returns the boolean at the v1beta2 path, or at the v1beta1 path for objects of that contract.
func (o Object) flag(v1beta2, v1beta1 string) Field[bool] {
	if o.Contract == V1Beta1 {
		return read[bool](o, v1beta1)
	}
	return read[bool](o, v1beta2)
}

// Failure is the terminal failure that objects of contract v1beta1 may report.
type Failure struct{ Reason, Message string }

// Failure returns what status.failureReason and status.failureMessage say; both empty where nothing failed.
// Objects of contract v1beta2 never report one.
func (o Object) Failure() Failure {
	if o.Contract != V1Beta1 {
		return Failure{}
	}
	return o.ReportedFailure()
}

// ReportedFailure returns the terminal failure that the object reports, whatever contract it follows.
func (o Object) ReportedFailure() Failure {
	return Failure{
		Reason:  read[string](o, "status.failureReason").Or(""),
		Message: read[string](o, "status.failureMessage").Or(""),
	}
}

// Condition returns the condition of the type, from status.conditions of either layout: conditions
// with a severity are read too. The reason of a v1beta1 condition that has none is made from its
// status. A condition that cannot be read is an Unreadable field.
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

// isFalseBecause reports whether a condition of either layout is False for the reason.
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
