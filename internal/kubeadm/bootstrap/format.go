package bootstrap

import (
	"fmt"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	bootstraprender "github.com/slipwayhq/slipway/internal/kubeadm/bootstrap/render"
)

// format renders a payload for the first-boot tool of an operating system. The implementations are in package render. A
// new format also needs a value of spec.format in the API of Cluster API.
type format interface {
	// Name is the value of spec.format for this format.
	Name() bootstrapv1.Format
	// ConfigPath is the path of kubeadm's configuration. It is empty if the payload chooses the path.
	ConfigPath() string
	// Render returns the data. It returns an Invalid fault if the format does not support an entry of the payload.
	Render(bootstraprender.Payload) ([]byte, error)
}

// formats returns the supported formats. The first one is the default.
func formats() []format {
	return []format{bootstraprender.CloudConfigFormat{}, bootstraprender.IgnitionFormat{}}
}

// formatOf returns the format that spec.format selects, or an Invalid fault.
func formatOf(s snapshot) (format, error) {
	spec, all := s.Config.Spec, formats()
	if spec.Format == "" {
		return all[0], nil
	}
	if spec.Format == bootstrapv1.Ignition && !s.Ignition {
		return nil, fault.New(fault.Invalid, bootstraprender.ReasonInvalid,
			"spec.format %q requires the feature gate KubeadmBootstrapFormatIgnition; enable it, or use %q", spec.Format, all[0].Name())
	}
	for _, f := range all {
		if f.Name() == spec.Format {
			return f, nil
		}
	}
	return nil, fault.New(fault.Invalid, bootstraprender.ReasonInvalid,
		"spec.format %q is not available in this version; use %q", spec.Format, all[0].Name())
}

// bootstrapData is the content of the data Secret.
type bootstrapData struct {
	Value  []byte
	Format bootstrapv1.Format
}

// render returns the bootstrap data for the role of the machine. It needs RenderInput and, to join without file
// discovery, a token. [decide] calls it to find errors before a token is chosen, and act to write the data.
func render(s snapshot) (bootstrapData, error) {
	format, err := formatOf(s)
	if err != nil {
		return bootstrapData{}, err
	}
	if s.Owner.Version == "" {
		return bootstrapData{}, fault.New(fault.Invalid, bootstraprender.ReasonInvalid,
			"%s %s has no Kubernetes version; set it", s.Owner.Kind, s.Owner.Name)
	}
	in := bootstraprender.Input{
		Spec: *s.Config.Spec.DeepCopy(), KubernetesVersion: s.Owner.Version, ControlPlaneVersion: s.RenderInput.ControlPlaneVersion,
		Secrets: s.RenderInput.Secrets, Denied: s.RenderInput.Denied, Endpoint: s.endpoint(), CA: s.RenderInput.CA, ConfigPath: format.ConfigPath(),
	}
	p, err := payloadOf(s, in)
	if err != nil {
		return bootstrapData{}, err
	}
	value, err := format.Render(p)
	return bootstrapData{Value: value, Format: format.Name()}, err
}

// payloadOf returns the payload for the role of the machine. It modifies the input's spec, which must be a copy.
func payloadOf(s snapshot, in bootstraprender.Input) (bootstraprender.Payload, error) {
	if s.Owner.ControlPlane {
		var err error
		if in.Certificates, err = bootstraprender.CertificateFiles(in.Spec.ClusterConfiguration, s.RenderInput.Authorities); err != nil {
			return bootstraprender.Payload{}, err
		}
	}
	if s.initializes() {
		return bootstraprender.Init(in, s.Cluster)
	}
	hashes, err := caCertHashes(s.RenderInput.CA)
	if err != nil {
		return bootstraprender.Payload{}, fmt.Errorf("reading the CA of Cluster %s: %w", s.Cluster.Name, err)
	}
	join := &in.Spec.JoinConfiguration
	join.Discovery = completeDiscovery(join.Discovery, discoveryValues{Endpoint: in.Endpoint, CACertHashes: hashes})
	switch {
	case s.Owner.ControlPlane:
		return bootstraprender.JoinControlPlane(in)
	case join.ControlPlane != nil:
		return bootstraprender.Payload{}, fault.New(fault.Invalid, bootstraprender.ReasonInvalid,
			"spec.joinConfiguration.controlPlane is set, but %s %s is a worker; remove it", s.Owner.Kind, s.Owner.Name)
	}
	return bootstraprender.Join(in)
}
