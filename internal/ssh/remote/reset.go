package remote

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	resetTimeout = 4 * time.Minute
	// maxLeftovers limits the reported leftovers.
	maxLeftovers = 50
	// MaxLogLines limits the lines of a log. `slipway logs node` requests so many if the user wants all.
	MaxLogLines = 10_000
)

// Leftover is something that cleaning did not remove. The SSHHost controller lists them in the fault of a cleaning.
type Leftover struct {
	// Kind is the kind of the thing, such as "mount", "process" or "path".
	Kind string
	// Item names it.
	Item string
}

// String returns the leftover as text.
func (l Leftover) String() string { return l.Kind + " " + l.Item }

// Reset removes everything that a node of the target's claim left on the host, except for bundles, and compares the host
// with its inventory from before the first change. It returns what remains; the host is clean if that is empty. Bundles
// with files of another size or time are deleted. It may be repeated. The record stays until [Host.DeleteRecord]. A host
// without an inventory of the claim is left unchanged, which is a fault unless it is clean. The job of the SSHHost
// controller that cleans the host calls it.
func (h *Host) Reset(ctx context.Context) ([]Leftover, error) {
	claim, err := h.claimParameter()
	if err != nil {
		return nil, err
	}
	out, err := h.run(ctx, call{script: "node-reset", parameters: []parameter{claim}, timeout: resetTimeout})
	if err = claimConflict(h.target, err); err != nil {
		return nil, fmt.Errorf("cleaning the host: %w", err)
	}
	v := values(string(out), "RESET", "LEFTOVER")
	if first(v, "RESET") != "true" {
		return nil, errUnexpected("node-reset")
	}
	return leftovers(v["LEFTOVER"]), nil
}

func leftovers(lines []string) (out []Leftover) {
	for _, line := range lines {
		kind, item, _ := strings.Cut(line, " ")
		if len(out) < maxLeftovers {
			out = append(out, Leftover{Kind: fact(kind), Item: fact(item)})
		}
	}
	return out
}

// RemoveBundles deletes the bundles on a host without a record. Without a claim of the target, nothing of Slipway stays on
// the host. After a claim, the checklist of its cleaning stays. `slipway hosts remove` and the SSHHost controller call it.
func (h *Host) RemoveBundles(ctx context.Context) error {
	claim, err := h.claimParameter()
	if err != nil {
		return err
	}
	_, err = h.run(ctx, call{script: "bundle-remove", parameters: []parameter{claim}, timeout: resetTimeout})
	return claimConflict(h.target, err)
}

// Reboot reboots the host and returns at once. [Host.BootID] changes when it is up again. `slipway hosts reboot` calls
// it.
func (h *Host) Reboot(ctx context.Context) error {
	_, err := h.run(ctx, call{script: "reboot"})
	if fault.KindOf(err) == fault.Unreachable && h.rebooting(ctx) {
		return nil // the connection ended before the response
	}
	return err
}

// rebooting reports whether the host has become unreachable.
func (h *Host) rebooting(ctx context.Context) bool {
	_, err := h.BootID(ctx)
	return err != nil
}

// BootID returns an ID that changes with each boot. `slipway hosts reboot` compares it before and after the reboot.
func (h *Host) BootID(ctx context.Context) (string, error) {
	out, err := h.run(ctx, call{script: "boot-id"})
	if err != nil {
		return "", err
	}
	return fact(string(out)), nil
}

// unitName matches the units whose logs can be read.
var unitName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// Logs returns the last lines of the journal of a unit, such as "kubelet", or of the bootstrap data for "bootstrap". They
// may contain secrets. `slipway hosts logs` and `slipway logs node` call it.
func (h *Host) Logs(ctx context.Context, unit string, lines int) ([]byte, error) {
	if !unitName.MatchString(unit) || lines < 1 || lines > MaxLogLines {
		return nil, fault.New(fault.Invalid, "InvalidUnit", "the logs of unit %.64q with %d lines cannot be read: the name has lower-case letters, digits and -, and at most %d lines are returned", unit, lines, MaxLogLines)
	}
	out, err := h.run(ctx, call{script: "logs", parameters: []parameter{{"UNIT", unit}, {"LINES", strconv.Itoa(lines)}}})
	var failed *scriptError
	if errors.As(err, &failed) {
		return nil, fault.New(fault.Invalid, "NoLogs", "host %s has no logs of %s: %s", h.target.Address, unit, failed.errors)
	}
	return out, err
}
