package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/heap"
)

// Status is the state of one control plane process, for the HostedControlPlane controller and for commands such as
// `slipway status`. The JSON names are part of the output of `slipway status -o json` and must stay.
type Status struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	// Supervised means that this program supervises it.
	Supervised bool `json:"-"`
	PID        int  `json:"pid,omitempty"`
	// User is the separate user of the process. 0 means that it runs as the user of Slipway.
	User    int       `json:"user,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Version string    `json:"version,omitempty"` // Kubernetes version of the running process
	// DesiredVersion is the Kubernetes version that the process should run.
	DesiredVersion string `json:"wantedVersion,omitempty"`
	// Local is the loopback address and port of the API server on this machine.
	Local string `json:"local,omitempty"`
	// Endpoint is the address of the API server for nodes.
	Endpoint string `json:"endpoint,omitempty"`
	// Memory is the resident memory in bytes.
	Memory int64 `json:"memory,omitempty"`
	// RunMode names the only components that run. Empty means all.
	RunMode string `json:"only,omitempty"`
	// Ready means that /readyz of the API server succeeds, EtcdReady that its etcd check does. Inspect does
	// not check health, so that both are false.
	Ready     bool `json:"ready,omitempty"`
	EtcdReady bool `json:"etcdReady,omitempty"`
	// Data describes the database.
	Data processconfig.Data `json:"data,omitzero"`
	// Restarts counts restarts after unexpected exits since the control plane was created.
	Restarts int `json:"restarts,omitempty"`
	// LastExit describes the last exit, LastLog contains the last log lines before it.
	LastExit string   `json:"lastExit,omitempty"`
	LastLog  []string `json:"lastLog,omitempty"`
	// Problem is the reason why its files cannot be read.
	Problem string `json:"problem,omitempty"`
}

// Inspect reads the status of all control planes below root without a Supervisor and without checking health, for
// commands that run beside the manager. Errors of one control plane are in its Problem and do not affect the others.
// `slipway status`, `slipway down`, `slipway logs` and `slipway versions` call it.
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
		s, err := observe(processconfig.Folder(filepath.Join(root, e.Name())))
		if err != nil {
			s.Problem = err.Error()
		}
		s.Name = e.Name()
		out = append(out, s)
	}
	return out, nil
}

// observe reads the status of a control plane from the files in its directory. Supervision loops, [Supervisor.Status]
// and [Inspect] all start from it.
func observe(f processconfig.Folder) (Status, error) {
	var s Status
	if c, err := processconfig.Load(f.Config()); err == nil {
		s.Endpoint, s.DesiredVersion = c.Endpoint, c.Version
	}
	past, err := readHistory(f)
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
	s.Running, s.PID, s.Since, s.Version, s.Local, s.RunMode = true, run.PID, run.Since, run.Version, run.Local, run.RunMode
	s.Memory = heap.Resident(run.PID)
	if user, own := uidisolation.UserOfFolder(string(f)); own {
		if is, err := uidisolation.UserOf(run.PID); err == nil && is == user {
			s.User = user
		}
	}
	if run.Child != 0 {
		s.Memory += heap.Resident(run.Child)
	}
	return s, nil
}

// equalForSubscribers reports whether two statuses are equal for subscribers, which ignores memory. The supervision
// loop notifies only if it is false.
func equalForSubscribers(a, b Status) bool {
	return a.Running == b.Running && a.PID == b.PID && a.Version == b.Version && a.Local == b.Local && a.RunMode == b.RunMode &&
		a.User == b.User && a.Ready == b.Ready && a.EtcdReady == b.EtcdReady && a.Restarts == b.Restarts && a.LastExit == b.LastExit &&
		slices.Equal(a.LastLog, b.LastLog)
}
