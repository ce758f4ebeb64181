package processconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/version"
)

// Names of the CAs and keys in the PKI directory. Package hosted writes them from the Secrets of the cluster; the
// process issues all other certificates from them. Existing directories contain these names, so they must not change.
const (
	CA        = "ca"             // of clients and of the API server
	EtcdCA    = "etcd-ca"        // for tools that expect it; etcd itself listens on a Unix socket
	ProxyCA   = "front-proxy-ca" // of the aggregation layer
	SigningSA = "sa"             // key pair of service account tokens

	// EncryptionKeys is a JSON file with the keys for encryption at rest, in base64 by provider.
	EncryptionKeys = "encryption-keys.json"
)

// Folder is the directory of one hosted control plane. doc.go lists the files, and the program that writes each of
// them.
type Folder string

// WorkingDir is the working directory of this process. Paths below it remain valid when the directory is renamed. The
// process of a hosted control plane uses it.
const WorkingDir Folder = "/proc/self/cwd"

// Config returns the path of the configuration. Package uidisolation lists its name in managerFiles.
func (f Folder) Config() string { return f.path("config.json") }

// PKI returns the directory of certificates and keys.
func (f Folder) PKI() string { return f.path("pki") }

// Etcd returns the directory of the etcd data.
func (f Folder) Etcd() string { return f.path("etcd") }

// Lock returns the path of the lock that the process holds while it runs.
func (f Folder) Lock() string { return f.path("lock") }

// Log returns the path of the process's log. `slipway logs` reads it.
func (f Folder) Log() string { return f.path("log", "control-plane.log") }

// AuditLog returns the path of the audit log.
func (f Folder) AuditLog() string { return f.path("log", "audit.log") }

func (f Folder) run() string { return f.path(runFile) }

// Files that the process of a control plane writes. A manager of another version may read them, so the names must stay.
const (
	runFile      = "run.json"
	restoredFile = "restored.json"
	endFile      = "ended.json"
)

func (f Folder) path(elem ...string) string {
	return filepath.Join(append([]string{string(f)}, elem...)...)
}

// Run is the state that the process of a hosted control plane publishes in run.json. The supervisor, possibly of a
// newer version of Slipway, reads it, so the JSON names must stay.
type Run struct {
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Version string    `json:"version"`            // Kubernetes version
	Slipway string    `json:"slipway"`            // version of the binary
	Config  string    `json:"config"`             // Config.Hash
	Child   int       `json:"childPID,omitempty"` // PID of the child process with the components, if any
	Local   string    `json:"local"`              // loopback address and port of the API server on this machine
	// Relocatable means that the directory can be renamed while the process runs.
	Relocatable bool `json:"relocatable,omitempty"`
	// RunMode limits the process to some components, as in its configuration.
	RunMode string `json:"only,omitempty"`
	// EncryptionKeys is the fingerprint of all keys with which objects may be encrypted. Empty means none.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
	// EncryptionMark is the last mark of a Secret that made previous keys unnecessary; see [Data.Rewritten].
	EncryptionMark string `json:"encryptionMark,omitempty"`
}

// WriteRun publishes r. Package controlplane and a restore (package etcd) call it.
func (f Folder) WriteRun(r Run) error {
	return datadir.WriteJSON(f.run(), r)
}

// ReadRun returns the state that the running process published. alive reports whether there is one. Immediately after
// its start, only PID and Since may be set. Packages supervisor and hosted/process and `slipway move` call it.
func (f Folder) ReadRun() (r Run, alive bool, err error) {
	holder, held, err := datadir.Probe(f.Lock())
	if err != nil || !held {
		return Run{}, false, err
	}
	data, err := uidisolation.Read(string(f), runFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Run{}, true, err
	}
	if err == nil {
		if err := json.Unmarshal(data, &r); err != nil {
			return Run{}, true, fmt.Errorf("read %s: %w", f.run(), err)
		}
	}
	if r.PID != holder.PID {
		r = Run{PID: holder.PID, Since: holder.Since}
	}
	if _, own := uidisolation.UserOfFolder(string(f)); own {
		r = r.plausible()
	}
	return r, true, nil
}

// plausible removes invalid values from the state. A compromised control plane must not make this program
// connect to another address, or show arbitrary text as a version.
func (r Run) plausible() Run {
	if a, err := netip.ParseAddrPort(r.Local); err != nil || !a.Addr().IsLoopback() {
		r.Local = ""
	}
	if !version.Valid(r.Version) {
		r.Version = ""
	}
	if year := r.Since.UTC().Year(); year < 1 || year > 9999 { // rejected by the API in a status
		r.Since = time.Time{}
	}
	if r.RunMode != RunEtcdOnly && r.RunMode != RunOnLoopback {
		r.RunMode = ""
	}
	return r
}
