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

// EncryptionCommand returns the encryption command, for package cli. It acts on the management cluster of this host.
// "rotate encryption" (rotate_encryption.go) is the command for workload clusters.
func EncryptionCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encryption",
		Short: "Manage the encryption of Secrets in the management cluster",
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
		Short: "Rotate the key that encrypts Secrets in the management cluster",
		Long: `Create a new key, rewrite every stored Secret with it, and remove the old key when nothing needs it.
Secrets stay readable during the rotation. If the management cluster does not run, the rotation
takes place at its next start. If this command is interrupted, the management cluster continues the
rotation.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := e.DataDir(dataDir)
			if err != nil {
				return err
			}
			return encryptionRun(cmd.Context(), e, dir, timeout)
		},
	}
	term.AddDataDirFlag(cmd.Flags(), &dataDir)
	cmd.Flags().DurationVar(&timeout, "timeout", encryptionTimeout, "how long to wait until the old key is removed")
	return cmd
}

// encryptionRun adds a new key to the data directory and waits until the management cluster, which does the rest of the
// rotation, has removed the other keys.
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
		_, err := fmt.Fprintf(e.Err, "The management cluster does not run: its next start encrypts Secrets with %s and removes the other keys.\n", name)
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
			_, err := fmt.Fprintf(e.Err, "Every stored Secret is encrypted with %s; the old key is removed.\n", status.Key)
			return err
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.Transient, "EncryptionUnderWay",
				"some Secrets are still encrypted with other keys than %s: the management cluster continues the rotation; see %s for its progress", name, dir.Log()).From(ctx.Err())
		case <-ticker.C:
		}
	}
}
