package preflight

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Check is one named check.
type Check[F any] struct {
	// Name is the name with which users select and skip the check.
	Name string
	// Blocker returns why a Machine must not be created now, or an empty string.
	Blocker func(F) string
}

// Checks run in this order.
type Checks[F any] []Check[F]

// Names returns the names of the checks.
func (c Checks[F]) Names() []string {
	var out []string
	for _, check := range c {
		out = append(out, check.Name)
	}
	return out
}

// Filter returns the checks for whose names keep returns true.
func (c Checks[F]) Filter(keep func(name string) bool) Checks[F] {
	var out Checks[F]
	for _, check := range c {
		if keep(check.Name) {
			out = append(out, check)
		}
	}
	return out
}

// Blockers returns the messages of the failing checks, with the names of the checks.
func (c Checks[F]) Blockers(facts F) []string {
	var out []string
	for _, check := range c {
		if message := check.Blocker(facts); message != "" {
			out = append(out, fmt.Sprintf("%s (preflight check %s)", message, check.Name))
		}
	}
	return out
}

// IsSkipped reports whether one of the comma-separated lists contains the name of the check, or the name that
// stands for all checks.
func IsSkipped(name string, lists ...string) bool {
	return slices.ContainsFunc(lists, func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(skipped string) bool {
			skipped = strings.TrimSpace(skipped)
			return skipped == name || skipped == string(clusterv1.MachineSetPreflightCheckAll)
		})
	})
}
