package providerset

import (
	"slices"
	"strings"
)

// Name is the name of a provider, as in the label cluster.x-k8s.io/provider of its components.
type Name string

// Providers of this build.
const (
	Core                Name = "cluster-api"
	BootstrapKubeadm    Name = "bootstrap-kubeadm"
	ControlPlaneKubeadm Name = "control-plane-kubeadm"
	ControlPlaneHosted  Name = "control-plane-hosted"
	InfrastructureLocal Name = "infrastructure-local"
	InfrastructureSSH   Name = "infrastructure-ssh"
)

// Simulated is the simulated backend of control-plane-hosted and infrastructure-local. It is enabled and disabled like
// a provider, but has no controllers or kinds. Package policy defines its effect.
const Simulated Name = "simulated"

// Set describes a provider and its components. The manager starts its controllers and webhooks and installs its CRDs;
// config/rbac has its permissions, and package release writes its components. A test of package manager compares the
// lists with the code.
type Set struct {
	Name Name
	// Controllers maps the name of each controller to the number of objects that it reconciles concurrently by default.
	Controllers map[string]int
	// CRDs are the full names of the provider's CRDs.
	CRDs []string
	// Watched are the CRDs of other providers without which its controllers cannot start.
	Watched []string
	// ConnectsToWorkloads is true if its controllers connect to workload clusters.
	ConnectsToWorkloads bool
	// ReferenceWebhookName is the name of the ValidatingWebhookConfiguration that the reference implementation of this
	// provider installs. It is empty if there is none.
	ReferenceWebhookName string
	// Flags are the flags of `slipway manager` that only this provider reads, in addition to the concurrency flags of
	// its controllers.
	Flags []string
}

// Contains reports whether the set includes the CRD.
func (s Set) Contains(crd string) bool { return slices.Contains(s.CRDs, crd) }

// MutatingWebhookName returns the name of the provider's MutatingWebhookConfiguration.
func (s Set) MutatingWebhookName() string { return "slipway-defaulting-" + string(s.Name) }

// ValidatingWebhookName returns the name of the provider's ValidatingWebhookConfiguration. A manager finds the webhooks
// of another one by it, also of another version, so it must not change.
func (s Set) ValidatingWebhookName() string { return "slipway-validation-" + string(s.Name) }

// All returns the sets of this build, core first. A name of a controller is also the prefix of its flag
// --NAME-concurrency. The caller owns the result.
func All() []Set {
	return []Set{core(), bootstrapKubeadm(), controlPlaneKubeadm(), controlPlaneHosted(), infrastructureLocal(), infrastructureSSH()}
}

func core() Set {
	return Set{
		Name:                 Core,
		ReferenceWebhookName: "capi-validating-webhook-configuration",
		Controllers: map[string]int{
			"cluster": 50, "clusterclass": 10, "clustertopology": 50, "machine": 100, "machineset": 50, "machinedeployment": 50, "machinepool": 50, "machinehealthcheck": 50,
			"clusterresourceset": 10, "clustercredentials": 10, "extensionconfig": 10,
		},
		CRDs: []string{
			"clusterresourcesetbindings.addons.cluster.x-k8s.io",
			"clusterresourcesets.addons.cluster.x-k8s.io",
			"clusterclasses.cluster.x-k8s.io",
			"clusters.cluster.x-k8s.io",
			"machinedeployments.cluster.x-k8s.io",
			"machinedrainrules.cluster.x-k8s.io",
			"machinehealthchecks.cluster.x-k8s.io",
			"machinepools.cluster.x-k8s.io",
			"machines.cluster.x-k8s.io",
			"machinesets.cluster.x-k8s.io",
			"ipaddressclaims.ipam.cluster.x-k8s.io",
			"ipaddresses.ipam.cluster.x-k8s.io",
			"extensionconfigs.runtime.cluster.x-k8s.io",
		},
		ConnectsToWorkloads: true,
		Flags: []string{
			"additional-sync-machine-annotations", "additional-sync-machine-labels", "machineset-preflight-checks",
			"remote-conditions-grace-period", "remote-connection-grace-period",
			"runtime-extension-client-cert-file", "runtime-extension-client-key-file", "runtime-extension-read-only",
		},
	}
}

func bootstrapKubeadm() Set {
	return Set{
		Name:                 BootstrapKubeadm,
		ReferenceWebhookName: "capi-kubeadm-bootstrap-validating-webhook-configuration",
		Controllers:          map[string]int{"kubeadmconfig": 100},
		CRDs: []string{
			"kubeadmconfigs.bootstrap.cluster.x-k8s.io",
			"kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io",
		},
		Watched:             []string{"clusters.cluster.x-k8s.io", "machinepools.cluster.x-k8s.io", "machines.cluster.x-k8s.io"},
		ConnectsToWorkloads: true,
		Flags:               []string{"bootstrap-token-ttl"},
	}
}

