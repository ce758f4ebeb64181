package lint

import (
	"cmp"
	"slices"
)

// Rule is one rule of the contract.
type Rule struct {
	// Name does not change.
	Name string `json:"name"`
	// Says is the rule in one sentence.
	Says string `json:"says"`
	// Mandatory rules have to be kept; the others are advice.
	Mandatory bool `json:"mandatory"`

	check func(*release, reporter)
}

// reporter takes what breaks a rule: the file (empty: the release), the object (empty: the file), and how.
type reporter func(file, object, format string, args ...any)

// Finding is a rule that is broken.
type Finding struct {
	Rule      string `json:"rule"`
	Mandatory bool   `json:"mandatory"`
	// Release is the folder of the release, below the one that was checked.
	Release string `json:"release"`
	// File of the release; empty: all of it.
	File string `json:"file,omitempty"`
	// Object of the file, as Kind/name; empty: all of it.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
}

// Rules are all rules, in the order in which they are checked.
func Rules() []Rule {
	return slices.Concat(repositoryRules(), componentRules(), workloadRules(), kindRules(), roleRules(), templateRules())
}

// lint checks one release.
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

// Mandatory counts the findings of mandatory rules.
func Mandatory(findings []Finding) (n int) {
	for _, f := range findings {
		if f.Mandatory {
			n++
		}
	}
	return n
}
