package hidden

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/heap"
)

// readyLine is the JSON line that "plane run" prints when the API server is ready. Package test/testkit/apiserver
// parses it.
type readyLine struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
}

// planeFlags holds the flag values of "plane run".
type planeFlags struct {
	dataDir string
	listen  string
	stdin   bool

	progress time.Duration
}

// PlaneCommand returns the hidden command "plane run": the management cluster without controllers. Tests start it
// (test/testkit/apiserver) and read its readyLine.
func PlaneCommand(e term.Env) *cobra.Command {
	var f planeFlags
	run := &cobra.Command{
		Use:   "run",
		Short: "Run the management cluster without controllers",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), e) },
	}
	run.Flags().StringVar(&f.dataDir, "data-dir", "", "data directory")
	run.Flags().StringVar(&f.listen, "listen", controlplane.DefaultListen, "loopback ADDRESS:PORT of the API server; port 0 chooses one")
	run.Flags().DurationVar(&f.progress, "progress", 0, "interval of bookmarks on idle watches; 0: one minute")
	run.Flags().BoolVar(&f.stdin, "until-stdin-closes", false, "stop when standard input closes")
	cmd := &cobra.Command{Use: "plane", Short: "Parts of Slipway for its own tests", Hidden: true}
	cmd.AddCommand(run)
	return cmd
}

func (f planeFlags) run(ctx context.Context, e term.Env) error {
	dir, err := e.DataDir(f.dataDir)
	if err != nil {
		return err
	}
	h, err := datadir.Open(dir, datadir.CurrentProcess(e.Now()))
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.stdin {
		go func() {
			_, _ = io.Copy(io.Discard, e.In)
			cancel()
		}()
	}
	started := heap.TuneForStartup(heap.StartManagementMemory)
	m, err := controlplane.StartManagement(ctx, controlplane.ManagementConfig{Dir: dir, Listen: f.listen, Now: e.Now, Profiling: true, Progress: f.progress})
	if err != nil {
		return err
	}
	if err := m.Ready(ctx); err != nil {
		return errors.Join(err, m.Stop())
	}
	started()
	heap.Collect(heap.Management())
	if err := json.NewEncoder(e.Out).Encode(readyLine{Server: m.Server, Kubeconfig: dir.Kubeconfig()}); err != nil {
		return err
	}
	<-m.Done()
	return m.Stop()
}
