package datadir

import (
	"os"
	"path/filepath"
)

// Dir is the absolute path of a data directory. Its methods only name paths.
type Dir string

// Default is $XDG_DATA_HOME/slipway, or ~/.local/share/slipway where that
// variable is not set.
func Default(getenv func(string) string) (Dir, error) {
	if base := getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return Dir(filepath.Join(base, "slipway")), nil
	}
	if home := getenv("HOME"); home != "" {
		return Dir(filepath.Join(home, ".local", "share", "slipway")), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return Dir(filepath.Join(home, ".local", "share", "slipway")), nil
}

// Path joins elements to the directory.
func (d Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// Kubeconfig is the administrator's kubeconfig with the context "slipway".
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// ManagerKubeconfig is the kubeconfig of the user "slipway:manager"; it names
// its certificate files, so that a renewal is picked up by a running client.
func (d Dir) ManagerKubeconfig() string { return d.Path("manager.kubeconfig") }

// ProviderKubeconfig is the kubeconfig of the identity of one of the manager's providers, in the folder of its keys.
func (d Dir) ProviderKubeconfig(name string) string {
	return d.Path("pki", "manager-"+name+".kubeconfig")
}

// Diagnostics is the name, in the folder of keys, of the certificate that the manager serves diagnostics with.
const Diagnostics = "diagnostics"

// DiagnosticsFiles are that certificate and its key.
func (d Dir) DiagnosticsFiles() (cert, key string) {
	return d.Path("pki", Diagnostics+".crt"), d.Path("pki", Diagnostics+".key")
}

// Extensions is the name, in the folder of keys, of the certificate that the manager shows to Runtime Extensions.
const Extensions = "extensions"

// ExtensionsFiles are that certificate and its key.
func (d Dir) ExtensionsFiles() (cert, key string) {
	return d.Path("pki", Extensions+".crt"), d.Path("pki", Extensions+".key")
}

// PKI holds certificates and keys of the management cluster.
func (d Dir) PKI() string { return d.Path("pki") }

// Etcd holds the management cluster's etcd data.
func (d Dir) Etcd() string { return d.Path("etcd") }

// Planes holds one folder per hosted control plane.
func (d Dir) Planes() string { return d.Path("planes") }

// Custody says what was handed over to and from other data directories (package custody).
func (d Dir) Custody() string { return d.Path("custody") }

// Images holds archives of container images for nodes that are made later, in a folder per cluster.
func (d Dir) Images() string { return d.Path("images") }

// Snapshots holds snapshots of the etcd of workload clusters, in a folder per namespace.
func (d Dir) Snapshots() string { return d.Path("snapshots") }

// Balancers holds one folder per load balancer of a cluster whose control plane runs on machines.
func (d Dir) Balancers() string { return d.Path("balancers") }

// Kubernetes holds one folder per added Kubernetes version.
func (d Dir) Kubernetes() string { return d.Path(kubernetes) }

// Log is the log file of the process that holds the directory.
func (d Dir) Log() string { return d.Path("log", "slipway.log") }

// AuditLog is the file that requests to the management cluster are recorded in.
func (d Dir) AuditLog() string { return d.Path("log", "audit.log") }

// Lock is the lock file that the process which holds the directory holds.
func (d Dir) Lock() string { return d.Path("lock") }

// Simulated holds the objects of simulated workload clusters.
func (d Dir) Simulated() string { return d.Path("simulated") }

// EncryptedWith says which keys the etcd data needs (package atrest).
func (d Dir) EncryptedWith() string { return d.Path("encrypted-with.json") }

func (d Dir) versions() string { return d.Path("written-by.json") }
func (d Dir) version() string  { return d.Path("version") }
func (d Dir) instance() string { return d.Path("instance") }
func (d Dir) run() string      { return d.Path("run.json") }
func (d Dir) node() string     { return d.Path("node") }
func (d Dir) flags() string    { return d.Path("flags.json") }

// Absolute makes a directory of a path that may be relative to the working
// directory.
func Absolute(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	return Dir(abs), err
}

// kubernetes is the one folder that may be there before slipway runs in the directory.
const kubernetes = "kubernetes"
