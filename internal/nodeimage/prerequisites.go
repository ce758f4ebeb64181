package nodeimage

import (
	"fmt"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// prerequisite is a program that a build needs on this host, with installation advice.
type prerequisite struct{ program, advice string }

func prerequisites(root bool) []prerequisite {
	out := []prerequisite{
		{"go", "the Go toolchain, version 1.26 or newer, as the Go project describes it, and put go in PATH"},
		{"mmdebstrap", "it with: apt-get install mmdebstrap"},
	}
	if !root {
		out = append(out, prerequisite{"newuidmap", "it with: apt-get install uidmap, or build as root"})
	}
	return out
}

// checkPrerequisites returns a fault of kind Invalid that lists all programs to install, or nil. [Build] and
// [BuildHostParts] call it first. The function look finds a program in PATH.
func checkPrerequisites(need []prerequisite, look func(string) (string, error)) error {
	var advice []string
	for _, p := range need {
		if _, err := look(p.program); err != nil {
			advice = append(advice, fmt.Sprintf("%s is missing: install %s", p.program, p.advice))
		}
	}
	if len(advice) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "MissingPrograms", "cannot build a node image: %s", strings.Join(advice, "; "))
}