func controlPlaneKubeadm() Set {
	return Set{
		Name:                 ControlPlaneKubeadm,
		ReferenceWebhookName: "capi-kubeadm-control-plane-validating-webhook-configuration",
		Controllers:          map[string]int{"kubeadmcontrolplane": 50},
		CRDs: []string{
			"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io",
			"kubeadmcontrolplanetemplates.controlplane.cluster.x-k8s.io",
		},
		Watched:             []string{"clusters.cluster.x-k8s.io", "kubeadmconfigs.bootstrap.cluster.x-k8s.io", "machinepools.cluster.x-k8s.io", "machines.cluster.x-k8s.io"},
		ConnectsToWorkloads: true,
		Flags:               []string{"etcd-call-timeout-duration", "etcd-dial-timeout-duration"},
	}
}

func controlPlaneHosted() Set {
	return Set{
		Name:        ControlPlaneHosted,
		Controllers: map[string]int{"hostedcontrolplane": 10, "etcdsnapshotpolicy": 5, "kubelet-serving": 5},
		CRDs: []string{
			"etcdsnapshotpolicies.controlplane.slipway.dev",
			"hostedcontrolplanes.controlplane.slipway.dev",
			"hostedcontrolplanetemplates.controlplane.slipway.dev",
		},
		Watched:             []string{"clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io"},
		ConnectsToWorkloads: true,
		Flags: []string{
			"temporary-data", "control-plane-pods", "control-plane-service-type", "control-plane-service-host", "control-plane-volume-size",
			"control-plane-storage-class",
		},
	}
}

func infrastructureLocal() Set {
	return Set{
		Name: InfrastructureLocal,
		Controllers: map[string]int{
			"local-cluster": 10, "local-machine": 20, "local-machinepool": 10, "local-machinetemplate": 10,
		},
		CRDs: []string{
			"localclusters.infrastructure.slipway.dev",
			"localclustertemplates.infrastructure.slipway.dev",
			"localmachinepools.infrastructure.slipway.dev",
			"localmachinepooltemplates.infrastructure.slipway.dev",
			"localmachines.infrastructure.slipway.dev",
			"localmachinetemplates.infrastructure.slipway.dev",
		},
		Watched: []string{"clusters.cluster.x-k8s.io", "machinepools.cluster.x-k8s.io", "machines.cluster.x-k8s.io"},
	}
}

func infrastructureSSH() Set {
	return Set{
		Name:        InfrastructureSSH,
		Controllers: map[string]int{"ssh-cluster": 10, "ssh-host": 20, "ssh-machine": 20, "ssh-machinetemplate": 10},
		CRDs: []string{
			"sshclusters.infrastructure.slipway.dev",
			"sshclustertemplates.infrastructure.slipway.dev",
			"sshhosts.infrastructure.slipway.dev",
			"sshmachines.infrastructure.slipway.dev",
			"sshmachinetemplates.infrastructure.slipway.dev",
		},
		Watched:             []string{"clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io"},
		ConnectsToWorkloads: true,
		Flags:               []string{"bundles"},
	}
}

// Names returns all names that can be enabled and disabled, sorted. Help texts and errors list them.
func Names() []Name {
	out := []Name{Simulated}
	for _, s := range All() {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return out
}

// Without returns all sets except the disabled ones. Package policy calls it with the disabled providers of the
// operator.
func Without(disabled ...Name) []Set {
	return slices.DeleteFunc(All(), func(s Set) bool { return slices.Contains(disabled, s.Name) })
}

// Others returns all names except the given ones: to run only the given providers, disable the others. `slipway manager
// --providers` calls it.
func Others(names ...Name) []Name {
	return slices.DeleteFunc(Names(), func(n Name) bool { return slices.Contains(names, n) })
}

// Unknown returns the given names that are not providers of this build, sorted and without duplicates. Package policy
// and the flags that name providers reject them.
func Unknown(names []Name) []Name {
	out := slices.DeleteFunc(slices.Clone(names), func(n Name) bool { return slices.Contains(Names(), n) })
	slices.Sort(out)
	return slices.Compact(out)
}

// Contains reports whether sets contains the set with this name.
func Contains(sets []Set, name Name) bool {
	return slices.ContainsFunc(sets, func(s Set) bool { return s.Name == name })
}

// OfCRD returns the name of the set that contains a CRD, or an empty name. Package manager/crds labels each CRD with
// it, by which clusterctl finds the CRDs of a provider.
func OfCRD(crd string) Name {
	for _, s := range All() {
		if s.Contains(crd) {
			return s.Name
		}
	}
	return ""
}

// CRDs returns the full names of the CRDs of all these sets, sorted.
func CRDs(sets []Set) []string {
	var out []string
	for _, s := range sets {
		out = append(out, s.CRDs...)
	}
	slices.Sort(out)
	return out
}

// Missing returns the CRDs that the sets watch but none of them contains, sorted. The manager waits for them before it
// adds its controllers.
func Missing(sets []Set) []string {
	var out []string
	for _, s := range sets {
		for _, crd := range s.Watched {
			if !Contains(sets, OfCRD(crd)) {
				out = append(out, crd)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// List formats names as a comma-separated list.
func List(names []Name) string {
	var out []string
	for _, n := range names {
		out = append(out, string(n))
	}
	return strings.Join(out, ", ")
}
