package lint

import (
	"cmp"
	"slices"
)

// Rule is a rule for provider releases. `slipway provider lint --rules` lists them.
type Rule struct {
	// Name is stable.
	Name string `json:"name"`
	// Description is the rule in one sentence.
	Description string `json:"says"`
	// Mandatory is false for a rule that is only advice.
	Mandatory bool `json:"mandatory"`

	check func(*release, reporter)
}

// reporter records a violation: the file (empty for the whole release), the object (empty for the whole file), and a
// message. [lint] passes one to the check of each rule.
type reporter func(file, object, format string, args ...any)

// Finding is a violation of a rule, also in the structured output of `slipway provider lint`.
type Finding struct {
	Rule      string `json:"rule"`
	Mandatory bool   `json:"mandatory"`
	// Release is the folder of the release, relative to the checked folder.
	Release string `json:"release"`
	// File is a file of the release; empty for the whole release.
	File string `json:"file,omitempty"`
	// Object is an object of the file, as Kind/name; empty for the whole file.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
}

// Rules returns all rules in the order in which they are checked. `slipway provider lint` also lists them.
func Rules() []Rule {
	return slices.Concat(repositoryRules(), componentRules(), workloadRules(), kindRules(), roleRules(), templateRules())
}

// lint checks one release. [Dir] calls it for each release.
func lint(r *release) []Finding {
	var out []Finding
	for _, rule := range Rules() {
		rule.check(r, func(file, object, format string, args ...any) {
			out = append(out, Finding{rule.Name, rule.Mandatory, r.folder, file, object, sprintf(format, args...)})
		})
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.File, b.File) })
	return slices.Compact(out)
}

// Mandatory counts the findings of mandatory rules. `slipway provider lint` fails if the count is not zero.
func Mandatory(findings []Finding) (n int) {
	for _, f := range findings {
		if f.Mandatory {
			n++
		}
	}
	return n
}
