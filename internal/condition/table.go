package condition

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage is the maximum length in bytes that the API accepts for a condition's message.
const maxMessage = 32768

// Polarity specifies which status of a condition is the good one. Each [Row] has one, and [Aggregate] and [Project] use
// it.
type Polarity int

const (
	// Positive conditions are good when True.
	Positive Polarity = iota
	// Negative conditions are good when False.
	Negative
)

// Result is the computed status, reason and message of a condition. The function of a [Row] returns one.
type Result struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// True returns a True result without a message, because type and reason explain it. The rows of the controllers return
// it.
func True(reason string) Result { return Result{Status: metav1.ConditionTrue, Reason: reason} }

// TrueBecause returns a True result with a message. The rows of the controllers return it.
func TrueBecause(reason, message string) Result {
	return Result{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False returns a False result, whose message explains it. The rows of the controllers return it.
func False(reason, message string) Result {
	return Result{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown returns an Unknown result, whose message explains it. The rows of the controllers return it.
func Unknown(reason, message string) Result {
	return Result{Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// Absent returns the result for a condition that does not apply and must not be on the object. The rows of the
// controllers return it.
func Absent() Result { return Result{} }

// Set is a list of conditions with at most one of each type. Controllers and commands convert the conditions that they
// have read to it.
type Set []metav1.Condition

// Get returns the condition of the type, or nil.
func (s Set) Get(conditionType string) *metav1.Condition {
	for i := range s {
		if s[i].Type == conditionType {
			return &s[i]
		}
	}
	return nil
}

// IsTrue reports whether the condition is present and True.
func (s Set) IsTrue(conditionType string) bool {
	c := s.Get(conditionType)
	return c != nil && c.Status == metav1.ConditionTrue
}

// IsFalse reports whether the condition is present and False.
func (s Set) IsFalse(conditionType string) bool {
	c := s.Get(conditionType)
	return c != nil && c.Status == metav1.ConditionFalse
}

// Row is one condition of a kind. Exactly one of Compute and Summarize is set. Compute computes the condition from the
// snapshot. Summarize also receives the conditions of the rows above it and the conditions of other writers.
// Controllers list their rows in a [Table].
type Row[S any] struct {
	Type      string
	Polarity  Polarity
	Compute   func(S) Result
	Summarize func(S, Set) Result
}

// Table contains all conditions that one controller writes on one kind, in the order of their dependencies. A condition
// that is removed from a table disappears from the objects, because the controller applies the whole list. A controller
// declares one and calls [Table.Evaluate].
type Table[S any] []Row[S]

// EvaluateOptions contains the inputs of a table's evaluation besides the snapshot. For most controllers, package
// reconciler fills it (EvaluateOptionsFor).
type EvaluateOptions struct {
	// Generation is the generation of the object in the snapshot.
	Generation int64
	// Now is the time of the snapshot.
	Now time.Time
	// Old contains the conditions on the object, including those of other writers.
	Old []metav1.Condition
}

// Evaluate returns the conditions of the table's rows. Controllers call it after each reconciliation, when they compute
// the new status. The conditions of other writers in [EvaluateOptions.Old] are visible to the rows but not part of the
// result.
func (t Table[S]) Evaluate(s S, at EvaluateOptions) []metav1.Condition {
	seen := make(Set, 0, len(at.Old)+len(t))
	for _, c := range at.Old {
		if !t.owns(c.Type) {
			seen = append(seen, c)
		}
	}
	out := make([]metav1.Condition, 0, len(t))
	for _, row := range t {
		verdict := row.evaluate(s, seen)
		if verdict.Status == "" {
			continue
		}
		c := stamp(row.Type, verdict, at)
		out, seen = append(out, c), append(seen, c)
	}
	return out
}

// Polarity returns the polarity of a condition type in the table. Unknown types are positive.
func (t Table[S]) Polarity(conditionType string) Polarity {
	for _, row := range t {
		if row.Type == conditionType {
			return row.Polarity
		}
	}
	return Positive
}

func (t Table[S]) owns(conditionType string) bool {
	for _, row := range t {
		if row.Type == conditionType {
			return true
		}
	}
	return false
}

func (r Row[S]) evaluate(s S, seen Set) Result {
	if r.Summarize != nil {
		return r.Summarize(s, seen)
	}
	return r.Compute(s)
}

// stamp returns the condition for a result. Only here are observedGeneration and lastTransitionTime set; the latter
// changes only with the status.
func stamp(conditionType string, v Result, at EvaluateOptions) metav1.Condition {
	c := metav1.Condition{
		Type: conditionType, Status: v.Status, Reason: reasonOf(v), Message: clip(v.Message, maxMessage),
		ObservedGeneration: at.Generation,
		LastTransitionTime: metav1.NewTime(at.Now.Truncate(time.Second)),
	}
	if old := Set(at.Old).Get(conditionType); old != nil && old.Status == v.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}

// clip truncates a message to the given number of bytes and makes it valid UTF-8.
func clip(message string, most int) string {
	const more = " …"
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= most {
		return message
	}
	cut := most - len(more)
	for cut > 0 && message[cut]&0xC0 == 0x80 { // do not cut a rune in two
		cut--
	}
	return message[:cut] + more
}

// reasonOf converts a reason to the form that the API requires (a letter, then letters, digits, "_", "," and ":").
// Mirrored reasons of other clients may be malformed and must not cause the API to reject the status.
func reasonOf(v Result) string {
	const most = 1024
	reason := strings.Map(func(r rune) rune {
		if r == '_' || r == ',' || r == ':' || r >= '0' && r <= '9' || isLetter(r) {
			return r
		}
		return '_'
	}, v.Reason)
	if len(reason) > most {
		reason = reason[:most]
	}
	reason = strings.TrimRight(reason, ",:")
	switch {
	case reason == "":
		return "Reported" + string(v.Status)
	case !isLetter(rune(reason[0])):
		return "Reason" + reason[:min(len(reason), most-len("Reason"))]
	}
	return reason
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
