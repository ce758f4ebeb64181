package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// Run is what the process that holds the directory says about itself.
type Run struct {
	PID               int       `json:"pid"`
	Since             time.Time `json:"since"`
	Version           string    `json:"version"`           // of slipway
	KubernetesVersion string    `json:"kubernetesVersion"` // of the management cluster
	Server            string    `json:"server"`            // https URL of the API server
	Instance          string    `json:"instance"`
	Ready             bool      `json:"ready"` // the API server answers and the controllers run
	Manager           *Manager  `json:"manager,omitempty"`
	Node              *Node     `json:"node,omitempty"` // nil: the management cluster has none
	Networks          *Networks `json:"networks,omitempty"`
	Nodes             *Nodes    `json:"nodes,omitempty"`
}

// Nodes is what nodes of workload clusters may be, as the operator's file has it. 0: no limit.
type Nodes struct {
	Images    []string `json:"images"`
	CPUs      int32    `json:"cpus,omitempty"`
	MemoryMiB int64    `json:"memoryMiB,omitempty"`
	Processes int64    `json:"processes,omitempty"`
}

// Networks says where networks of workload clusters may be.
type Networks struct {
	// Ranges that a network has to lie in.
	Ranges []netip.Prefix `json:"ranges"`
	// WidestPrefix is the length of the widest prefix of one.
	WidestPrefix int `json:"widestPrefix"`
	// Named are hosts and ranges that none may take, because this host has to reach them.
	Named []string `json:"named,omitempty"`
}

// Node is what is said of the node of the management cluster.
type Node struct {
	Name      string `json:"name"`
	Container string `json:"container"`
	Ready     bool   `json:"ready"`
	Message   string `json:"message,omitempty"` // why it is not ready
}

// Manager is what is said of the process that runs the controllers.
type Manager struct {
	PID        int       `json:"pid,omitempty"` // 0: it does not run, and is started again
	Since      time.Time `json:"since"`
	Restarts   int       `json:"restarts"`
	LastExit   string    `json:"lastExit,omitempty"`
	LastExitAt time.Time `json:"lastExitAt,omitzero"`
	// NextStart is when it is started again; zero: it runs.
	NextStart time.Time `json:"nextStart,omitzero"`
	// Diagnostics is the https URL below which plans are served; empty: it is starting.
	Diagnostics string `json:"diagnostics,omitempty"`
	// SetAside are the objects that are not reconciled for a while, because the manager crashed over them.
	SetAside []SetAside `json:"setAside,omitempty"`
}

// SetAside is an object that is not reconciled until a time.
type SetAside struct {
	Object  string    `json:"object"`
	Until   time.Time `json:"until"`
	Crashes int       `json:"crashes"`
}

// WriteRun records r for other processes.
func (h *Handle) WriteRun(r Run) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = WriteFile(h.run(), append(data, '\n'), 0o600)
	return err
}

// ClearRun removes the record; a missing one is no error.
func (h *Handle) ClearRun() error {
	if err := os.Remove(h.run()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// State is what can be said about a data directory from outside.
type State struct {
	Exists bool   // the directory has been used by slipway
	Held   bool   // a living process holds it
	Holder Holder // of the lock, where Held
	Run    *Run   // of that process; nil until it has written one
	Killed *Run   // of the last process, which ended without being stopped; nil: it was stopped, or one holds the directory
	// Supervision is what the supervisor of a management cluster in the background recorded; nil: there is none.
	Supervision *Supervision
}

// Inspect reads the state of a directory without taking its lock.
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
	if s.Supervision, err = ReadSupervision(dir); err != nil {
		return s, err
	}
	r, err := dir.readRun()
	switch {
	case !held && err == nil:
		s.Killed = r // one that was stopped removes its record
	case !held: // a record that was cut off is that of no process
	case err != nil:
		return s, err
	case r != nil && r.PID == holder.PID:
		s.Run = r
	}
	return s, nil
}

// readRun reads the record of the process that holds the directory, or held it last; nil: there is none.
func (d Dir) readRun() (*Run, error) {
	data, err := os.ReadFile(d.run())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unusable(d, err)
	}
	var r Run
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", d.run(), err)
	}
	return &r, nil
}
