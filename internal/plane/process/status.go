package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/slipwayhq/slipway/internal/plane/ownuser"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// Status is what is known of one control plane's process.
type Status struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	// Supervised tells that this program keeps it running.
	Supervised bool `json:"-"`
	PID        int  `json:"pid,omitempty"`
	// User is the user of its own that the process runs as; 0: it runs as that of Slipway.
	User    int       `json:"user,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Version string    `json:"version,omitempty"` // of Kubernetes, of the running process
	// Wanted is the version of Kubernetes that the process is to run.
	Wanted string `json:"wantedVersion,omitempty"`
	// Local is the loopback address and port where this machine reaches the API server.
	Local string `json:"local,omitempty"`
	// Endpoint is where nodes reach it.
	Endpoint string `json:"endpoint,omitempty"`
	// Memory is the resident memory in bytes.
	Memory int64 `json:"memory,omitempty"`
	// Only is what alone runs; empty: everything.
	Only string `json:"only,omitempty"`
	// Ready: the API server's /readyz says ok. EtcdReady: its etcd check does. Inspect does not ask it, so that it says neither.
	Ready     bool `json:"ready,omitempty"`
	EtcdReady bool `json:"etcdReady,omitempty"`
	// Data is what is known of its database.
	Data workload.Data `json:"data,omitzero"`
	// Restarts counts starts after a death, over the life of the control plane's data.
	Restarts int `json:"restarts,omitempty"`
	// LastExit says how the process ended the last time, LastLog the last lines it wrote then.
	LastExit string   `json:"lastExit,omitempty"`
	LastLog  []string `json:"lastLog,omitempty"`
	// Problem is why its files cannot be read.
	Problem string `json:"problem,omitempty"`
}

// Inspect reads the status of every control plane below root from outside,
// without a Supervisor; health is not checked. What is wrong with the files of one is its Problem, and does not hide the others.
func Inspect(root string) ([]Status, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Status
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		s, err := observe(workload.Folder(filepath.Join(root, e.Name())))
		if err != nil {
			s.Problem = err.Error()
		}
		s.Name = e.Name()
		out = append(out, s)
	}
	return out, nil
}

func observe(f workload.Folder) (Status, error) {
	var s Status
	if c, err := workload.Load(f.Config()); err == nil {
		s.Endpoint, s.Wanted = c.Endpoint, c.Version
	}
	past, err := readPast(f)
	if err != nil {
		return s, err
	}
	s.Restarts, s.LastExit, s.LastLog = past.Restarts, past.LastExit, past.LastLog
	if s.Data, err = f.ReadData(); err != nil {
		return s, err
	}
	run, alive, err := f.ReadRun()
	if err != nil || !alive {
		return s, err
	}
	s.Running, s.PID, s.Since, s.Version, s.Local, s.Only = true, run.PID, run.Since, run.Version, run.Local, run.Only
	s.Memory = Memory(run.PID)
	if user, own := ownuser.Of(string(f)); own {
		if is, err := ownuser.UserOf(run.PID); err == nil && is == user {
			s.User = user
		}
	}
	if run.Child != 0 {
		s.Memory += Memory(run.Child)
	}
	return s, nil
}

// Memory is the resident memory of a process in bytes; zero when it is gone.
func Memory(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := bytes.Fields(data)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// same tells whether two statuses mean the same to a caller that waits for a
// change; memory does not count.
func same(a, b Status) bool {
	return a.Running == b.Running && a.PID == b.PID && a.Version == b.Version && a.Local == b.Local && a.Only == b.Only &&
		a.User == b.User && a.Ready == b.Ready && a.EtcdReady == b.EtcdReady && a.Restarts == b.Restarts && a.LastExit == b.LastExit &&
		slices.Equal(a.LastLog, b.LastLog)
}
