package datadir

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"time"
)

// Run is the state that the process which holds the directory publishes in run.json. `slipway up` writes it; commands
// such as `slipway status`, possibly of another version, read it, so the JSON names must stay.
type Run struct {
	PID               int            `json:"pid"`
	Since             time.Time      `json:"since"`
	Version           string         `json:"version"`           // version of Slipway
	KubernetesVersion string         `json:"kubernetesVersion"` // version of the management cluster
	Server            string         `json:"server"`            // https URL of the API server
	Instance          string         `json:"instance"`          // instance ID of the directory
	Ready             bool           `json:"ready"`             // the API server is ready and the controllers run
	Manager           *Manager       `json:"manager,omitempty"`
	Node              *Node          `json:"node,omitempty"` // nil if the management cluster has no node
	Networks          *NetworkLimits `json:"networks,omitempty"`
	Nodes             *NodeLimits    `json:"nodes,omitempty"`
}

// NodeLimits contains the operator's limits for nodes of workload clusters. 0 means no limit. `slipway up` sets them,
// and `slipway create cluster` checks them.
type NodeLimits struct {
	Images    []string `json:"images"`
	CPUs      int32    `json:"cpus,omitempty"`
	MemoryMiB int64    `json:"memoryMiB,omitempty"`
	Processes int64    `json:"processes,omitempty"`
	// Docker is the address of the Docker Engine that runs the nodes (DOCKER_HOST). Empty means the default address.
	Docker string `json:"docker,omitempty"`
}

// RunsHere reports whether the nodes run on this host, and not on a remote Docker Engine. `slipway create cluster`
// checks the resources of this host only in this case.
func (l NodeLimits) RunsHere() bool { return l.Docker == "" || strings.HasPrefix(l.Docker, "unix://") }

// NetworkLimits contains the operator's limits for networks of workload clusters. `slipway up` sets them, and package
// cli/hidden reads them.
type NetworkLimits struct {
	// Ranges that must contain a network.
	Ranges []netip.Prefix `json:"ranges"`
	// WidestPrefix is the smallest prefix length of a network.
	WidestPrefix int `json:"widestPrefix"`
	// Named lists hosts and ranges that networks must not contain, because this host has to reach them.
	Named []string `json:"named,omitempty"`
}

// Node is the state of the management cluster's node. `slipway up` sets it, and `slipway status` shows it.
type Node struct {
	Name      string `json:"name"`
	Container string `json:"container"`
	Ready     bool   `json:"ready"`
	Message   string `json:"message,omitempty"` // reason why it is not ready
}

// Manager is the state of the process that runs the controllers. `slipway up` sets it, and `slipway status` shows it.
type Manager struct {
	PID        int       `json:"pid,omitempty"` // 0 if it does not run and will be restarted
	Since      time.Time `json:"since"`
	Restarts   int       `json:"restarts"`
	LastExit   string    `json:"lastExit,omitempty"`
	LastExitAt time.Time `json:"lastExitAt,omitzero"`
	// NextStart is the time of the next restart. Zero means that it runs.
	NextStart time.Time `json:"nextStart,omitzero"`
	// Diagnostics is the https base URL of plans. It is empty while the manager starts.
	Diagnostics string `json:"diagnostics,omitempty"`
	// UnresponsiveSince is the time of the last response of a running manager that does not respond. Zero means that it
	// responds.
	UnresponsiveSince time.Time `json:"unresponsiveSince,omitzero"`
	// QuarantinedObjects lists objects that are not reconciled for a while, because the manager crashed during their
	// reconciliation.
	QuarantinedObjects []Quarantined `json:"setAside,omitempty"`
}

// Quarantined is an object that is not reconciled until the given time. `slipway up` sets it.
type Quarantined struct {
	Object  string    `json:"object"`
	Until   time.Time `json:"until"`
	Crashes int       `json:"crashes"`
}

// WriteRun publishes r for other processes. `slipway up` calls it after each change.
func (h *Handle) WriteRun(r Run) error {
	return WriteJSON(h.run(), r)
}

// ClearRun deletes the published state, if any. `slipway up` calls it when it ends.
func (h *Handle) ClearRun() error {
	if err := os.Remove(h.run()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// State is the state of a data directory as other processes see it. [Inspect] fills it.
type State struct {
	Exists bool   // Slipway has used the directory
	Held   bool   // a running process holds it
	Holder Holder // holder of the lock, if Held
	Run    *Run   // state of this process; nil until it is published
	Killed *Run   // state of the last process if it was not stopped properly
	// Supervision is the state of the supervisor of a management cluster in the background. It is nil if
	// there is none.
	Supervision *Supervision
}

// Inspect reads the state of a directory without acquiring its lock, for commands that must know whether a management
// cluster or manager runs.
func Inspect(dir Dir) (State, error) {
	var s State
	if _, err := os.Stat(dir.version()); err == nil {
		s.Exists = true
	}
	holder, held, err := Probe(dir.Lock())
	if err != nil {
		return s, unusable(dir, err)
	}
	s.Holder, s.Held = holder, held
	if s.Supervision, err = readSupervision(dir); err != nil {
		return s, err
	}
	r, err := dir.readRun()
	switch {
	case !held && err == nil:
		s.Killed = r // a process that is stopped properly deletes its state
	case !held: // a truncated record belongs to no running process
	case err != nil:
		return s, err
	case r != nil && r.PID == holder.PID:
		s.Run = r
	}
	return s, nil
}

// readRun reads the state of the process that holds the directory or last held it. It returns nil if there is
// none.
func (d Dir) readRun() (*Run, error) {
	var r Run
	found, err := ReadJSON(d.run(), &r)
	switch {
	case err != nil:
		return nil, unusable(d, err)
	case !found:
		return nil, nil
	}
	return &r, nil
}
