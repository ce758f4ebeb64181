package rollout

import (
	"cmp"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/naming"
)

// defaultNaming is the name template of control planes that have none.
const defaultNaming = "{{ .kubeadmControlPlane.name }}-{{ .random }}"

// NewName returns a name for a new Machine that no other has; empty, where all random parts are taken.
func NewName(plane *controlplanev1.KubeadmControlPlane, cluster string, random, taken []string) (string, error) {
	values := naming.Values{"cluster": {"name": cluster}, "kubeadmControlPlane": {"name": plane.Name}}
	template, err := naming.Parse(cmp.Or(plane.Spec.MachineNaming.Template, defaultNaming), values)
	if err != nil {
		return "", err
	}
	names, err := template.FreshNames(values, random, taken, 1)
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}
