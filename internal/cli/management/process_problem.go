package management

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// A manager that exited again is reported for some time after it runs, because it may exit again.
const (
	unstableRestarts = 2
	unstableTime     = 10 * time.Minute
)

// ProcessProblem returns the problem of the processes of the management cluster on this host as a chain of one link, and
// false if there is none or the management cluster is not one of `slipway up`. No object of the API reports it. It sends no
// request. "explain" and the page of "ui" show it above everything else.
func (c *Connection) ProcessProblem() (rootcause.Chain, bool) {
	p, found := c.processProblem()
	return rootcause.Chain{Links: []rootcause.Link{p.link}, Remedy: p.remedy, Time: p.time}, found
}

// processProblem reads the problem; a connection that was not made by [Flags.Connect] has none.
func (c *Connection) processProblem() (processProblem, bool) {
	if c.now == nil || c.DataDir == "" {
		return processProblem{}, false
	}
	return readProcessProblem(c.DataDir, c.UpCommand, c.now())
}

// processProblem is a problem of the processes of the management cluster, from [readProcessProblem].
type processProblem struct {
	link   rootcause.Link
	remedy rootcause.Remedy
	// isDown is true if the API server does not run either.
	isDown bool
	// time is the time at which it was read.
	time time.Time
}

// text returns the problem as a sentence and the remedy as another one. [Connection.Explain] and managerProblem print it.
func (p processProblem) text() string {
	since := ""
	if at := p.link.Since; !at.IsZero() {
		since = ", since " + duration.HumanDuration(max(0, p.time.Sub(at)))
	}
	command := ""
	if p.remedy.Command != "" {
		command = fmt.Sprintf(": %q", p.remedy.Command)
	}
	return fmt.Sprintf("%s%s: %s. %s%s", p.link.Object, since, p.link.Message, p.remedy.Text, command)
}

// readProcessProblem reads the problem from the data directory. The argument upCommand starts the management cluster.
func readProcessProblem(dir, upCommand string, now time.Time) (p processProblem, found bool) {
	defer func() { p.time = now }()
	state, err := datadir.Inspect(datadir.Dir(dir))
	if err != nil || !state.Exists || state.Holder.ManagerOf != "" {
		return processProblem{}, false
	}
	if space, err := datadir.SpaceOf(datadir.Dir(dir)); err == nil && space.IsFull() {
		return diskProblem(dir, upCommand, state, space), true
	}
	switch {
	case !state.Held && state.Supervision != nil:
		return clusterProblem(dir, *state.Supervision, now), true
	case state.Run == nil || state.Run.Manager == nil:
		return processProblem{}, false
	}
	return managerProcessProblem(dir, *state.Run.Manager, now)
}

// newProcessProblem returns the problem of a process of a data directory.
func newProcessProblem(kind, dir, message string, since time.Time) processProblem {
	return processProblem{link: rootcause.Link{Object: rootcause.Ref{Kind: kind, Name: dir}, Message: message, Since: since}}
}

func diskProblem(dir, upCommand string, state datadir.State, space datadir.Space) processProblem {
	message := fmt.Sprintf("The disk of %s is full (%s)", dir, space)
	if state.Held {
		p := newProcessProblem("Management cluster", dir, message+"; the process ends when it cannot write", time.Time{})
		p.remedy = rootcause.Remedy{Text: "Free space on this disk", Command: "df -h " + dir}
		return p
	}
	p := newProcessProblem("Management cluster", dir, message+", so that it does not run", time.Time{})
	p.isDown, p.remedy = true, rootcause.Remedy{Text: "Free space on this disk, then start the management cluster", Command: upCommand}
	if v := state.Supervision; v != nil {
		p.link.Since = v.LastExitAt
		p.remedy = rootcause.Remedy{Text: "Free space on this disk; the management cluster is then started without a command", Command: "df -h " + dir}
	}
	return p
}

func clusterProblem(dir string, v datadir.Supervision, now time.Time) processProblem {
	message := "Not started yet"
	if v.LastExit != "" {
		message = "Exited: " + v.LastExit
	}
	p := newProcessProblem("Management cluster", dir, message, v.LastExitAt)
	p.isDown, p.remedy = true, rootcause.Remedy{Text: nextStart(v.NextStart, now), Automatic: true}
	return p
}

// managerProcessProblem returns the problem of the manager of a running management cluster.
func managerProcessProblem(dir string, m datadir.Manager, now time.Time) (processProblem, bool) {
	p := newProcessProblem("Manager", dir, "", m.LastExitAt)
	switch {
	case m.LastExit != "" && (m.PID == 0 || m.Diagnostics == ""):
		p.link.Message = "Restarting, because " + m.LastExit
		p.remedy = rootcause.Remedy{Text: nextStart(m.NextStart, now) + "; nothing is reconciled until it is ready. " + readLog(dir), Automatic: true}
	case !m.UnresponsiveSince.IsZero():
		p.link.Since = m.UnresponsiveSince
		p.link.Message, p.remedy = unresponsiveProcess(m.PID)
	case m.Restarts >= unstableRestarts && now.Sub(m.LastExitAt) < unstableTime:
		p.link.Message = fmt.Sprintf("Restarted %d times, the last time because %s", m.Restarts, m.LastExit)
		p.remedy = rootcause.Remedy{Text: "It runs again. " + readLog(dir), Automatic: true}
	default:
		return p, false
	}
	return p, true
}

// readLog is the remedy for a manager that exits again and again.
func readLog(dir string) string {
	return "If it exits again, read the end of its log " + datadir.Dir(dir).Log()
}

// nextStart describes the next start of a process that exited.
func nextStart(at, now time.Time) string {
	if !at.After(now) {
		return "It is being started"
	}
	return "It is started again in " + duration.HumanDuration(at.Sub(now))
}

// unresponsiveProcess returns the cause and the remedy of a process that does not respond. It can be restarted in either
// case, because its parent process starts it again.
func unresponsiveProcess(pid int) (cause string, r rootcause.Remedy) {
	if IsStopped(pid) {
		return fmt.Sprintf("Process %d does not respond, because a signal has stopped it", pid),
			rootcause.Remedy{Text: fmt.Sprintf("Continue process %d, or end it with signal KILL to have it restarted", pid), Command: fmt.Sprintf("kill -CONT %d", pid)}
	}
	return fmt.Sprintf("Process %d does not respond: this host is busy, or the process hangs", pid),
		rootcause.Remedy{Text: fmt.Sprintf("If this host is not busy, end process %d to have it restarted", pid), Command: fmt.Sprintf("kill -9 %d", pid)}
}

// IsStopped reports whether a signal has stopped a process. "status" calls it for the manager, too.
func IsStopped(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(data, ')') // of the name, which may contain anything
	return err == nil && end >= 0 && bytes.HasPrefix(data[end+1:], []byte(" T "))
}
