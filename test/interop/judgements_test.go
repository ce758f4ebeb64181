package interop

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

var update = flag.Bool("update", false, "rewrite testdata/webhooks.yaml")

// judgement is why tests of the reference fail with Slipway, or why the two differ in them.
type judgement struct {
	Reason string `json:"reason"`
	// Outcome is what all these tests have in common: how the results of the two compare.
	Outcome string   `json:"outcome"`
	Tests   []string `json:"tests"`
}

const judgementsHeader = `# The tests of the reference's webhooks that fail with the admission of Slipway, and those in which the two differ.
# outcome: refused, accepted (by Slipway alone), defaults, warnings (others), schema (Slipway's CRD refuses), same (the verdict), none (no review).
# After a change: (cd test/interop && go test -run TestReferenceWebhooks . -update), then give each entry without a reason one.
`

// compareJudgements compares the differences, outcomes by tests, with a list of judgements.
func compareJudgements(t *testing.T, path string, differences map[string]string, tests map[string]*tested) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	var list []judgement
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	known := map[string]string{}
	for _, j := range list {
		if j.Reason == "" && !*update {
			t.Errorf("%s: %d tests have no reason: fix Slipway's admission, or write why the two differ", path, len(j.Tests))
		}
		for _, name := range j.Tests {
			known[name] = j.Outcome
		}
	}
	if *update {
		for name, outcome := range differences {
			t.Logf("%s: %s\n%s", name, outcome, tests[name]) // shown with -v
		}
		if err := os.WriteFile(path, []byte(judgementsText(updated(list, differences))), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	const remedy = "fix internal/admission, or update the list as its first lines describe and give a reason"
	for name, outcome := range differences {
		if known[name] != outcome {
			t.Errorf("%s: the outcome is %q, and %q in %s: %s\n%s", name, outcome, known[name], path, remedy, tests[name])
		}
	}
	for name := range known {
		if _, still := differences[name]; !still {
			t.Errorf("%s: passes and does not differ any more: remove it from %s", name, path)
		}
	}
}

// updated is the list with the differences as they are: each keeps its reason while its outcome is the same.
func updated(list []judgement, differences map[string]string) (out []judgement) {
	left := map[string]string{}
	for name, outcome := range differences {
		left[name] = outcome
	}
	for _, j := range list {
		kept := judgement{Reason: j.Reason, Outcome: j.Outcome}
		for _, name := range j.Tests {
			if left[name] == j.Outcome && j.Reason != "" {
				kept.Tests = append(kept.Tests, name)
				delete(left, name)
			}
		}
		if len(kept.Tests) > 0 {
			out = append(out, kept)
		}
	}
	for _, outcome := range outcomes {
		added := judgement{Outcome: outcome}
		for name, o := range left {
			if o == outcome {
				added.Tests = append(added.Tests, name)
			}
		}
		if len(added.Tests) > 0 {
			out = append(out, added)
		}
	}
	return out
}

func judgementsText(list []judgement) string {
	var out strings.Builder
	out.WriteString(judgementsHeader)
	for _, j := range list {
		fmt.Fprintf(&out, "- reason: %q\n  outcome: %s\n  tests:\n", j.Reason, j.Outcome)
		slices.Sort(j.Tests)
		for _, name := range j.Tests {
			fmt.Fprintf(&out, "  - %q\n", name)
		}
	}
	return out.String()
}

// String shows why a test fails or differs.
func (r *tested) String() string {
	var out strings.Builder
	for _, o := range r.reviews {
		if o.Outcome != "same" || r.outcome() == "same" {
			fmt.Fprintf(&out, "  %s: %s\n    reference: %s\n    Slipway:   %s\n", o.Call, o.Outcome, o.Reference, o.Slipway)
			if o.Schema != "" {
				fmt.Fprintf(&out, "    schema:    %s\n", o.Schema)
			}
		}
	}
	if r.action != "pass" {
		for _, line := range r.output {
			if !strings.HasPrefix(strings.TrimSpace(line), "=== ") && !strings.HasPrefix(strings.TrimSpace(line), "--- ") {
				out.WriteString("  | " + line)
			}
		}
	}
	return out.String()
}
