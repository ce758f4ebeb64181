package rollout

import (
	"fmt"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/version"
)

// NotAdoptable says why a control plane cannot adopt a Machine; empty: it can.
func NotAdoptable(plane *controlplanev1.KubeadmControlPlane, m *clusterv1.Machine) string {
	if ref := m.Spec.Bootstrap.ConfigRef; ref.Kind != "KubeadmConfig" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return "its bootstrap config is no KubeadmConfig"
	}
	have, err := version.Parse(m.Spec.Version)
	if err != nil {
		return fmt.Sprintf("its version %q is not a semantic version", m.Spec.Version)
	}
	want, err := version.Parse(plane.Spec.Version)
	if err != nil || have.Major != want.Major || have.Minor+1 < want.Minor || want.Minor+1 < have.Minor {
		return fmt.Sprintf("its version %s is more than one minor version away from %s", m.Spec.Version, plane.Spec.Version)
	}
	return ""
}

// KubeadmSkew says that kubeadm cannot join a Machine of a version that is too new for the others; empty: it can.
func KubeadmSkew(desired string, all []*clusterv1.Machine) string {
	want, err := version.Parse(desired)
	if err != nil {
		return ""
	}
	for _, m := range all {
		have, err := version.Parse(m.Spec.Version)
		if err == nil && (have.Major != want.Major || have.Minor+1 < want.Minor) {
			return fmt.Sprintf("Version %s is more than one minor version newer than %s of Machine %s: kubeadm does not join it", desired, m.Spec.Version, m.Name)
		}
	}
	return ""
}
