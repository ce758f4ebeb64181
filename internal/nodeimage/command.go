package nodeimage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// errorLines is how much of a failed command's output an error shows.
const errorLines = 15

// command is a program to run. Its standard error is kept for the error only.
type command struct {
	dir  string
	env  []string
	args []string
}

// run returns the standard output.
func (c command) run(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(c.args[:min(3, len(c.args))], " "), err, tail(errs.String()+out.String()))
	}
	return out.Bytes(), nil
}

// tail returns the last lines of a text.
func tail(text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-errorLines):], "\n")
}

// prerequisite is a program that a build needs and the package that has it.
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

// missing returns a fault of kind Invalid that names everything to install, or nil. look finds a program in PATH.
func missing(need []prerequisite, look func(string) (string, error)) error {
	var advice []string
	for _, p := range need {
		if _, err := look(p.program); err != nil {
			advice = append(advice, fmt.Sprintf("%s is missing: install %s", p.program, p.advice))
		}
	}
	if len(advice) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "MissingPrograms", "building a node image is not possible yet: %s", strings.Join(advice, "; "))
}
