package up

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
)

// buildRow prints a row of the status if this command and the process are from different builds, because behavior and
// messages may differ.
func buildRow(row func(string, any), running, own string) {
	if running != "" && running != own {
		row("  This command", fmt.Sprintf("slipway %s, another build: restart the process with it, or use the program of the process", own))
	}
}

// printStatus writes the status as text; start is the command that starts the management cluster. `slipway status`
// calls it unless -o is set.
func printStatus(w io.Writer, s statusReport, start string, now time.Time) error {
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
	case stateAbsent, stateStopped:
		_, _ = fmt.Fprintf(w, "\nStart it with: %s\n", start)
	}
	if len(s.Planes) == 0 {
		_, _ = fmt.Fprintln(w, "\nNo hosted control plane runs as a process.")
	} else if err := printControlPlanes(w, s.Planes, now); err != nil {
		return err
	}
	if s.Simulated != nil {
		_, _ = fmt.Fprintf(w, "\nSimulated clusters, which need no process: %d; \"slipway get clusters -A\" lists them.\n", *s.Simulated)
	}
	return nil
}

// rows prints a warning if the database is nearly full.
func (d *databaseStatus) rows(row func(key string, value any)) {
	if d == nil || d.Bytes*100 < d.Limit*nearlyFull {
		return
	}
	row("Database", fmt.Sprintf("nearly full: %s of %s. With more, nothing can be written. Delete objects that are not needed, wait for ten minutes, "+
		"then run \"slipway down\" and \"slipway up\" to get the space back", mebibytes(d.Bytes), mebibytes(d.Limit)))
	row("", "\"slipway kubectl get --raw /metrics | grep apiserver_resource_objects\" counts the objects of each kind; a ResourceQuota for each namespace limits them")
}

// howKilled returns the presumed reason why a process ended without being stopped.
func (s statusReport) howKilled() string {
	if s.Disk.IsFull() {
		return "ended, because its disk is full"
	}
	return "was killed, or its machine went down"
}

// diskRow prints a warning if the disk is full or nearly full.
func (s statusReport) diskRow(row func(key string, value any), start string) {
	switch {
	case s.Disk.IsFull() && s.State == restarting:
		row("Disk", fmt.Sprintf("The disk of %s is full (%s): free some space, then the management cluster is started again", s.DataDir, s.Disk))
	case s.Disk.IsFull() && s.Management == nil:
		row("Disk", fmt.Sprintf("The disk of %s is full (%s): free some space, then %s", s.DataDir, s.Disk, start))
	case s.Disk.IsFull():
		row("Disk", fmt.Sprintf("The disk of %s is full (%s): free some space", s.DataDir, s.Disk))
	case s.Disk.IsLow():
		row("Disk", fmt.Sprintf("The disk of %s is nearly full (%s): free some space, without which the management cluster stops", s.DataDir, s.Disk))
	}
}

// supervisionRows prints the number of restarts of the management cluster, and the time of the next start.
func (s statusReport) supervisionRows(row func(key string, value any), now time.Time) {
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

func (e encryptionStatus) text() string {
	switch {
	case e.Key == "":
		return "plain text in etcd"
	case e.OlderKeys > 0:
		return fmt.Sprintf("being encrypted with %s (%d older)", e.Key, e.OlderKeys)
	}
	return "encrypted with " + e.Key
}

// rows prints the state of the manager, or nothing if it was not started yet.
func (m *managerStatus) rows(row func(key string, value any), now time.Time) {
	if m == nil {
		return
	}
	switch {
	case m.PID == 0 && m.NextStart.After(now):
		row("Manager", "Restarting in "+age(m.NextStart, now))
	case m.PID == 0:
		row("Manager", "Restarting")
	default:
		row("Manager", m.state(now))
		row("  Process", fmt.Sprintf("%d, for %s (since %s)", m.PID, age(now, m.Since), m.Since.Local().Format(time.DateTime)))
		row("  Memory", mebibytes(m.Memory))
	}
	if m.Restarts > 0 {
		row("  Restarts", m.Restarts)
		row("  Last exit", fmt.Sprintf("%s ago: %s", age(now, m.LastExitAt), m.LastExit))
	}
	for _, a := range m.QuarantinedObjects {
		row("  Set aside", fmt.Sprintf("%s until %s, after %d crashes", a.Object, a.Until.Local().Format(time.DateTime), a.Crashes))
	}
}

// state returns the state of a manager with a process.
func (m *managerStatus) state(now time.Time) string {
	switch {
	case m.Problem != "" && !m.UnresponsiveSince.IsZero():
		return fmt.Sprintf("Not responding since %s (%s ago): %s", m.UnresponsiveSince.Local().Format(time.DateTime), age(now, m.UnresponsiveSince), m.Problem)
	case m.Problem != "":
		return "Not responding: " + m.Problem
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

func printControlPlanes(w io.Writer, all []supervisor.Status, now time.Time) error {
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

// workRows prints which objects a manager of another cluster reconciles, and whether it is the leader.
func (m *managementStatus) workRows(row func(key string, value any), s runState) {
	var limits []string
	if m.Namespace != "" {
		limits = append(limits, "in namespace "+m.Namespace)
	}
	if m.WatchFilter != "" {
		limits = append(limits, "with the watch filter "+m.WatchFilter)
	}
	if len(limits) > 0 {
		row("  Objects", strings.Join(limits, ", "))
	}
	switch {
	case m.Lease == "":
	case s == stateRunning:
		row("  Leader", "this one, by lease "+m.Lease)
	case m.Leader != "":
		row("  Leader", fmt.Sprintf("%s, by lease %s", m.Leader, m.Lease))
	default:
		row("  Leader", "not known, by lease "+m.Lease)
	}
	m.problemRow(row)
}

// rightsRow lists the missing rights of the manager, and the command that restores them.
func (m *managementStatus) rightsRow(row func(key string, value any)) {
	if len(m.MissingRights) > 0 {
		row("  Rights missing", strings.Join(m.MissingRights, ", ")+": the next start writes them again (slipway down, slipway up -d)")
	}
}

// problemRow prints the reason if the API does not respond.
func (m *managementStatus) problemRow(row func(key string, value any)) {
	if m.Problem != "" {
		row("  Not responding", m.Problem)
	}
}
