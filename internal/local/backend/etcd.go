package backend

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/redact"
)

// EtcdRecovery reaches the etcd members of control planes through their machines, for recovery after the loss of
// quorum, when they cannot be reached through an API server. The LocalMachine controller calls it to carry out an order
// of the control plane controller (package recovery). Errors are faults.
type EtcdRecovery interface {
	// Survey returns the state that the etcd member on a machine reports.
	Survey(ctx context.Context, ref Ref) (recovery.MemberState, error)
	// Rebuild starts to make the etcd member on a machine the only member of its cluster, from its own data or from a
	// staged snapshot. It does so once for each order and does not wait for the end.
	Rebuild(ctx context.Context, ref Ref, order recovery.EtcdOrder) error
	// RebuildProgress returns the progress of Rebuild. It returns NotStarted if Rebuild was interrupted, so that the
	// next call resumes it.
	RebuildProgress(ctx context.Context, ref Ref, order recovery.EtcdOrder) (Progress, error)
	// Stage copies a snapshot, which content writes, onto a machine, restores it to a data directory there and waits
	// for the end. The data in use are not changed.
	Stage(ctx context.Context, ref Ref, order recovery.EtcdOrder, content func(io.Writer) error) error
	// Staged reports whether the snapshot of the order has been staged.
	Staged(ctx context.Context, ref Ref, order recovery.EtcdOrder) (bool, error)
}

// EtcdShell runs programs in machines, for [EtcdMembers].
type EtcdShell interface {
	// Run runs a shell program with the given input and returns its output. A machine that does not run is a Conflict.
	Run(ctx context.Context, ref Ref, program string, input []byte) (string, error)
	// Pipe runs a shell program until ctx ends, with input of any length, and returns its exit code and the end of its
	// output. An error of the input is returned as an error.
	Pipe(ctx context.Context, ref Ref, program string, input io.Reader) (code int, out string, err error)
	// Start starts a shell program without waiting for its end.
	Start(ctx context.Context, ref Ref, program string) error
}

// logBytes limits the part of a failed rebuild's log that is shown.
const logBytes = 4096

// EtcdMembers implements EtcdRecovery: it runs the programs of package recovery in a machine and parses their output.
type EtcdMembers struct{ EtcdShell }

// reasonNoEtcd: no etcd member responds in the machine.
const reasonNoEtcd = "EtcdMemberSilent"

func (m EtcdMembers) Survey(ctx context.Context, ref Ref) (recovery.MemberState, error) {
	out, err := m.Run(ctx, ref, "exec bash -s", []byte(recovery.SurveyProgram()))
	if err != nil {
		return recovery.MemberState{}, fmt.Errorf("reading the etcd member: %w", err)
	}
	found, err := recovery.ParseSurvey(out)
	if err != nil {
		return found, fault.New(fault.Invalid, reasonNoEtcd, "The etcd member on machine %s does not answer", ref.Name).From(err)
	}
	return found, nil
}

// Rebuild implements EtcdRecovery. It runs as a process of the machine, like a bootstrap.
func (m EtcdMembers) Rebuild(ctx context.Context, ref Ref, order recovery.EtcdOrder) error {
	file := "/run/slipway/etcd-" + string(order.Step) + "-" + order.ID + ".sh"
	place := fmt.Sprintf(`set -e; umask 077; mkdir -p /run/slipway; cat >%[1]s.new.$$; mv %[1]s.new.$$ %[1]s`, file)
	if _, err := m.Run(ctx, ref, place, []byte(recovery.Program(order))); err != nil {
		return fmt.Errorf("writing the script that rebuilds etcd: %w", err)
	}
	if err := m.Start(ctx, ref, "exec bash "+file+" </dev/null"); err != nil {
		return fmt.Errorf("starting the script that rebuilds etcd: %w", err)
	}
	return nil
}

func (m EtcdMembers) RebuildProgress(ctx context.Context, ref Ref, order recovery.EtcdOrder) (Progress, error) {
	out, err := m.Run(ctx, ref, recovery.ProgressProgram(order), nil)
	if err != nil {
		return Progress{}, fmt.Errorf("reading the progress of the etcd rebuild: %w", err)
	}
	word, rest, _ := strings.Cut(out, "\n")
	word, why, _ := strings.Cut(strings.TrimSpace(word), " ")
	switch word {
	case "done":
		return Progress{Phase: Succeeded}, nil
	case "failed":
		return Progress{Phase: Failed, Log: redact.Tail(why+"\n"+rest, logBytes)}, nil
	case "running":
		return Progress{Phase: InProgress}, nil
	}
	return Progress{Phase: NotStarted}, nil
}
