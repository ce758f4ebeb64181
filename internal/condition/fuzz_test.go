package condition_test

import (
	"regexp"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/condition"
)

// reasonForm is what the API accepts as a reason.
var reasonForm = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// FuzzMirror: whatever a provider says in a condition, what is made of it (repeated, summarized, aggregated, projected
// to v1beta1) is accepted by the API.
func FuzzMirror(f *testing.F) { // CO-01, CO-02, CT-07
	f.Add("True", "Ready", "")
	f.Add("False", "", "a\nb")
	f.Add("Unknown", "has spaces, and: more,", "* nested:\n  * text")
	f.Add("False", "9lives", "\xff\xfe not text")
	f.Add("False", "Grüße", string(make([]byte, condition.MaxMessage+1)))
	f.Add("False", ",", "…")
	f.Fuzz(func(t *testing.T, status, reason, message string) {
		if status != "True" && status != "False" && status != "Unknown" {
			return // the views of package contract do not give such a condition
		}
		source := condition.Set{{Type: "Ready", Status: metav1.ConditionStatus(status), Reason: reason, Message: message}}
		reasons := condition.Reasons{Info: "Good", Issue: "Bad", Unknown: "NotKnown"}
		members := []condition.AggregateMember{{Kind: "Machine", Name: "a", Conditions: source}, {Kind: "Machine", Name: "b", Conditions: source}}
		table := condition.Table[int]{
			{Type: "Mirror", Compute: func(int) condition.Result { return condition.Mirror(source, "Ready", condition.Absent()) }},
			{Type: "Summary", Summarize: func(_ int, set condition.Set) condition.Result {
				return condition.Summarize(set, reasons, condition.Part{Type: "Mirror", Optional: true})
			}},
			{Type: "All", Compute: func(int) condition.Result {
				return condition.Aggregate(members, condition.Part{Type: "Ready"}, reasons)
			}},
			{Type: "None", Polarity: condition.Negative, Compute: func(int) condition.Result {
				return condition.Aggregate(members, condition.Part{Type: "Ready", Polarity: condition.Negative}, reasons)
			}},
		}
		out := table.Evaluate(0, condition.EvaluateOptions{Now: time.Unix(0, 0)})
		for _, c := range out {
			if !reasonForm.MatchString(c.Reason) || len(c.Reason) > 1024 || len(c.Message) > condition.MaxMessage || !utf8.ValidString(c.Message) {
				t.Errorf("%s is refused: reason %q, message of %d bytes", c.Type, c.Reason, len(c.Message))
			}
		}
		legacy := condition.Project([]condition.V1Beta1Row{{Type: "Ready", From: "Mirror"}, {Type: "All", From: "All"}}, out, nil)
		for _, c := range legacy {
			if len(c.Reason) > 256 || len(c.Message) > 10240 || !utf8.ValidString(c.Message) {
				t.Errorf("%s of v1beta1 is refused: reason of %d bytes, message of %d", c.Type, len(c.Reason), len(c.Message))
			}
		}
		again := table.Evaluate(0, condition.EvaluateOptions{Now: time.Unix(1e9, 0), Old: out})
		for i := range again {
			if again[i] != out[i] {
				t.Errorf("%s changes although nothing did: %+v, %+v", out[i].Type, out[i], again[i])
			}
		}
		_ = condition.Project([]condition.V1Beta1Row{{Type: "Ready", From: "Mirror"}}, again, legacy)
	})
}
