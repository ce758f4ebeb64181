package controlplane

import (
	"cmp"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/naming"
)

// defaultNaming is the default name template.
const defaultNaming = "{{ .kubeadmControlPlane.name }}-{{ .random }}"

// newNames returns unused names for a new Machine, one for each random part that is not taken.
func newNames(plane *controlplanev1.KubeadmControlPlane, cluster string, random, taken []string) ([]string, error) {
	values := naming.Values{"cluster": {"name": cluster}, "kubeadmControlPlane": {"name": plane.Name}}
	template, err := naming.Parse(cmp.Or(plane.Spec.MachineNaming.Template, defaultNaming), values)
	if err != nil {
		return nil, err
	}
	return template.FreshNames(values, random, taken, len(random))
}
