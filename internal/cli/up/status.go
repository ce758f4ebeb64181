// Package status implements the status command. It shows the management cluster and each hosted control plane with
// their age, versions, ports and memory. If the API responds, it also shows the number of simulated clusters and the
// leader of the managers. It changes nothing. Start with [Collect], then ask.go.
package up

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/etcd"
	"github.com/slipwayhq/slipway/internal/controlplane/secretencryption"
	controlplanesupervisor "github.com/slipwayhq/slipway/internal/controlplane/supervisor"
)

// Status is the structured output of the command.
type Status struct {
	DataDir    string      `json:"dataDir"`
	State      State       `json:"state"`
	Management *Management `json:"management,omitempty"` // nil if it is not running
	// Killed is the last process, if it ended without being stopped.
	Killed *Killed                         `json:"killed,omitempty"`
	Planes []controlplanesupervisor.Status `json:"hostedControlPlanes"`
	// Simulated is the number of simulated clusters; nil: the API does not provide it.
	Simulated *int `json:"simulatedClusters,omitempty"`
	// Encryption is the encryption of Secrets in the management cluster.
	Encryption Encryption `json:"encryption"`
	// Database is the database of the management cluster, if it exists.
	Database *Database `json:"database,omitempty"`
	// Disk is the space of the disk with the data directory.
	Disk datadir.Space `json:"disk,omitzero"`
	// Supervision is the state of the supervisor of a management cluster in the background; nil: there is none.
	Supervision *datadir.Supervision `json:"supervision,omitempty"`
}

// Database is the size of the management cluster's database.
type Database struct {
	Bytes int64 `json:"bytes"`
	// Limit is the size at which writes are rejected.
	Limit int64 `json:"limitBytes"`
}

// nearlyFull is the percentage of the limit at which the status contains a warning.
const nearlyFull = 75

// Killed is a process of the management cluster that ended without being stopped.
type Killed struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"` // start time
	Log   string    `json:"log,omitempty"`
}

// Encryption is the encryption of Secrets in the management cluster.
type Encryption struct {
	// Key is the name of the current encryption key; empty: Secrets are stored in plain text.
	Key string `json:"key,omitempty"`
	// OlderKeys is the number of other keys that may still be needed.
	OlderKeys int `json:"olderKeys,omitempty"`
}

// State summarizes the state of the management cluster.
type State string

const (
	Absent     State = "Absent"     // the data directory was never used
	Stopped    State = "Stopped"    // there is data but no process
	Starting   State = "Starting"   // a process holds the directory and is not ready yet
	restarting State = "Restarting" // the process ended, and its supervisor is restarting it
	standby    State = "Standby"    // a manager with leader election that is not the leader
	Running    State = "Running"
)

