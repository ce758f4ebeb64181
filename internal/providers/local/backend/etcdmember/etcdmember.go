// Package etcdmember reaches the members of etcd on machines that run programs, as containers with systemd do.
//
// Does: runs the programs of package recovery in a machine ([Members], which is a backend.Etcds), and reads what they print.
//
// Never: knows what a machine is made of, or decides when a member is rebuilt.
//
// Read first: [Members].
package etcdmember

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/recovery"
	"github.com/slipwayhq/slipway/internal/redact"
)

// Shell runs programs in machines.
type Shell interface {
	// Run runs a program for sh, gives it input, and returns what it prints. A machine that does not run is a Conflict.
	Run(ctx context.Context, ref backend.Ref, program string, input []byte) (string, error)
	// Pipe runs a program for sh as long as ctx lets it, with input that may be long, and returns its exit code and the last of what it
	// prints. Input that ends with an error is an error.
	Pipe(ctx context.Context, ref backend.Ref, program string, input io.Reader) (code int, out string, err error)
	// Start starts one and lets it run.
	Start(ctx context.Context, ref backend.Ref, program string) error
}

// logBytes bounds what is shown of the log of a rebuild that failed.
const logBytes = 4096

// Members are those on machines.
type Members struct{ Shell }

// ReasonNoEtcd: no member of etcd answers in the machine.
const ReasonNoEtcd = "EtcdMemberSilent"

// Survey implements backend.Etcds.
func (m Members) Survey(ctx context.Context, ref backend.Ref) (recovery.Member, error) {
	out, err := m.Run(ctx, ref, "exec bash -s", []byte(recovery.SurveyProgram()))
	if err != nil {
		return recovery.Member{}, fmt.Errorf("asking the member of etcd: %w", err)
	}
	found, err := recovery.ParseSurvey(out)
	if err != nil {
		return found, fault.New(fault.Invalid, ReasonNoEtcd, "The member of etcd on machine %s does not answer", ref.Name).From(err)
	}
	return found, nil
}

// Rebuild implements backend.Etcds. It runs as a process of the machine, as a bootstrap does.
func (m Members) Rebuild(ctx context.Context, ref backend.Ref, order recovery.Order) error {
	file := "/run/slipway/etcd-" + string(order.Step) + "-" + order.ID + ".sh"
	place := fmt.Sprintf(`set -e; umask 077; mkdir -p /run/slipway; cat >%[1]s.new.$$; mv %[1]s.new.$$ %[1]s`, file)
	if _, err := m.Run(ctx, ref, place, []byte(recovery.Program(order))); err != nil {
		return fmt.Errorf("writing the program that rebuilds etcd: %w", err)
	}
	if err := m.Start(ctx, ref, "exec bash "+file+" </dev/null"); err != nil {
		return fmt.Errorf("starting the program that rebuilds etcd: %w", err)
	}
	return nil
}

// Rebuilt implements backend.Etcds.
func (m Members) Rebuilt(ctx context.Context, ref backend.Ref, order recovery.Order) (backend.Progress, error) {
	out, err := m.Run(ctx, ref, recovery.ProgressProgram(order), nil)
	if err != nil {
		return backend.Progress{}, fmt.Errorf("reading how far the rebuild of etcd is: %w", err)
	}
	word, rest, _ := strings.Cut(out, "\n")
	word, why, _ := strings.Cut(strings.TrimSpace(word), " ")
	switch word {
	case "done":
		return backend.Progress{Phase: backend.Succeeded}, nil
	case "failed":
		return backend.Progress{Phase: backend.Failed, Log: redact.Tail(why+"\n"+rest, logBytes)}, nil
	case "running":
		return backend.Progress{Phase: backend.InProgress}, nil
	}
	return backend.Progress{Phase: backend.NotStarted}, nil
}
