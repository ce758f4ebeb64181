package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
	"github.com/slipwayhq/slipway/internal/version"
)

// Names of the authorities and keys in the PKI folder. Whoever makes a control
// plane puts them there; the process issues everything else from them.
const (
	CA        = "ca"             // of clients and of the API server
	EtcdCA    = "etcd-ca"        // kept for tools that expect it: etcd itself is on a unix socket
	ProxyCA   = "front-proxy-ca" // of the aggregation layer
	SigningSA = "sa"             // key pair of service account tokens

	// EncryptionKeys is a file with the keys of encryption at rest, in base64 by their provider, in JSON.
	EncryptionKeys = "encryption-keys.json"
)

// Folder is the folder of one control plane.
type Folder string

// Here is the folder that this process works in. Files that are named by it are found also when the folder was renamed.
const Here Folder = "/proc/self/cwd"

// Config is the path of the configuration.
func (f Folder) Config() string { return f.path("config.json") }

// PKI is the folder of certificates and keys.
func (f Folder) PKI() string { return f.path("pki") }

// Etcd is the folder of the etcd data.
func (f Folder) Etcd() string { return f.path("etcd") }

// Lock is the path of the lock that the process holds while it lives.
func (f Folder) Lock() string { return f.path("lock") }

// Log is the path of the process's log.
func (f Folder) Log() string { return f.path("log", "control-plane.log") }

// AuditLog is the path of the file that requests are recorded in.
func (f Folder) AuditLog() string { return f.path("log", "audit.log") }

func (f Folder) run() string { return f.path(runFile) }

// Files that the process of a control plane writes.
const (
	runFile      = "run.json"
	restoredFile = "restored.json"
	endFile      = "ended.json"
)

func (f Folder) path(elem ...string) string {
	return filepath.Join(append([]string{string(f)}, elem...)...)
}

// Run is what a process says about itself.
type Run struct {
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Version string    `json:"version"`            // of Kubernetes
	Slipway string    `json:"slipway"`            // version of the binary
	Config  string    `json:"config"`             // Config.Hash
	Child   int       `json:"childPID,omitempty"` // the process of the components where that is another one
	Local   string    `json:"local"`              // loopback address and port of the API server, for this machine only
	// Relocatable tells that the process does not notice when its folder is renamed.
	Relocatable bool `json:"relocatable,omitempty"`
	// Only is what alone runs, as in the configuration.
	Only string `json:"only,omitempty"`
	// EncryptionKeys stands for the keys that objects may be encrypted with, ever since it is set; empty: none is.
	EncryptionKeys string `json:"encryptionKeys,omitempty"`
	// EncryptionMark is the last one of a Secret by which keys were left out; see [Data.Rewritten].
	EncryptionMark string `json:"encryptionMark,omitempty"`
}

// WriteRun records r.
func (f Folder) WriteRun(r Run) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(f.run(), append(data, '\n'), 0o600)
	return err
}

// ReadRun returns what the process that lives says about itself. alive tells
// whether there is one; right after its start a Run may still be empty but for
// the PID.
func (f Folder) ReadRun() (r Run, alive bool, err error) {
	holder, held, err := datadir.Probe(f.Lock())
	if err != nil || !held {
		return Run{}, false, err
	}
	data, err := ownuser.Read(string(f), runFile)
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
	if _, own := ownuser.Of(string(f)); own {
		r = r.plausible()
	}
	return r, true, nil
}

// plausible is the record without what no control plane says of itself: one that was taken over does not make this program connect to elsewhere,
// or show what is not a version.
func (r Run) plausible() Run {
	if a, err := netip.ParseAddrPort(r.Local); err != nil || !a.Addr().IsLoopback() {
		r.Local = ""
	}
	if !version.Valid(r.Version) {
		r.Version = ""
	}
	if year := r.Since.UTC().Year(); year < 1 || year > 9999 { // no status takes it
		r.Since = time.Time{}
	}
	if r.Only != OnlyEtcd && r.Only != OnlyLoopback {
		r.Only = ""
	}
	return r
}