// Management is the process of the management cluster.
type Management struct {
	PID        int       `json:"pid"`
	Since      time.Time `json:"since"`
	Version    string    `json:"version"`                     // of slipway
	Kubernetes string    `json:"kubernetesVersion,omitempty"` // of the management cluster
	Server     string    `json:"server,omitempty"`
	Kubeconfig string    `json:"kubeconfig,omitempty"`
	Log        string    `json:"log,omitempty"`
	Memory     int64     `json:"memory"` // resident, in bytes
	Manager    *Manager  `json:"manager,omitempty"`
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

// Manager is the process that runs the controllers.
type Manager struct {
	datadir.Manager `json:",inline"`
	Memory          int64 `json:"memory"` // resident, in bytes
	// Problem is the reason why a running manager does not respond.
	Problem string `json:"problem,omitempty"`
}

// StatusCommand returns the status command.
func StatusCommand(e term.Env) *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what runs: the management cluster and the hosted control planes",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "data directory (default $XDG_DATA_HOME/slipway or ~/.local/share/slipway)")
	format := term.Flag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := e.DataDir(dataDir)
		if err != nil {
			return err
		}
		s, err := Collect(dir)
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
		return format.Print(e.Out, s, func(w io.Writer) error { return text(w, s, start, e.Now()) })
	}
	return cmd
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Collect reads the status of a data directory.
func Collect(dir datadir.Dir) (Status, error) {
	s := Status{DataDir: string(dir), State: Absent}
	state, err := datadir.Inspect(dir)
	if err != nil {
		return s, err
	}
	switch {
	case state.Held && (state.Run != nil && state.Run.Ready || state.Holder.Working):
		s.State = Running
	case state.Held && state.Holder.Lease != "":
		s.State = standby
	case state.Held:
		s.State = Starting
	case state.Supervision != nil:
		s.State = restarting
	case state.Exists:
		s.State, s.Killed = Stopped, statusKilled(dir, state.Killed)
	}
	if state.Held {
		s.Management = &Management{
			PID: state.Holder.PID, Since: state.Holder.Since, Version: state.Holder.Version, Memory: controlplanesupervisor.Memory(state.Holder.PID),
			ManagerOf: state.Holder.ManagerOf, Namespace: state.Holder.Namespace, WatchFilter: state.Holder.WatchFilter, Lease: state.Holder.Lease,
		}
	}
	if state.Run != nil {
		s.Management.Kubernetes, s.Management.Server = state.Run.KubernetesVersion, state.Run.Server
		s.Management.Kubeconfig, s.Management.Node = dir.Kubeconfig(), state.Run.Node
		s.Management.Log = logOf(dir)
	}
	if state.Run != nil && state.Run.Manager != nil {
		s.Management.Manager = &Manager{Manager: *state.Run.Manager}
		if pid := state.Run.Manager.PID; pid != 0 {
			s.Management.Manager.Memory = controlplanesupervisor.Memory(pid)
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
	s.Encryption = Encryption{Key: keys.Key, OlderKeys: keys.Others}
	if info, err := os.Stat(etcd.DatabaseFile(dir.Etcd())); err == nil {
		s.Database = &Database{Bytes: info.Size(), Limit: etcd.DefaultQuotaBytes}
	}
	s.Planes, err = controlplanesupervisor.Inspect(dir.Planes())
	return s, err
}

// buildRow prints a row if this command and the process are from different builds, because behavior and messages may
// differ.
func buildRow(row func(string, any), running, own string) {
	if running != "" && running != own {
		row("  This command", fmt.Sprintf("slipway %s, another build: restart the process with it, or use the program of the process", own))
	}
}

// statusKilled returns a process that ended without being stopped; nil: the last one was stopped.
func statusKilled(dir datadir.Dir, last *datadir.Run) *Killed {
	if last == nil {
		return nil
	}
	return &Killed{PID: last.PID, Since: last.Since, Log: logOf(dir)}
}

// logOf returns the path of the log file, or an empty string if it does not exist.
func logOf(dir datadir.Dir) string {
	if !exists(dir.Log()) {
		return ""
	}
	return dir.Log()
}

// text writes the status as text; start is the command that starts the management cluster.
func text(w io.Writer, s Status, start string, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row := func(key string, value any) { _, _ = fmt.Fprintf(t, "%s:\t%v\n", key, value) }
	row("Data directory", s.DataDir)
	s.diskRow(row, start)
	switch m := s.Management; {
	case m != nil && m.ManagerOf != "":
		row("Manager", s.State)
		row("  Process", fmt.Sprintf("%d, for %s (since %s)", m.PID, age(now, m.Since), m.Since.Local().Format(time.DateTime)))
		row("  Version", "slipway "+m.Version)
		buildRow(row, m.Version, buildinfo.Version())
		row("  Works for", m.ManagerOf)
		m.workRows(row, s.State)
		row("  Memory", mebibytes(m.Memory))
	case m == nil && strings.Contains(start, "slipway manager"):
		row("Manager", s.State)
	case m == nil:
		row("Management cluster", s.State)
	default:
		row("Management cluster", s.State)
		row("  Process", fmt.Sprintf("%d, for %s (since %s)", m.PID, age(now, m.Since), m.Since.Local().Format(time.DateTime)))
		row("  Version", fmt.Sprintf("slipway %s, Kubernetes %s", m.Version, orDash(m.Kubernetes)))
		buildRow(row, m.Version, buildinfo.Version())
		row("  API server", orDash(m.Server))
		m.problemRow(row)
		m.rightsRow(row)
		row("  Kubeconfig", orDash(m.Kubeconfig))
		row("  Log", orDash(m.Log))
		row("  Memory", mebibytes(m.Memory))
		row("  Secrets", s.Encryption.text())
		m.Manager.rows(row, now)
		nodeRows(row, m.Node)
	}
	s.supervisionRows(row, now)
	if k := s.Killed; k != nil {
		row("  Last process", fmt.Sprintf("%d, begun %s, %s; the next start continues with its data", k.PID, k.Since.Local().Format(time.DateTime), s.howKilled()))
		row("  Log", orDash(k.Log))
	}
	s.Database.rows(row)
	if err := t.Flush(); err != nil {
		return err
	}
	switch s.State {
	case Absent, Stopped:
		_, _ = fmt.Fprintf(w, "\nStart it with: %s\n", start)
	}
	if len(s.Planes) == 0 {
		_, _ = fmt.Fprintln(w, "\nNo hosted control plane runs as a process.")
	} else if err := planes(w, s.Planes, now); err != nil {
		return err
	}
	if s.Simulated != nil {
		_, _ = fmt.Fprintf(w, "\nSimulated clusters, which need no process: %d; \"slipway get clusters -A\" lists them.\n", *s.Simulated)
	}
	return nil
}

// rows prints a warning if the database is nearly full.
func (d *Database) rows(row func(key string, value any)) {
	if d == nil || d.Bytes*100 < d.Limit*nearlyFull {
		return
	}
	row("Database", fmt.Sprintf("nearly full: %s of %s. With more, nothing can be written. Delete objects that are not needed, wait for ten minutes, "+
		"then run \"slipway down\" and \"slipway up\" to get the space back", mebibytes(d.Bytes), mebibytes(d.Limit)))
	row("", "\"slipway kubectl get --raw /metrics | grep apiserver_resource_objects\" counts the objects of each kind; a ResourceQuota for each namespace limits them")
}

// howKilled returns the presumed reason why a process ended without being stopped.
func (s Status) howKilled() string {
	if s.Disk.IsFull() {
		return "ended, because its disk is full"
	}
	return "was killed, or its machine went down"
}

// diskRow prints a warning if the disk is full or nearly full.
func (s Status) diskRow(row func(key string, value any), start string) {
	switch {
	case s.Disk.IsFull() && s.Management == nil:
		row("Disk", fmt.Sprintf("The disk of %s is full (%s): free some space, then %s", s.DataDir, s.Disk, start))
	case s.Disk.IsFull():
		row("Disk", fmt.Sprintf("The disk of %s is full (%s): free some space", s.DataDir, s.Disk))
	case s.Disk.IsLow():
		row("Disk", fmt.Sprintf("The disk of %s is nearly full (%s): free some space, without which the management cluster stops", s.DataDir, s.Disk))
	}
}

// supervisionRows prints the number of restarts of the management cluster, and the time of the next start.
func (s Status) supervisionRows(row func(key string, value any), now time.Time) {
	v := s.Supervision
	if v == nil || v.Restarts == 0 {
		return
	}
	row("Restarts of it", v.Restarts)
	row("  Last exit", fmt.Sprintf("%s ago: %s", age(now, v.LastExitAt), v.LastExit))
	switch {
	case s.State != restarting:
	case v.Waiting != "":
		row("  Next start", v.Waiting)
	case v.NextStart.After(now):
		row("  Next start", "in "+age(v.NextStart, now))
	default:
		row("  Next start", "now")
	}
}

func (e Encryption) text() string {
	switch {
	case e.Key == "":
		return "plain text in etcd"
	case e.OlderKeys > 0:
		return fmt.Sprintf("being encrypted with %s (%d older)", e.Key, e.OlderKeys)
	}
	return "encrypted with " + e.Key
}

// rows prints the state of the manager, or nothing if it was not started yet.
func (m *Manager) rows(row func(key string, value any), now time.Time) {
	if m == nil {
		return
	}
	switch {
	case m.PID == 0 && m.NextStart.After(now):
		row("Manager", "Restarting in "+age(m.NextStart, now))
	case m.PID == 0:
		row("Manager", "Restarting")
	default:
		row("Manager", m.state())
		row("  Process", fmt.Sprintf("%d, for %s (since %s)", m.PID, age(now, m.Since), m.Since.Local().Format(time.DateTime)))
		row("  Memory", mebibytes(m.Memory))
	}
	if m.Restarts > 0 {
		row("  Restarts", m.Restarts)
		row("  Last exit", fmt.Sprintf("%s ago: %s", age(now, m.LastExitAt), m.LastExit))
	}
	for _, a := range m.SetAside {
		row("  Set aside", fmt.Sprintf("%s until %s, after %d crashes", a.Object, a.Until.Local().Format(time.DateTime), a.Crashes))
	}
}

// state returns the state of a manager with a process.
func (m *Manager) state() string {
	switch {
	case m.Problem != "":
		return "Not answering: " + m.Problem
	case m.Diagnostics == "":
		return "Starting"
	}
	return "Running"
}

// nodeRows prints the state of the management cluster's node, if it has one.
func nodeRows(row func(key string, value any), n *datadir.Node) {
	switch {
	case n == nil:
	case n.Ready:
		row("Node", "Ready, in container "+n.Container)
	default:
		row("Node", "Not ready: "+n.Message)
	}
}

func planes(w io.Writer, all []controlplanesupervisor.Status, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "\nHOSTED CONTROL PLANE\tSTATE\tVERSION\tENDPOINT\tPID\tUSER\tFOR\tRESTARTS\tMEMORY\tLAST EXIT")
	for _, p := range all {
		state, pid, user, since, memory := "Stopped", "-", "-", "-", "-"
		if p.User != 0 {
			user = fmt.Sprint(p.User)
		}
		if p.Running {
			state, pid, since, memory = "Running", fmt.Sprint(p.PID), age(now, p.Since), mebibytes(p.Memory)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			p.Name, state, orDash(p.Version), orDash(p.Endpoint), pid, user, since, p.Restarts, memory, orDash(cmp.Or(p.Problem, p.LastExit)))
	}
	return t.Flush()
}

func age(now, since time.Time) string { return duration.HumanDuration(now.Sub(since)) }

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
