package up

import (
	"cmp"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/etcd"
	"github.com/slipwayhq/slipway/internal/controlplane/secretencryption"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/heap"
)

// statusReport is the structured output of the status command. Scripts depend on its field names.
type statusReport struct {
	DataDir    string            `json:"dataDir"`
	State      runState          `json:"state"`
	Management *managementStatus `json:"management,omitempty"` // nil if it is not running
	// Killed is the last process, if it ended without being stopped.
	Killed *killedProcess      `json:"killed,omitempty"`
	Planes []supervisor.Status `json:"hostedControlPlanes"`
	// Simulated is the number of simulated clusters; nil: the API does not provide it.
	Simulated *int `json:"simulatedClusters,omitempty"`
	// Encryption is the encryption of Secrets in the management cluster.
	Encryption encryptionStatus `json:"encryption"`
	// Database is the database of the management cluster, if it exists.
	Database *databaseStatus `json:"database,omitempty"`
	// Disk is the space of the disk with the data directory.
	Disk datadir.Space `json:"disk,omitzero"`
	// Supervision is the state of the supervisor of a management cluster in the background; nil: there is none.
	Supervision *datadir.Supervision `json:"supervision,omitempty"`
}

// databaseStatus is the size of the management cluster's database. collectStatus sets it.
type databaseStatus struct {
	Bytes int64 `json:"bytes"`
	// Limit is the size at which writes are rejected.
	Limit int64 `json:"limitBytes"`
}

// nearlyFull is the percentage of the limit at which the status contains a warning.
const nearlyFull = 75

// killedProcess is a process of the management cluster that ended without being stopped.
type killedProcess struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"` // start time
	Log   string    `json:"log,omitempty"`
}

// encryptionStatus is the encryption of Secrets in the management cluster.
type encryptionStatus struct {
	// Key is the name of the current encryption key; empty: Secrets are stored in plain text.
	Key string `json:"key,omitempty"`
	// OlderKeys is the number of other keys that may still be needed.
	OlderKeys int `json:"olderKeys,omitempty"`
}

// runState summarizes the state of the management cluster.
type runState string

const (
	stateAbsent   runState = "Absent"     // the data directory was never used
	stateStopped  runState = "Stopped"    // there is data but no process
	stateStarting runState = "Starting"   // a process holds the directory and is not ready yet
	restarting    runState = "Restarting" // the process ended, and its supervisor is restarting it
	standby       runState = "Standby"    // a manager with leader election that is not the leader
	stateRunning  runState = "Running"
)

// managementStatus is the process of the management cluster, or of a "slipway manager" (ManagerOf). collectStatus fills
// it from the data directory; readAPI adds Leader, Problem and MissingRights (status_api.go).
type managementStatus struct {
	PID        int            `json:"pid"`
	Since      time.Time      `json:"since"`
	Version    string         `json:"version"`                     // of slipway
	Kubernetes string         `json:"kubernetesVersion,omitempty"` // of the management cluster
	Server     string         `json:"server,omitempty"`
	Kubeconfig string         `json:"kubeconfig,omitempty"`
	Log        string         `json:"log,omitempty"`
	Memory     int64          `json:"memory"` // resident, in bytes
	Manager    *managerStatus `json:"manager,omitempty"`
	// ManagerOf is the API server of a manager that works for another cluster.
	ManagerOf string `json:"managerOf,omitempty"`
	// Namespace and WatchFilter limit the objects that this manager reconciles; empty: no limit.
	Namespace   string `json:"namespace,omitempty"`
	WatchFilter string `json:"watchFilter,omitempty"`
	// Lease is the leader election lease of this manager as namespace/name; empty: no leader election.
	Lease string `json:"lease,omitempty"`
	// Leader is the holder of that lease; empty: none or unknown.
	Leader string `json:"leader,omitempty"`
	// Problem is the reason why the API server does not respond.
	Problem string `json:"problem,omitempty"`
	// MissingRights are deleted roles and bindings of the manager.
	MissingRights []string `json:"missingRights,omitempty"`
	// Node is the node of the management cluster; nil: it has none.
	Node *datadir.Node `json:"node,omitempty"`
}

