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
	// Spec of the KubeadmConfig, its discovery complete.
	Spec bootstrapv1.KubeadmConfigSpec
	// KubernetesVersion of the machine, such as v1.36.3.
	KubernetesVersion string
	// ControlPlaneVersion for templates; empty where the Cluster has no control plane object with a version.
	ControlPlaneVersion string
	// Secrets that the spec refers to.
	Secrets Secrets
	// Endpoint of the API server as host:port, and its CA in PEM: for the kubeconfig of file discovery.
	Endpoint string
	CA       []byte
}

// Join returns what a worker does to join the cluster. Sections of the spec that belong to kubeadm init are
// ignored. Errors are Invalid faults: the KubeadmConfig or what it refers to has to change.
func Join(in Input) (Payload, error) {
	files, err := in.files()
	if err != nil {
		return Payload{}, err
	}
	users, err := in.users()
	if err != nil {
		return Payload{}, err
	}
	own, err := in.joinFiles()
	if err != nil {
		return Payload{}, err
	}
	return Payload{
		BootCommands:        in.Spec.BootCommands,
		Files:               append(files, own...),
		DiskSetup:           in.Spec.DiskSetup,
		Mounts:              in.Spec.Mounts,
		NTP:                 in.Spec.NTP,
		Users:               users,
		PreKubeadmCommands:  in.Spec.PreKubeadmCommands,
		Kubeadm:             kubeadmLine("join", JoinConfigPath, in.Spec.Verbosity),
		PostKubeadmCommands: in.Spec.PostKubeadmCommands,
	}, nil
}

// joinFiles are the files that joining itself needs. They come after the user's, so that they win.
func (in Input) joinFiles() ([]File, error) {
	var out []File
	file := in.Spec.JoinConfiguration.Discovery.File
	if file.KubeConfig.IsDefined() {
		kubeconfig, err := discoveryKubeconfig(file.KubeConfig, in.Endpoint, in.CA)
		if err != nil {
			return nil, err
		}
		out = append(out, ownFile(file.KubeConfigPath, kubeconfig))
	}
	join := in.Spec.JoinConfiguration
	join.NodeRegistration = WithUninitializedTaint(join.NodeRegistration)
	config, err := kubeadmapi.MarshalJoin(join, in.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	return append(out, ownFile(JoinConfigPath, config), ownFile(markerPath, []byte(markerContent))), nil
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
