package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/secretencryption"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// encryptionPollInterval is the interval of checks whether the previous keys are still needed.
	encryptionPollInterval = 500 * time.Millisecond
	// encryptionTimeout is the default timeout for rewriting.
	encryptionTimeout = 5 * time.Minute
)

// EncryptionCommand returns the encryption command.
func EncryptionCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encryption",
		Short: "Replace the key that encrypts Secrets of the management cluster",
	}
	cmd.AddCommand(encryptionRotateCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

func encryptionRotateCommand(e term.Env) *cobra.Command {
	var dataDir string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the key that encrypts Secrets of the management cluster",
		Long: `Make a new key, write every stored Secret once more with it, and forget the old key when nothing needs it any more.
Secrets can be read all the while. Where the management cluster does not run, its next start goes on with it; so
it does where this command is interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := e.DataDir(dataDir)
			if err != nil {
				return err
			}
			return encryptionRun(cmd.Context(), e, dir, timeout)
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "data directory (default $XDG_DATA_HOME/slipway or ~/.local/share/slipway)")
	cmd.Flags().DurationVar(&timeout, "timeout", encryptionTimeout, "how long to wait until nothing needs the old key")
	return cmd
}

func encryptionRun(ctx context.Context, e term.Env, dir datadir.Dir, timeout time.Duration) error {
	state, err := datadir.Inspect(dir)
	if err != nil {
		return err
	}
	if !state.Exists {
		return fault.New(fault.Invalid, "ManagementClusterNotRunning", "no management cluster has been started in %s; \"slipway up -d\" starts one", dir)
	}
	files := secretencryption.Files{Dir: dir}
	name, err := files.Rotate(e.Now())
	if err != nil {
		return err
	}
	if !state.Held {
		_, err := fmt.Fprintf(e.Err, "The management cluster does not run: its next start encrypts Secrets with %s, and forgets the other keys then.\n", name)
		return err
	}
	_, _ = fmt.Fprintf(e.Err, "Encrypting Secrets with %s …\n", name)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(encryptionPollInterval)
	defer ticker.Stop()
	for {
		status, err := files.Status()
		if err != nil {
			return err
		}
		if status.Others == 0 {
			_, err := fmt.Fprintf(e.Err, "Every stored Secret is encrypted with %s; the old key is forgotten.\n", status.Key)
			return err
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.Transient, "EncryptionUnderWay",
				"Secrets are still encrypted with other keys than %s: the management cluster continues; %s says what keeps it from finishing", name, dir.Log()).From(ctx.Err())
		case <-ticker.C:
		}
	}
}