// managerStatus is the process that runs the controllers. probeManager sets Problem (status_manager.go).
type managerStatus struct {
	datadir.Manager `json:",inline"`
	Memory          int64 `json:"memory"` // resident, in bytes
	// Problem is the reason why a running manager does not respond.
	Problem string `json:"problem,omitempty"`
}

// StatusCommand returns the status command, for package cli.
func StatusCommand(e term.Env) *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the status of the management cluster and hosted control planes",
		Args:  cobra.NoArgs,
	}
	term.AddDataDirFlag(cmd.Flags(), &dataDir)
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := e.DataDir(dataDir)
		if err != nil {
			return err
		}
		s, err := collectStatus(dir)
		if err != nil {
			return err
		}
		s.readAPI(cmd.Context(), e)
		start := "slipway up -d"
		if state, err := datadir.Inspect(dir); err == nil && s.Management == nil && state.Holder.ManagerOf != "" && !exists(dir.Etcd()) {
			start = cmp.Or(state.Holder.Command, "slipway manager, with the flags that it had")
		} else if usual, err := e.DataDir(""); err != nil || usual != dir {
			start += " --data-dir " + string(dir)
		}
		return format.Print(e.Out, s, func(w io.Writer) error { return printStatus(w, s, start, e.Now()) })
	}
	return cmd
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// collectStatus reads the status of a data directory.
func collectStatus(dir datadir.Dir) (statusReport, error) {
	s := statusReport{DataDir: string(dir), State: stateAbsent}
	state, err := datadir.Inspect(dir)
	if err != nil {
		return s, err
	}
	switch {
	case state.Held && (state.Run != nil && state.Run.Ready || state.Holder.Working):
		s.State = stateRunning
	case state.Held && state.Holder.Lease != "":
		s.State = standby
	case state.Held:
		s.State = stateStarting
	case state.Supervision != nil:
		s.State = restarting
	case state.Exists:
		s.State, s.Killed = stateStopped, statusKilled(dir, state.Killed)
	}
	if state.Held {
		s.Management = &managementStatus{
			PID: state.Holder.PID, Since: state.Holder.Since, Version: state.Holder.Version, Memory: heap.Resident(state.Holder.PID),
			ManagerOf: state.Holder.ManagerOf, Namespace: state.Holder.Namespace, WatchFilter: state.Holder.WatchFilter, Lease: state.Holder.Lease,
		}
	}
	if state.Run != nil {
		s.Management.Kubernetes, s.Management.Server = state.Run.KubernetesVersion, state.Run.Server
		s.Management.Kubeconfig, s.Management.Node = dir.Kubeconfig(), state.Run.Node
		s.Management.Log = logOf(dir)
	}
	if state.Run != nil && state.Run.Manager != nil {
		s.Management.Manager = &managerStatus{Manager: *state.Run.Manager}
		if pid := state.Run.Manager.PID; pid != 0 {
			s.Management.Manager.Memory = heap.Resident(pid)
		}
	}
	s.Supervision = state.Supervision
	if s.Disk, err = datadir.SpaceOf(dir); err != nil {
		s.Disk = datadir.Space{} // a file system without this information
	}
	keys, err := secretencryption.Files{Dir: dir}.Status()
	if err != nil {
		return s, err
	}
	s.Encryption = encryptionStatus{Key: keys.Key, OlderKeys: keys.Others}
	if info, err := os.Stat(etcd.DatabaseFile(dir.Etcd())); err == nil {
		s.Database = &databaseStatus{Bytes: info.Size(), Limit: etcd.DefaultQuotaBytes}
	}
	s.Planes, err = supervisor.Inspect(dir.Planes())
	return s, err
}

// statusKilled returns a process that ended without being stopped; nil: the last one was stopped.
func statusKilled(dir datadir.Dir, last *datadir.Run) *killedProcess {
	if last == nil {
		return nil
	}
	return &killedProcess{PID: last.PID, Since: last.Since, Log: logOf(dir)}
}

// logOf returns the path of the log file, or an empty string if it does not exist.
func logOf(dir datadir.Dir) string {
	if !exists(dir.Log()) {
		return ""
	}
	return dir.Log()
}
