package datadir

import (
	"os"
	"path/filepath"
)

// Dir is the absolute path of a data directory. Its methods only return paths. Existing data directories have these
// paths, so they must not change without a new [format]; [Handle.Remove] must list each of them. The commands and
// package controlplane call its methods.
type Dir string

// Default returns $XDG_DATA_HOME/slipway, or ~/.local/share/slipway if the variable is not set. Commands call it if the
// user sets no directory.
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

// ManagerKubeconfig is the kubeconfig of the user "slipway:manager". It refers to its certificate files, so
// that running clients reload renewed certificates.
func (d Dir) ManagerKubeconfig() string { return d.Path("manager.kubeconfig") }

// ProviderKubeconfig is the kubeconfig of one of the manager's providers, in the PKI directory.
func (d Dir) ProviderKubeconfig(name string) string {
	return d.Path("pki", "manager-"+name+".kubeconfig")
}

// Diagnostics is the name of the manager's serving certificate for diagnostics in the PKI directory.
const Diagnostics = "diagnostics"

// DiagnosticsFiles returns the serving certificate for diagnostics and its key. The manager process of `slipway up`
// serves with it.
func (d Dir) DiagnosticsFiles() (cert, key string) {
	return d.Path("pki", Diagnostics+".crt"), d.Path("pki", Diagnostics+".key")
}

// Extensions is the name of the manager's client certificate for Runtime Extensions in the PKI directory.
const Extensions = "extensions"

// ExtensionsFiles returns the client certificate for Runtime Extensions and its key. The manager process of `slipway
// up` calls extensions with it.
func (d Dir) ExtensionsFiles() (cert, key string) {
	return d.Path("pki", Extensions+".crt"), d.Path("pki", Extensions+".key")
}

// PKI contains certificates and keys of the management cluster.
func (d Dir) PKI() string { return d.Path("pki") }

// Etcd contains the etcd data of the management cluster.
func (d Dir) Etcd() string { return d.Path("etcd") }

// Planes contains one directory for each hosted control plane.
func (d Dir) Planes() string { return d.Path("planes") }

// TransferRecords contains the records of transfers between data directories (package hosttransfer).
func (d Dir) TransferRecords() string { return d.Path("custody") }

// Images contains archives of container images for nodes that are created later, in one directory for each
// cluster.
func (d Dir) Images() string { return d.Path("images") }

// Bundles returns the directory with the bundles for hosts of the SSH provider.
func (d Dir) Bundles() string { return d.Path(bundles) }

// Snapshots contains etcd snapshots of workload clusters, in one directory for each namespace.
func (d Dir) Snapshots() string { return d.Path("snapshots") }

// Balancers contains one directory for each load balancer of a cluster with a control plane on machines.
func (d Dir) Balancers() string { return d.Path("balancers") }

// Kubernetes contains one directory for each additional Kubernetes version.
func (d Dir) Kubernetes() string { return d.Path(kubernetes) }

// Log is the log file of the process that holds the directory.
func (d Dir) Log() string { return d.Path("log", "slipway.log") }

// AuditLog is the audit log of the management cluster.
func (d Dir) AuditLog() string { return d.Path("log", "audit.log") }

// Lock is the lock file of the process that holds the directory.
func (d Dir) Lock() string { return d.Path("lock") }

// Simulated contains the objects of simulated workload clusters.
func (d Dir) Simulated() string { return d.Path("simulated") }

// EncryptedWith lists the keys that the etcd data needs (package secretencryption).
func (d Dir) EncryptedWith() string { return d.Path("encrypted-with.json") }

func (d Dir) versions() string { return d.Path("written-by.json") }
func (d Dir) version() string  { return d.Path("version") }
func (d Dir) instance() string { return d.Path("instance") }
func (d Dir) run() string      { return d.Path("run.json") }
func (d Dir) node() string     { return d.Path("node") }
func (d Dir) flags() string    { return d.Path("flags.json") }

// Absolute returns the directory for a path that may be relative. Commands call it for the directory that the user
// sets.
func Absolute(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	return Dir(abs), err
}

// Directories that may exist before the first start, because `slipway versions add` and `slipway bundle build` fill
// them.
const (
	kubernetes = "kubernetes"
	bundles    = "bundles"
)

// parent returns the parent directory. spaceOf (space.go) calls it.
func (d Dir) parent() Dir { return Dir(filepath.Dir(string(d))) }
