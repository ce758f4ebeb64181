package addons

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/condition"
)

// addon is the planned upgrade of kube-proxy or CoreDNS. Its changes become actions of the KubeadmControlPlane
// controller, and the rest appears in the condition AddonsUpToDate ([Condition]).
type addon struct {
	Name string
	// Changes are the changes to reach the desired image, in order.
	Changes []Change
	// Skipped is the reason why the addon is not managed, Problem is the problem that the user has to correct first.
	// Both may be empty.
	Skipped, Problem string
	// Image is the current image, or empty if the addon does not run.
	Image string
}

// PlanUpgrades returns the upgrades of kube-proxy and CoreDNS for a control plane whose Machines are all up to date.
// The KubeadmControlPlane controller calls it as the last step of a reconciliation, and [Condition] for the status.
//
//	                     kube-proxy                                  CoreDNS
//	skipped if           annotation skip-kube-proxy, no DaemonSet,   annotation skip-coredns, no clusterConfiguration,
//	                     no container of the name                    no ConfigMap or Deployment coredns
//	tag                  version of the control plane                clusterConfiguration.dns.imageTag, or unchanged
//	repository           clusterConfiguration.imageRepository,       clusterConfiguration.dns.imageRepository,
//	                     or unchanged                                clusterConfiguration.imageRepository, or unchanged
func PlanUpgrades(f KubeadmState, d desiredState) []addon {
	if f.Problem != "" {
		return nil
	}
	return []addon{planProxyUpgrade(f, d), planDNSUpgrade(f, d)}
}

// problems returns a message about each addon with a problem.
func problems(addons []addon) []string {
	var out []string
	for _, a := range addons {
		if a.Problem != "" {
			out = append(out, a.Name+" is not upgraded: "+a.Problem)
		}
	}
	return out
}

// Changes returns the changes of all addons, in order.
func Changes(addons []addon) []Change {
	var out []Change
	for _, a := range addons {
		out = append(out, a.Changes...)
	}
	return out
}

// states returns a message about each addon that is skipped or up to date.
func states(addons []addon) []string {
	var out []string
	for _, a := range addons {
		switch {
		case a.Skipped != "":
			out = append(out, a.Name+" is not upgraded: "+a.Skipped)
		case a.Problem == "" && len(a.Changes) == 0:
			out = append(out, fmt.Sprintf("%s has image %s", a.Name, clipped(a.Image)))
		}
	}
	return out
}

// planProxyUpgrade returns the change of the image of kube-proxy.
func planProxyUpgrade(f KubeadmState, d desiredState) addon {
	a := addon{Name: proxyName}
	switch {
	case d.SkipProxy:
		a.Skipped = "the KubeadmControlPlane has the annotation to skip it"
		return a
	case f.Proxy == nil:
		a.Skipped = "DaemonSet kube-proxy does not exist"
		return a
	}
	a.Image = imageOf(f.Proxy.Spec.Template.Spec, proxyName)
	if a.Image == "" {
		a.Skipped = "DaemonSet kube-proxy has no container kube-proxy"
		return a
	}
	have, err := parseImage(a.Image)
	want := have
	want.tag = tagOf(d.Version)
	if repository := strings.TrimSuffix(d.Cluster.ImageRepository, "/"); repository != "" {
		want.repository = repository
	}
	if err == nil {
		err = want.check()
	}
	if err != nil {
		a.Problem = err.Error()
		return a
	}
	if want != have {
		after := f.Proxy.DeepCopy()
		setImage(&after.Spec.Template.Spec, proxyName, want)
		a.Changes = []Change{change(f.Proxy, after, "image %s", want)}
	}
	return a
}

// imageOf returns the image of a container, or the empty string if the container does not exist.
func imageOf(pod corev1.PodSpec, container string) string {
	for _, c := range pod.Containers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

func setImage(pod *corev1.PodSpec, container string, to image) {
	for i := range pod.Containers {
		if pod.Containers[i].Name == container {
			pod.Containers[i].Image = to.String()
		}
	}
}

// volumeKey returns the key of ConfigMap coredns that a Deployment mounts as its Corefile, or nil if it is unknown. The
// plan of the CoreDNS upgrade calls it.
func volumeKey(d *appsv1.Deployment) *string {
	for i := range d.Spec.Template.Spec.Volumes {
		v := &d.Spec.Template.Spec.Volumes[i]
		if v.Name != dnsVolumeName || v.ConfigMap == nil || v.ConfigMap.Name != dnsName {
			continue
		}
		for n := range v.ConfigMap.Items {
			if item := &v.ConfigMap.Items[n]; item.Path == corefileKey && (item.Key == corefileKey || item.Key == backupKey) {
				return &item.Key
			}
		}
	}
	return nil
}

// ConditionType is the type of the condition about kube-proxy and CoreDNS. It is a condition of the
// KubeadmControlPlane.
const ConditionType = "AddonsUpToDate"

// Condition returns the condition about kube-proxy and CoreDNS. The rolling parameter is true while Machines have to be
// replaced. The KubeadmControlPlane controller calls it for the status.
func Condition(f KubeadmState, d desiredState, rolling bool) condition.Result {
	all := PlanUpgrades(f, d)
	changes, problems := Changes(all), problems(all)
	switch {
	case len(problems) > 0:
		return condition.False("UpgradeBlocked", strings.Join(problems, "; "))
	case len(changes) > 0 && rolling:
		return condition.False("WaitingForMachines", "Waiting for all Machines to be up to date before kube-proxy and CoreDNS are upgraded")
	case len(changes) > 0:
		return condition.False("Upgrading", "Upgrading kube-proxy and CoreDNS")
	}
	return condition.TrueBecause("UpToDate", strings.Join(states(all), "; "))
}
