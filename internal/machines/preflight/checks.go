package preflight

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Check is one check.
type Check[F any] struct {
	// Name by which users choose and skip it.
	Name string
	// Blocker says what speaks against creating a Machine; empty: nothing.
	Blocker func(F) string
}

// Checks are run in this order.
type Checks[F any] []Check[F]

// Names are those of the checks.
func (c Checks[F]) Names() []string {
	var out []string
	for _, check := range c {
		out = append(out, check.Name)
	}
	return out
}

// Filter returns the checks whose names are to be kept.
func (c Checks[F]) Filter(keep func(name string) bool) Checks[F] {
	var out Checks[F]
	for _, check := range c {
		if keep(check.Name) {
			out = append(out, check)
		}
	}
	return out
}

// Blockers are the messages of the checks that fail, with their names.
func (c Checks[F]) Blockers(facts F) []string {
	var out []string
	for _, check := range c {
		if message := check.Blocker(facts); message != "" {
			out = append(out, fmt.Sprintf("%s (preflight check %s)", message, check.Name))
		}
	}
	return out
}

// IsSkipped reports whether a check, or all of them, is in one of the lists of names that are separated by commas.
func IsSkipped(name string, lists ...string) bool {
	return slices.ContainsFunc(lists, func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(skipped string) bool {
			skipped = strings.TrimSpace(skipped)
			return skipped == name || skipped == string(clusterv1.MachineSetPreflightCheckAll)
		})
	})
}
