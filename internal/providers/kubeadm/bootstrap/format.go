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

// Format writes a payload in the form that a machine's operating system reads at its first boot.
type Format interface {
	// Name is the value of spec.format that asks for it.
	Name() bootstrapv1.Format
	// ConfigPath is where kubeadm's configuration has to be; empty: where [payload] puts it.
	ConfigPath() string
	// Render returns the data. An Invalid fault says what of the payload the format cannot express.
	Render(payload.Payload) ([]byte, error)
}

// formats are the known formats; the first is the default.
func formats() []Format { return []Format{cloudinit.Format{}, ignition.Format{}} }

// formatOf returns the format that the spec asks for.
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

// render makes the data of a machine for its role. It needs Material, and to join a token unless discovery is by file.
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

// payloadOf is what the machine does in its role. The input's spec is a copy.
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
