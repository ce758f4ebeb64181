package machines

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// PreflightCheck is one named check that runs before a Machine is created. F is the input of the checks:
// [PreflightVersions] for MachineSets (see [WorkerChecks]), a type of its own for the KubeadmControlPlane controller.
type PreflightCheck[F any] struct {
	// Name is the name with which users select and skip the check.
	Name string
	// Blocker returns why a Machine must not be created now, or an empty string.
	Blocker func(F) string
}

// PreflightChecks run in this order. The MachineSet and KubeadmControlPlane controllers run them before they create a
// Machine.
type PreflightChecks[F any] []PreflightCheck[F]

// Names returns the names of the checks. The flags of the manager accept the names of [WorkerChecks].
func (c PreflightChecks[F]) Names() []string {
	var out []string
	for _, check := range c {
		out = append(out, check.Name)
	}
	return out
}

// Filter returns the checks for whose names keep returns true. The MachineSet controller removes skipped checks with
// it.
func (c PreflightChecks[F]) Filter(keep func(name string) bool) PreflightChecks[F] {
	var out PreflightChecks[F]
	for _, check := range c {
		if keep(check.Name) {
			out = append(out, check)
		}
	}
	return out
}

// Blockers returns the messages of the failing checks, with the names of the checks. The MachineSet and
// KubeadmControlPlane controllers call it before they change the number of Machines.
func (c PreflightChecks[F]) Blockers(facts F) []string {
	var out []string
	for _, check := range c {
		if message := check.Blocker(facts); message != "" {
			out = append(out, fmt.Sprintf("%s (preflight check %s)", message, check.Name))
		}
	}
	return out
}

// IsSkipped reports whether one of the comma-separated lists contains the name of the check, or the name that stands
// for all checks. The MachineSet controller calls it with the values of annotations that skip checks.
func IsSkipped(name string, lists ...string) bool {
	return slices.ContainsFunc(lists, func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(skipped string) bool {
			skipped = strings.TrimSpace(skipped)
			return skipped == name || skipped == string(clusterv1.MachineSetPreflightCheckAll)
		})
	})
}
