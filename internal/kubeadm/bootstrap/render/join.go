package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/api"
)

// Input is the input of a payload. The KubeadmConfig controller collects it and calls [Init], [Join] or
// [JoinControlPlane], depending on the role of the machine.
type Input struct {
	// Spec of the KubeadmConfig. Its discovery must be complete if the machine joins.
	Spec bootstrapv1.KubeadmConfigSpec
	// KubernetesVersion of the machine, such as v1.36.3.
	KubernetesVersion string
	// ControlPlaneVersion for templates, or empty if the Cluster has no control plane object with a version.
	ControlPlaneVersion string
	// Secrets referenced by the spec.
	Secrets Secrets
	// Denied maps names of Secrets to the reason why the spec must not reference them.
	Denied map[string]string
	// Endpoint of the API server as host:port, and its CA in PEM, for the kubeconfig of file discovery.
	Endpoint string
	CA       []byte
	// Certificates are the certificate files of a control plane machine, see [CertificateFiles]. They are empty for a
	// worker.
	Certificates []File
	// ConfigPath is the path of kubeadm's configuration. It defaults to [initConfigPath] or [joinConfigPath].
	ConfigPath string
}

// Join returns the payload of a worker. Sections of the spec for kubeadm init or for control planes are ignored.
// Errors are Invalid faults that require a change of the KubeadmConfig or of an object it references. The KubeadmConfig
// controller calls it for the owner of a worker's KubeadmConfig, a Machine or a MachinePool.
func Join(in Input) (Payload, error) {
	join := in.Spec.JoinConfiguration
	join.ControlPlane = nil
	join.NodeRegistration = withUninitializedTaint(join.NodeRegistration)
	return in.join(join)
}

// JoinControlPlane returns the payload of a machine that joins the control plane. Errors are Invalid faults as for
// [Join]. The KubeadmConfig controller calls it for each control plane Machine after the first one.
func JoinControlPlane(in Input) (Payload, error) {
	join := in.Spec.JoinConfiguration
	if join.ControlPlane == nil {
		join.ControlPlane = &bootstrapv1.JoinControlPlane{}
	}
	return in.join(join)
}

func (in Input) join(join bootstrapv1.JoinConfiguration) (Payload, error) {
	p, err := in.userPayload()
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
	config, err := api.MarshalJoin(join, in.KubernetesVersion)
	if err != nil {
		return Payload{}, err
	}
	return in.withKubeadm(p, "join", config), nil
}

// userPayload returns the user's part of the payload, which is the same for all roles.
func (in Input) userPayload() (Payload, error) {
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

// withKubeadm adds the files and the command for kubeadm. The files come after the user's files, so that they take
// precedence.
func (in Input) withKubeadm(p Payload, command string, config []byte) Payload {
	path := in.ConfigPath
	if path == "" {
		path = map[string]string{"init": initConfigPath, "join": joinConfigPath}[command]
	}
	p.Files = append(p.Files, ownFile(path, config), ownFile(markerPath, []byte(markerContent)))
	p.Kubeadm = kubeadmLine(command, path, in.Spec.Verbosity)
	return p
}

func ownFile(path string, content []byte) File {
	return File{Path: path, Owner: ownFileOwner, Permissions: ownFileMode, Content: content}
}

// kubeadmLine returns the shell line that runs kubeadm and writes the sentinel file on success.
func kubeadmLine(command, config string, verbosity *int32) string {
	line := fmt.Sprintf("kubeadm %s --config %s", command, config)
	if verbosity != nil {
		line += fmt.Sprintf(" --v %d", *verbosity)
	}
	return line + " && echo success > " + sentinelPath
}

// withUninitializedTaint returns the options with a taint that prevents pods from being scheduled to a new worker
// until the Machine controller has synced labels and taints to its Node. The taint is also added to an empty list,
// and only once. The argument is not modified.
func withUninitializedTaint(in bootstrapv1.NodeRegistrationOptions) bootstrapv1.NodeRegistrationOptions {
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
