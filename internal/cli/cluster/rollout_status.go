package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
	"github.com/slipwayhq/slipway/internal/pause"
)

// rolloutPollInterval is the time between two reads of one object.
const rolloutPollInterval = time.Second

// maxReadFailures is how many consecutive reads may fail because the management cluster is unreachable, which may be
// restarting.
const maxReadFailures = 15

// rolloutStatusFlags holds the flag values.
type rolloutStatusFlags struct {
	connection *management.Flags
	watch      bool
	timeout    time.Duration
	format     *term.Format
}

// rolloutStatusCommand returns the "rollout status" command, for [RolloutCommand].
func rolloutStatusCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status KIND/NAME",
		Short: "Follow a rollout until it is complete",
		Long: `Follow the rollout of a MachineDeployment, KubeadmControlPlane or MachinePool until all Machines are
up to date and available and no old Machine remains. If the rollout is paused, the command exits
with exit code 2. The reason of each wait is in parentheses: the messages of the conditions, and the
Machine that blocks the others. With -o, the current state is printed once.`,
		Example: "  slipway rollout status md/demo-md-0\n  slipway rollout status kcp/demo --watch=false\n  slipway rollout status md/demo-md-0 --timeout 10m",
	}
	f := &rolloutStatusFlags{connection: management.AddFlags(cmd.Flags())}
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", true, "follow the rollout until it is complete")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "how long to follow the rollout; 0: no limit")
	f.format = term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		resources, err := upgrade.ParseResource(args, upgrade.Readable())
		if err != nil {
			return err
		}
		if f.timeout < 0 {
			return fault.New(fault.Invalid, "Usage", "--timeout cannot be negative; 0 has no limit")
		}
		m, err := f.connection.Connect(e)
		if err != nil {
			return err
		}
		for _, r := range resources {
			if err := f.follow(cmd.Context(), e, m, r); err != nil {
				return m.Explain(err)
			}
		}
		return nil
	}
	return cmd
}

// follow prints the state of a rollout after each change, until the rollout is complete or paused.
func (f *rolloutStatusFlags) follow(ctx context.Context, e term.Env, m *management.Connection, r upgrade.RolloutResource) error {
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	said, failures := "", 0
	for {
		s, err := readRollout(ctx, m, r, e.Now())
		switch {
		case ctx.Err() != nil:
			return waitError(ctx, said)
		case err != nil && fault.KindOf(err) == fault.Unreachable && f.watch && failures < maxReadFailures:
			failures++
		case err != nil:
			return err
		case f.format.String() != "":
			return f.format.Print(e.Out, s, func(io.Writer) error { return nil })
		default:
			failures = 0
			if line := s.String(); line != said {
				said = line
				if _, err := fmt.Fprintln(e.Out, line); err != nil {
					return err
				}
			}
			if s.Done() || !f.watch {
				return nil
			}
			if s.Paused != "" {
				return fault.New(fault.Invalid, upgrade.ReasonState, "the rollout of %s is paused by %s; remove that to continue it", r, s.Paused)
			}
		}
		if err := pause.Sleep(ctx, rolloutPollInterval); err != nil {
			return waitError(ctx, said)
		}
	}
}

// readRollout reads the state of a rollout, and the reason for a delay if the user may read it.
func readRollout(ctx context.Context, m *management.Connection, r upgrade.RolloutResource, now time.Time) (upgrade.RolloutProgress, error) {
	s, err := upgrade.ReadRollout(ctx, m.Client, m.Namespace, r, now)
	if err != nil || s.Done() || s.Paused != "" || s.Cluster == "" {
		return s, err
	}
	cluster, err := describe.Read(ctx, m.Client, client.ObjectKey{Namespace: m.Namespace, Name: s.Cluster}, describe.Options{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading what holds the rollout up: %w", err)
	}
	if why := progress.LagReason(cluster, string(r.Kind), r.Name); why != "" {
		s.Reason = why
	}
	return s, nil
}

// waitError returns the error of a wait that was cancelled or timed out.
func waitError(ctx context.Context, said string) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	if said == "" {
		return fault.New(fault.Transient, progress.ReasonTimeout, "the wait timed out before the management cluster responded")
	}
	return fault.New(fault.Transient, progress.ReasonTimeout, "the wait timed out; last progress: %s", said)
}
