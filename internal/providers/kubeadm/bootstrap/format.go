package bootstrap

import (
	"fmt"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/cloudinit"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/discovery"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/ignition"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/payload"
)

// Format renders a payload for the first-boot tool of an operating system.
type Format interface {
	// Name is the value of spec.format for this format.
	Name() bootstrapv1.Format
	// ConfigPath is the path of kubeadm's configuration; empty means the default of package [payload].
	ConfigPath() string
	// Render returns the data. It returns an Invalid fault if the format does not support an entry of the payload.
	Render(payload.Payload) ([]byte, error)
}

// formats returns the supported formats. The first one is the default.
func formats() []Format { return []Format{cloudinit.Format{}, ignition.Format{}} }

// formatOf returns the format in the spec.
func formatOf(s Snapshot) (Format, error) {
	spec, all := s.Config.Spec, formats()
	if spec.Format == "" {
		return all[0], nil
	}
	if spec.Format == bootstrapv1.Ignition && !s.Ignition {
		return nil, fault.New(fault.Invalid, payload.ReasonInvalid,
			"spec.format %q needs the feature gate KubeadmBootstrapFormatIgnition; enable it, or use %q", spec.Format, all[0].Name())
	}
	for _, f := range all {
		if f.Name() == spec.Format {
			return f, nil
		}
	}
	return nil, fault.New(fault.Invalid, payload.ReasonInvalid,
		"spec.format %q is not available in this version; use %q", spec.Format, all[0].Name())
}

// Data is rendered bootstrap data.
type Data struct {
	Value  []byte
	Format bootstrapv1.Format
}

// render returns the bootstrap data for the role of the machine. It needs Material and, to join without file
// discovery, a token.
func render(s Snapshot) (Data, error) {
	format, err := formatOf(s)
	if err != nil {
		return Data{}, err
	}
	if s.Owner.Version == "" {
		return Data{}, fault.New(fault.Invalid, payload.ReasonInvalid,
			"%s %s does not say which version of Kubernetes it runs; set its version", s.Owner.Kind, s.Owner.Name)
	}
	in := payload.Input{
		Spec: *s.Config.Spec.DeepCopy(), KubernetesVersion: s.Owner.Version, ControlPlaneVersion: s.Material.ControlPlaneVersion,
		Secrets: s.Material.Secrets, Denied: s.Material.Denied, Endpoint: s.endpoint(), CA: s.Material.CA, ConfigPath: format.ConfigPath(),
	}
	p, err := payloadOf(s, in)
	if err != nil {
		return Data{}, err
	}
	value, err := format.Render(p)
	return Data{Value: value, Format: format.Name()}, err
}

// payloadOf returns the payload for the role of the machine. It modifies the input's spec, which must be a copy.
func payloadOf(s Snapshot, in payload.Input) (payload.Payload, error) {
	if s.Owner.ControlPlane {
		var err error
		if in.Certificates, err = payload.CertificateFiles(in.Spec.ClusterConfiguration, s.Material.Authorities); err != nil {
			return payload.Payload{}, err
		}
	}
	if s.initializes() {
		return payload.Init(in, s.Cluster)
	}
	hashes, err := discovery.Hashes(s.Material.CA)
	if err != nil {
		return payload.Payload{}, fmt.Errorf("reading the CA of Cluster %s: %w", s.Cluster.Name, err)
	}
	join := &in.Spec.JoinConfiguration
	join.Discovery = discovery.Complete(join.Discovery, discovery.Facts{Endpoint: in.Endpoint, CACertHashes: hashes})
	switch {
	case s.Owner.ControlPlane:
		return payload.JoinControlPlane(in)
	case join.ControlPlane != nil:
		return payload.Payload{}, fault.New(fault.Invalid, payload.ReasonInvalid,
			"spec.joinConfiguration.controlPlane is set, but %s %s is a worker; remove it", s.Owner.Kind, s.Owner.Name)
	}
	return payload.Join(in)
}
