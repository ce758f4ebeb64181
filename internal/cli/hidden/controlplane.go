package hidden

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/etcd"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
)

// ControlPlaneCommand returns the hidden command "control-plane run", the process of one hosted control plane. The
// manager starts it (controlplane/supervisor), or a Pod runs it (hosted/statefulset); both must use these flags.
func ControlPlaneCommand(e term.Env) *cobra.Command {
	var o controlPlaneOptions
	run := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Run the control plane of one workload cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runPlane(cmd.Context(), e, o)
		},
	}
	run.Flags().StringVar(&o.config, "config", "", "configuration file in the control plane's directory")
	run.Flags().StringVar(&o.releases, "releases", "", "directory of additional Kubernetes versions")
	run.Flags().StringVar(&o.delivery, "delivery", "", "directory with the configuration, certificate authorities and keys to copy into the control plane's directory first; its log directory is not written then")
	run.Flags().IntVar(&o.user, "user", 0, "user and group ID that the process switches to; 0: do not switch")
	_ = run.MarkFlagRequired("config")
	cmd := &cobra.Command{Use: "control-plane", Short: "Process of one hosted control plane", Hidden: true}
	cmd.AddCommand(run)
	return cmd
}

// controlPlaneOptions holds the flag values.
type controlPlaneOptions struct {
	config, releases, delivery string
	user                       int
}

// runPlane runs the control plane in the foreground until ctx is done.
func runPlane(ctx context.Context, e term.Env, o controlPlaneOptions) error {
	path, err := filepath.Abs(o.config)
	if err != nil {
		return err
	}
	if o.delivery != "" {
		if err := processconfig.Delivery(o.delivery).Receive(processconfig.Folder(filepath.Dir(path))); err != nil {
			return err
		}
	}
	c, err := processconfig.Load(path)
	if err != nil {
		return err
	}
	place := processconfig.Folder(filepath.Dir(path))
	if err := os.Chdir(string(place)); err != nil {
		return err
	}
	folder := processconfig.WorkingDir                // the folder may move to another data directory while this process runs
	_ = heap.ResetOOMScore(heap.OOMScoreControlPlane) // the score of the parent process, the manager, is higher
	cfg := controlplane.WorkloadConfig{Config: c, Folder: folder, ExternalPath: place, Now: e.Now, Program: versions.LocalStore(o.releases).Program}
	if o.user != 0 {
		cfg.Program = executablePrograms(cfg.Program)
	}
	// RunWorkload calls it when everything that needs root is done.
	cfg.Become = func() error {
		if o.user != 0 {
			if err := switchUser(place, o.user); err != nil {
				return err
			}
		}
		if o.delivery == "" {
			go childproc.WatchLog(ctx, folder.Log())
		}
		return nil
	}
	return recordEnd(folder, controlplane.RunWorkload(ctx, cfg))
}

// recordEnd records why the control plane stops, and returns an error without hints, because hints about a management
// cluster do not apply here.
func recordEnd(folder processconfig.Folder, err error) error {
	if err == nil || errors.Is(err, context.Canceled) && fault.As(err) == nil { // a requested shutdown
		return err
	}
	text := fault.UserMessage(err)
	_ = folder.WriteEnd(text) // otherwise the supervisor has the exit status and the log
	if fault.As(err) != nil {
		return err
	}
	return fault.New(fault.Transient, "ControlPlaneEnded", "%s", text).From(err)
}

// switchUser changes the owner of the folder to the user, and deletes sockets of etcd that another user left. Then it
// switches this process to the user. The switch is last, because the other steps need root.
func switchUser(place processconfig.Folder, user int) error {
	if err := uidisolation.ChownFolder(string(place), user); err != nil {
		return err
	}
	if err := etcd.ClearSockets(place.Etcd(), user); err != nil {
		return err
	}
	return uidisolation.SwitchUser(user)
}

// executablePrograms returns paths of programs that another user can execute although their folders are inaccessible:
// the open file is executed.
func executablePrograms(program func(version string) (string, error)) func(version string) (string, error) {
	return func(version string) (string, error) {
		path, err := program(version)
		if err != nil {
			return "", err
		}
		return uidisolation.Executable(path)
	}
}
