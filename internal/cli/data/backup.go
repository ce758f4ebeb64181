package data

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/backup"
)

// backupOptions are the flags of "backup".
type backupOptions struct {
	from           *management.Flags
	clusters       []string
	recipients     []string
	recipientsFile string
	dryRun         bool
	format         *term.Format
}

// BackupCommand returns the backup command, for package cli.
func BackupCommand(e term.Env) *cobra.Command {
	o := &backupOptions{}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the Cluster API objects of a management cluster to a file",
		Long: `Back up the Cluster API objects of a management cluster to one file, from which "slipway restore"
recreates them. Nothing is paused or changed. The file contains no status: the controllers report it
again after a restore.

Secrets are stored in plain text unless you set recipients; then they are encrypted with age. The
file does not contain data from the host of the management cluster, such as the data of hosted
control planes or node containers.`,
		Example: `  slipway backup monday.tar.gz
  slipway backup monday.tar.gz --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
  slipway backup team-a.tar.gz -n team-a`,
		Args: term.ExactlyOneArgument("FILE"),
	}
	flags := cmd.Flags()
	o.from = management.AddClusterScopedFlags(flags)
	flags.StringVarP(&o.from.Namespace, "namespace", "n", "", "back up only the objects of this namespace (default: all namespaces)")
	flags.StringSliceVar(&o.clusters, "cluster", nil, "back up only these Clusters of the namespace and the objects that they use")
	flags.StringSliceVar(&o.recipients, "recipient", nil, "age recipient to encrypt the Secrets for; may be repeated")
	flags.StringVar(&o.recipientsFile, "recipients-file", "", "file with the age recipients to encrypt the Secrets for, one per line")
	flags.BoolVar(&o.dryRun, "dry-run", false, "list the objects and write nothing")
	o.format = term.AddOutputFlag(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return backupRun(cmd.Context(), e, o, args[0]) }
	return cmd
}

// backupRun reads the objects, prints the progress, and writes the file.
func backupRun(ctx context.Context, e term.Env, o *backupOptions, path string) error {
	to, err := o.readRecipients()
	if err != nil {
		return err
	}
	if err := backup.CheckNew(path); err != nil {
		return err
	}
	connection, err := o.from.Connect(e)
	if err != nil {
		return err
	}
	c := connection.Client
	what := graph.Scope{Namespace: o.from.Namespace, Clusters: o.clusters}
	if len(o.clusters) > 0 {
		what.Namespace = cmp.Or(what.Namespace, connection.Namespace)
	}
	say := func(form string, args ...any) { _, _ = fmt.Fprintf(e.Err, form+"\n", args...) }
	say("Reading the objects")
	a, err := backup.Take(ctx, c, what, e.Now())
	if err != nil {
		return connection.Explain(err)
	}
	a.Info.Encrypted = len(to) > 0
	if o.dryRun {
		return o.show(e, a)
	}
	say("Writing %d objects of %d Clusters", a.Info.Objects, a.Info.Clusters)
	saved, err := a.Save(path, to)
	if err != nil {
		return err
	}
	if a.Info.Secrets > 0 && len(to) == 0 {
		say("The file has %d Secrets as they are, and only you can read it; --recipient encrypts them.", a.Info.Secrets)
	}
	if n := len(a.OnHost()); n > 0 {
		say("%d of the objects represent resources on the host of the management cluster (processes, data, containers, networks), which are not in the file.", n)
	}
	return o.format.Print(e.Out, saved, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Saved %d objects of %d Clusters to %s (%d bytes).\n", saved.Objects, saved.Clusters, saved.File, saved.Bytes)
		return err
	})
}

// show lists the objects that would be saved.
func (o *backupOptions) show(e term.Env, a backup.Archive) error {
	listed := struct {
		backup.Info
		Names []string `json:"names"`
	}{Info: a.Info}
	for _, object := range a.Objects {
		listed.Names = append(listed.Names, graph.IDOf(object).String())
	}
	return o.format.Print(e.Out, listed, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "save %s\n", strings.Join(listed.Names, "\nsave "))
		return err
	})
}

// readRecipients returns the recipients from the flags and the file.
func (o *backupOptions) readRecipients() ([]age.Recipient, error) {
	var out []age.Recipient
	for _, text := range o.recipients {
		found, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, fault.New(fault.Invalid, "Usage", "--recipient %q is no recipient of age, which begins with age1", text).From(err)
		}
		out = append(out, found...)
	}
	if o.recipientsFile == "" {
		return out, nil
	}
	f, err := os.Open(o.recipientsFile)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Usage", "the file of --recipients-file cannot be read: %v", err).From(err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	found, err := age.ParseRecipients(f)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Usage", "the file of --recipients-file has no recipients of age: %v", err).From(err)
	}
	return append(out, found...), nil
}
