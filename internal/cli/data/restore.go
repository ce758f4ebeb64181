package data

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/backup"
)

// progressInterval is the number of objects between two progress messages.
const progressInterval = 500

// restoreOptions holds the flag values.
type restoreOptions struct {
	to       *management.Flags
	identity string
	dryRun   bool
	format   *term.Format
}

// RestoreCommand returns the restore command, for package cli.
func RestoreCommand(e term.Env) *cobra.Command {
	o := &restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore the Cluster API objects of a backup",
		Long: `Create the objects of a backup in the paused state, and resume them when all objects exist. The
whole file is validated before the first object is created. Existing objects are not changed, and
objects that were paused in the backup stay paused. If the command is interrupted, run it again to
complete the restore.

Before you restore into another management cluster, stop the management cluster that the backup was
taken from: two management clusters must not manage the same machines.`,
		Example: `  slipway restore monday.tar.gz --dry-run
  slipway restore monday.tar.gz --identity key.txt`,
		Args: term.ExactlyOneArgument("FILE"),
	}
	flags := cmd.Flags()
	o.to = management.AddClusterScopedFlags(flags)
	flags.StringVar(&o.identity, "identity", "", "file with the age identity that decrypts the Secrets")
	flags.BoolVar(&o.dryRun, "dry-run", false, "list the objects to create and the existing objects, and change nothing")
	o.format = term.AddOutputFlag(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return restoreRun(cmd.Context(), e, o, args[0]) }
	cmd.AddCommand(restoreControlPlaneCommand(e))
	return cmd
}

// restoreResult is the structured output of "restore". Scripts depend on the field names.
type restoreResult struct {
	move.DirectoryResult
	// Create and Keep list the objects of a dry run.
	Create []string `json:"create,omitempty"`
	Keep   []string `json:"keep,omitempty"`
	// TakenAt is the time of the backup.
	TakenAt time.Time `json:"takenAt"`
	// OnHost lists the objects that represent resources on a host, which are not part of the backup.
	OnHost []string `json:"onHost,omitempty"`
}

// restoreRun reads the whole file, and then connects and creates the objects.
func restoreRun(ctx context.Context, e term.Env, o *restoreOptions, path string) error {
	identities, err := o.readIdentities()
	if err != nil {
		return err
	}
	a, err := backup.Open(path, identities)
	if err != nil {
		return err
	}
	connection, err := o.to.Connect(e)
	if err != nil {
		return err
	}
	c := connection.Client
	say := func(line string) { _, _ = fmt.Fprintln(e.Err, line) }
	r := restoreResult{TakenAt: a.Info.CreatedAt, OnHost: a.OnHost()}
	var created atomic.Int64 // objects are created concurrently
	options := move.RestoreOptions{Report: say, DryRun: o.dryRun, Creating: func() {
		if n := created.Add(1); n%progressInterval == 0 {
			say(fmt.Sprintf("%d objects created", n))
		}
	}}
	if o.dryRun {
		options.Visit = r.add
	}
	if r.DirectoryResult, err = a.Restore(ctx, c, options); err != nil {
		return connection.Explain(err)
	}
	return o.format.Print(e.Out, r, r.print)
}

// add records an object of a dry run. The restore calls it for one object after the other.
func (r *restoreResult) add(id graph.ID, kept bool) {
	if kept {
		r.Keep = append(r.Keep, id.String())
		return
	}
	r.Create = append(r.Create, id.String())
}

func (r *restoreResult) print(w io.Writer) error {
	var lines []string
	for _, name := range r.Keep {
		lines = append(lines, "keep "+name+" as it is")
	}
	for _, name := range r.Create {
		lines = append(lines, "create "+name)
	}
	lines = append(lines, r.DirectoryResult.String())
	if n := len(r.OnHost); n > 0 {
		lines = append(lines, fmt.Sprintf("The host resources of %d objects are not in the backup. If they are not on this host, the objects report it in their conditions and wait.", n))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func (o *restoreOptions) readIdentities() ([]age.Identity, error) {
	if o.identity == "" {
		return nil, nil
	}
	f, err := os.Open(o.identity)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Usage", "the file of --identity cannot be read: %v", err).From(err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	out, err := age.ParseIdentities(f)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Usage", "the file of --identity has no identity of age, which begins with AGE-SECRET-KEY-1").From(err)
	}
	return out, nil
}
