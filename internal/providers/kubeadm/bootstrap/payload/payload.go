package payload

import (
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Paths on the machine.
const (
	// SentinelPath is the file whose presence means that kubeadm succeeded.
	SentinelPath = "/run/cluster-api/bootstrap-success.complete"
	// InitConfigPath and JoinConfigPath are the configuration files of kubeadm init and kubeadm join.
	InitConfigPath = "/run/kubeadm/kubeadm.yaml"
	JoinConfigPath = "/run/kubeadm/kubeadm-join-config.yaml"

	// MarkerPath exists so that the directory of the sentinel does: writing a file makes the directories
	// above it on every operating system, which a shell command does not.
	MarkerPath    = "/run/cluster-api/placeholder"
	markerContent = "Makes the directory in which the sentinel file appears when the machine has become a node.\n"

	ownFileOwner = "root:root"
	ownFileMode  = "0640"
)

// ReasonInvalid is the reason of faults about the content of a KubeadmConfig.
const ReasonInvalid = "InvalidBootstrapConfig"

// Payload is everything a machine does on its way to being a node. Slices are in order.
type Payload struct {
	// BootCommands run early on every boot.
	BootCommands []string
	Files        []File
	DiskSetup    bootstrapv1.DiskSetup
	Mounts       []bootstrapv1.MountPoints
	NTP          bootstrapv1.NTP
	// Users have their passwords filled in, and no PasswdFrom.
	Users []bootstrapv1.User
	// PreKubeadmCommands, then Kubeadm, then PostKubeadmCommands run once, at the end of the first boot.
	PreKubeadmCommands []string
	// Kubeadm is the shell line that runs kubeadm and, if that succeeds, writes the sentinel.
	Kubeadm             string
	PostKubeadmCommands []string
	// Ignition is what is for that format alone.
	Ignition bootstrapv1.IgnitionSpec
}

// File is a file to write, content resolved.
type File struct {
	// Path is absolute.
	Path string
	// Owner as user:group, Permissions as octal digits; empty leaves the choice to the format.
	Owner, Permissions string
	// Encoding that Content has already; empty: none.
	Encoding bootstrapv1.Encoding
	// Append adds to what is there.
	Append  bool
	Content []byte
}

// Secrets holds the contents of Secrets in the namespace of the KubeadmConfig, by name. A Secret that does
// not exist is not in it.
type Secrets map[string]map[string][]byte

// value returns one key, or an Invalid fault that says what is missing.
func (s Secrets) value(what, name, key string) ([]byte, error) {
	data, found := s[name]
	if !found {
		return nil, invalid("%s comes from Secret %s, which does not exist; create it", what, name)
	}
	value, found := data[key]
	if !found {
		return nil, invalid("%s comes from key %q of Secret %s, which has no such key; add it", what, key, name)
	}
	return value, nil
}

// SecretsOf returns the names of the Secrets that the spec refers to, each once, in order of appearance.
func SecretsOf(spec bootstrapv1.KubeadmConfigSpec) []string {
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, f := range spec.Files {
		add(f.ContentFrom.Secret.Name)
	}
	for _, u := range spec.Users {
		add(u.PasswdFrom.Secret.Name)
	}
	return names
}

func invalid(message string, args ...any) *fault.Fault {
	return fault.New(fault.Invalid, ReasonInvalid, message, args...)
}
