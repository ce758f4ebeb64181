package render

import (
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Paths on the machine. The sentinel file is part of the bootstrap contract of Cluster API: infrastructure providers
// check it. The other paths are the same as in the reference implementation, because commands of users refer to them.
const (
	// sentinelPath is the file that indicates that kubeadm succeeded.
	sentinelPath = "/run/cluster-api/bootstrap-success.complete"
	// initConfigPath and joinConfigPath are the configuration files of kubeadm init and kubeadm join.
	initConfigPath = "/run/kubeadm/kubeadm.yaml"
	joinConfigPath = "/run/kubeadm/kubeadm-join-config.yaml"

	// markerPath is a file that creates the directory of the sentinel file. Writing a file creates its parent
	// directories on every operating system, in contrast to a shell redirection.
	markerPath    = "/run/cluster-api/placeholder"
	markerContent = "Makes the directory in which the sentinel file appears when the machine has become a node.\n"

	ownFileOwner = "root:root"
	ownFileMode  = "0640"
)

// ReasonInvalid is the reason of faults about the content of a KubeadmConfig.
const ReasonInvalid = "InvalidBootstrapConfig"

// Payload lists everything that turns a machine into a node, before it is rendered in a format. [Init], [Join] and
// [JoinControlPlane] return it, and [CloudConfigFormat] and [IgnitionFormat] render it; a new field needs code in both
// formats. The slices are ordered.
type Payload struct {
	// BootCommands run early on every boot.
	BootCommands []string
	Files        []File
	DiskSetup    bootstrapv1.DiskSetup
	Mounts       []bootstrapv1.MountPoints
	NTP          bootstrapv1.NTP
	// Users have resolved passwords and no PasswdFrom.
	Users []bootstrapv1.User
	// PreKubeadmCommands, Kubeadm and PostKubeadmCommands run once in this order, at the end of the first boot.
	PreKubeadmCommands []string
	// Kubeadm is the shell line that runs kubeadm and writes the sentinel file on success.
	Kubeadm             string
	PostKubeadmCommands []string
	// Ignition contains the settings that only apply to the format ignition.
	Ignition bootstrapv1.IgnitionSpec
}

// File is a file to write, with resolved content. [Init], [Join] and [JoinControlPlane] create them, and the formats
// write them.
type File struct {
	// Path is absolute.
	Path string
	// Owner is user:group and Permissions are octal digits. The format chooses the defaults.
	Owner, Permissions string
	// Encoding is the present encoding of Content, or empty.
	Encoding bootstrapv1.Encoding
	// Append adds to an existing file.
	Append  bool
	Content []byte
}

// Secrets contains the data of Secrets in the namespace of the KubeadmConfig, by name. Missing Secrets have no entry.
// The KubeadmConfig controller reads them before it renders a payload, and passes them in [Input].
type Secrets map[string]map[string][]byte

// value returns one key of a Secret, or an Invalid fault if it is missing.
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

// SecretsOf returns the names of the Secrets that the spec references, without duplicates, in order of appearance. The
// KubeadmConfig controller calls it to read these Secrets for [Input].
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
