package rollout

import (
	"cmp"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/naming"
)

// defaultNaming is the name template of control planes that have none.
const defaultNaming = "{{ .kubeadmControlPlane.name }}-{{ .random }}"

// NewNames returns names for a new Machine that no other has, one for each random part that is not taken.
func NewNames(plane *controlplanev1.KubeadmControlPlane, cluster string, random, taken []string) ([]string, error) {
	values := naming.Values{"cluster": {"name": cluster}, "kubeadmControlPlane": {"name": plane.Name}}
	template, err := naming.Parse(cmp.Or(plane.Spec.MachineNaming.Template, defaultNaming), values)
	if err != nil {
		return nil, err
	}
	return template.FreshNames(values, random, taken, len(random))
}
