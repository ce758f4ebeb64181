package container

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// Journal selects a part of a machine's journal. `slipway logs` fills it in for nodes.
type Journal struct {
	Bootstrap bool     // the output of bootstrap data instead of the journal
	Lines     int      // the number of last lines; below 0: all
	Units     []string // systemd units; none: all
	Follow    bool     // also new lines, until the context ends
}

func (j Journal) command() []string {
	if j.Bootstrap {
		lines := "+1"
		if j.Lines >= 0 {
			lines = strconv.Itoa(j.Lines)
		}
		command := []string{"tail", "-n", lines}
		if j.Follow {
			command = append(command, "-f")
		}
		return append(command, logFile)
	}
	lines := "all"
	if j.Lines >= 0 {
		lines = strconv.Itoa(j.Lines)
	}
	command := []string{"journalctl", "--no-pager", "--quiet", "--output", "short-iso", "--lines", lines}
	for _, unit := range j.Units {
		command = append(command, "--unit="+unit)
	}
	if j.Follow {
		command = append(command, "--follow")
	}
	return command
}

// Journal writes the selected part of a running machine's journal to out, for `slipway logs node`.
func (e *Engine) Journal(ctx context.Context, ref backend.Ref, j Journal, out io.Writer) error {
	c, err := e.running(ctx, ref)
	if err != nil {
		return err
	}
	code, _, err := e.stream(ctx, c, j.command(), strings.NewReader(""), out)
	switch {
	case err != nil:
		return err
	case code != 0 && j.Bootstrap:
		return fault.New(fault.Invalid, reasonError, "container %s has no output of bootstrap data yet", c.name)
	case code != 0:
		return fault.New(fault.Invalid, reasonError, "journalctl in container %s ended with code %d", c.name, code)
	}
	return nil
}
