package bootstrap

import (
	"fmt"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/cloudinit"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/discovery"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/payload"
)

// Format writes a payload in the form that a machine's operating system reads at its first boot.
type Format interface {
	// Name is the value of spec.format that asks for it.
	Name() bootstrapv1.Format
	// Render returns the data. An Invalid fault says what of the payload the format cannot express.
	Render(payload.Payload) ([]byte, error)
}

// formats are the known formats; the first is the default.
func formats() []Format { return []Format{cloudinit.Format{}} }

// formatOf returns the format that the spec asks for.
func formatOf(spec bootstrapv1.KubeadmConfigSpec) (Format, error) {
	all := formats()
	if spec.Format == "" {
		return all[0], nil
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

// render makes the data of a joining worker. It needs Material, and a token unless discovery is by file.
func render(s Snapshot) (Data, error) {
	format, err := formatOf(s.Config.Spec)
	if err != nil {
		return Data{}, err
	}
	if s.Config.Spec.JoinConfiguration.ControlPlane != nil {
		return Data{}, fault.New(fault.Invalid, payload.ReasonInvalid,
			"spec.joinConfiguration.controlPlane is set, but %s %s is a worker; remove it", s.Owner.Kind, s.Owner.Name)
	}
	if s.Owner.Version == "" {
		return Data{}, fault.New(fault.Invalid, payload.ReasonInvalid,
			"%s %s does not say which version of Kubernetes it runs; set its version", s.Owner.Kind, s.Owner.Name)
	}
	hashes, err := discovery.Hashes(s.Material.CA)
	if err != nil {
		return Data{}, fmt.Errorf("reading the CA of Cluster %s: %w", s.Cluster.Name, err)
	}
	spec := *s.Config.Spec.DeepCopy()
	endpoint := s.Cluster.Spec.ControlPlaneEndpoint.String()
	spec.JoinConfiguration.Discovery = discovery.Complete(spec.JoinConfiguration.Discovery,
		discovery.Facts{Endpoint: endpoint, CACertHashes: hashes})
	p, err := payload.Join(payload.Input{
		Spec: spec, KubernetesVersion: s.Owner.Version, ControlPlaneVersion: s.Material.ControlPlaneVersion,
		Secrets: s.Material.Secrets, Endpoint: endpoint, CA: s.Material.CA,
	})
	if err != nil {
		return Data{}, err
	}
	value, err := format.Render(p)
	return Data{Value: value, Format: format.Name()}, err
}
