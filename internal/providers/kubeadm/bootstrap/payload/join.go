package payload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/providers/kubeadm/kubeadmapi"
)

// Input is what a payload is made from.
type Input struct {
	// Spec of the KubeadmConfig, its discovery complete where the machine joins.
	Spec bootstrapv1.KubeadmConfigSpec
	// KubernetesVersion of the machine, such as v1.36.3.
	KubernetesVersion string
	// ControlPlaneVersion for templates; empty where the Cluster has no control plane object with a version.
	ControlPlaneVersion string
	// Secrets that the spec refers to.
	Secrets Secrets
	// Denied are reasons why the spec may not refer to some of them, by name.
	Denied map[string]string
	// Endpoint of the API server as host:port, and its CA in PEM: for the kubeconfig of file discovery.
	Endpoint string
	CA       []byte
	// Certificates are the files of a control plane's certificates, see [CertificateFiles]; a worker has none.
	Certificates []File
	// ConfigPath is where kubeadm's configuration is written to; empty: [InitConfigPath] or [JoinConfigPath].
	ConfigPath string
}

// Join returns what a worker does to join the cluster. Sections of the spec that belong to kubeadm init or to a
// control plane are ignored. Errors are Invalid faults: the KubeadmConfig or what it refers to has to change.
func Join(in Input) (Payload, error) {
	join := in.Spec.JoinConfiguration
	join.ControlPlane = nil
	join.NodeRegistration = WithUninitializedTaint(join.NodeRegistration)
	return in.join(join)
}

// JoinControlPlane returns what a machine does to join the control plane. Errors are as those of [Join].
func JoinControlPlane(in Input) (Payload, error) {
	join := in.Spec.JoinConfiguration
	if join.ControlPlane == nil {
		join.ControlPlane = &bootstrapv1.JoinControlPlane{}
	}
	return in.join(join)
}

func (in Input) join(join bootstrapv1.JoinConfiguration) (Payload, error) {
	p, err := in.ofUser()
	if err != nil {
		return Payload{}, err
	}
	p.Files = append(p.Files, in.Certificates...)
	if file := join.Discovery.File; file.KubeConfig.IsDefined() {
		kubeconfig, err := discoveryKubeconfig(file.KubeConfig, in.Endpoint, in.CA)
		if err != nil {
			return Payload{}, err
		}
		p.Files = append(p.Files, ownFile(file.KubeConfigPath, kubeconfig))
	}
	config, err := kubeadmapi.MarshalJoin(join, in.KubernetesVersion)
	if err != nil {
		return Payload{}, err
	}
	return in.withKubeadm(p, "join", config), nil
}

// ofUser is what the user wants of any machine.
func (in Input) ofUser() (Payload, error) {
	files, err := in.files()
	if err != nil {
		return Payload{}, err
	}
	users, err := in.users()
	if err != nil {
		return Payload{}, err
	}
	return Payload{
		BootCommands:        in.Spec.BootCommands,
		Files:               files,
		DiskSetup:           in.Spec.DiskSetup,
		Mounts:              in.Spec.Mounts,
		NTP:                 in.Spec.NTP,
		Users:               users,
		PreKubeadmCommands:  in.Spec.PreKubeadmCommands,
		PostKubeadmCommands: in.Spec.PostKubeadmCommands,
		Ignition:            in.Spec.Ignition,
	}, nil
}

// withKubeadm adds the files and the command that kubeadm needs. They come after the user's, so that they win.
func (in Input) withKubeadm(p Payload, command string, config []byte) Payload {
	path := in.ConfigPath
	if path == "" {
		path = map[string]string{"init": InitConfigPath, "join": JoinConfigPath}[command]
	}
	p.Files = append(p.Files, ownFile(path, config), ownFile(MarkerPath, []byte(markerContent)))
	p.Kubeadm = kubeadmLine(command, path, in.Spec.Verbosity)
	return p
}

func ownFile(path string, content []byte) File {
	return File{Path: path, Owner: ownFileOwner, Permissions: ownFileMode, Content: content}
}

// kubeadmLine runs kubeadm and tells of its success.
func kubeadmLine(command, config string, verbosity *int32) string {
	line := fmt.Sprintf("kubeadm %s --config %s", command, config)
	if verbosity != nil {
		line += fmt.Sprintf(" --v %d", *verbosity)
	}
	return line + " && echo success > " + SentinelPath
}

// WithUninitializedTaint returns the options with the taint that keeps pods away from a new worker until its
// Machine has passed labels and taints on to it. It is added even to an empty list, and not
// twice; the argument is not changed.
func WithUninitializedTaint(in bootstrapv1.NodeRegistrationOptions) bootstrapv1.NodeRegistrationOptions {
	want := clusterv1.NodeUninitializedTaint
	taints := []corev1.Taint{}
	if in.Taints != nil {
		taints = append(taints, *in.Taints...)
	}
	for i := range taints {
		if taints[i].MatchTaint(&want) {
			return in
		}
	}
	taints = append(taints, want)
	in.Taints = &taints
	return in
}
