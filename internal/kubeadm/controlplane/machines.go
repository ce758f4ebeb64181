package controlplane

import (
	"cmp"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/naming"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// The field managers of Machines and their clones, which are the same as in the reference implementation.
const (
	manager         = "capi-kubeadmcontrolplane"
	metadataManager = "capi-kubeadmcontrolplane-metadata"
)

// machinesState returns the current and desired Machines of the control plane.
func (s snapshot) machinesState() machines.OwnerState {
	return machines.OwnerState{Now: s.Now, Definition: s.definition(), Members: s.Machines, Clones: s.Clones, Verified: s.Verified, Manager: manager}
}

// definition returns the desired state of Machines. All of them have the pre-terminate hook that blocks their
// deletion until the etcd member is removed. It is the last hook of a Machine.
func (s snapshot) definition() machines.Definition {
	template := s.ControlPlane.Spec.MachineTemplate
	return machines.Definition{
		Namespace: s.ControlPlane.Namespace, Cluster: s.Cluster.Name, Owner: ownerReference(s.ControlPlane),
		Labels: ownership.PassWatchLabel(s.ControlPlane, s.labels()), Annotations: inplace.WithoutMarks(template.ObjectMeta.Annotations),
		MachineAnnotations: map[string]string{controlplanev1.PreTerminateHookCleanupAnnotation: ""},
		KeptAnnotations:    []string{controlplanev1.RemediationForAnnotation},
		Templates:          clone.Templates{s.Infra},
		Spec: clusterv1.MachineSpec{
			ClusterName: s.Cluster.Name, Version: s.ControlPlane.Spec.Version, InfrastructureRef: template.Spec.InfrastructureRef,
			Bootstrap:      clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: configKind}},
			ReadinessGates: s.gates(), Taints: template.Spec.Taints,
			Deletion: clusterv1.MachineDeletionSpec{
				NodeDrainTimeoutSeconds:        template.Spec.Deletion.NodeDrainTimeoutSeconds,
				NodeVolumeDetachTimeoutSeconds: template.Spec.Deletion.NodeVolumeDetachTimeoutSeconds,
				NodeDeletionTimeoutSeconds:     cmp.Or(template.Spec.Deletion.NodeDeletionTimeoutSeconds, new(int32(defaultNodeDeletionTimeout))),
			},
		},
	}
}

// defaultNodeDeletionTimeout is the default of the Machine webhook, in seconds. The desired state must include the
// default, because otherwise it would always differ from the Machine.
const defaultNodeDeletionTimeout = 10

// labels returns the labels of the Machines and their clones.
func (s snapshot) labels() map[string]string {
	out := maps.Clone(s.ControlPlane.Spec.MachineTemplate.ObjectMeta.Labels)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, s.selector())
	return out
}

// selector returns the labels that select the Machines.
func (s snapshot) selector() map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel: s.Cluster.Name, clusterv1.MachineControlPlaneLabel: "",
		clusterv1.MachineControlPlaneNameLabel: contract.LabelValue(s.ControlPlane.Name),
	}
}

// gates returns the readiness gates of Machines: the components, and the gates of the template.
func (s snapshot) gates() []clusterv1.MachineReadinessGate {
	out := workload.ReadinessGates(s.managesEtcd())
	own := map[string]bool{}
	for _, gate := range out {
		own[gate.ConditionType] = true
	}
	for _, gate := range s.ControlPlane.Spec.MachineTemplate.Spec.ReadinessGates {
		if !own[gate.ConditionType] {
			out = append(out, gate)
		}
	}
	return out
}

// clones returns the query for the clones of the Machines. KubeadmConfigs are not cloned from a template, so they are
// selected by their kind.
func (s snapshot) clones() clone.Query {
	configs := clone.Template{Ref: clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: configKind}}
	var reserved []string
	reserved = append(reserved, s.Created...)
	for _, m := range s.Adoptable {
		reserved = append(reserved, m.Name)
	}
	return clone.Query{
		Namespace: s.ControlPlane.Namespace, Owner: s.ControlPlane.UID, Templates: clone.Templates{s.Infra, configs}, Machines: s.Machines.Machines(),
		Reserved: reserved, Labels: s.selector(),
	}
}

func ownerReference(plane *controlplanev1.KubeadmControlPlane) metav1.OwnerReference {
	return *metav1.NewControllerRef(plane, controlplanev1.GroupVersion.WithKind(controlPlaneKind))
}

// secretsOwner returns the owner of the cluster's Secrets. It replaces a KubeadmConfig that created Secrets before
// the control plane did.
func (s snapshot) secretsOwner() secrets.Owner {
	return secrets.Owner{Ref: ownerReference(s.ControlPlane), Replaces: []string{configKind}}
}

// secrets returns the input of decisions about certificates and the kubeconfig.
func (s snapshot) secrets() secretsInput {
	return secretsInput{
		Now: s.Now, Cluster: s.Cluster, Owner: s.secretsOwner(), Required: s.required(), Found: s.Secrets, State: s.Certificates, Kubeconfig: s.Kubeconfig,
	}
}

// required returns the Secrets that the control plane needs.
func (s snapshot) required() []secrets.Requirement {
	return secrets.SignedByKubeadm(s.ControlPlane.Spec.KubeadmConfigSpec)
}

// managesEtcd reports whether etcd runs on the Machines.
func (s snapshot) managesEtcd() bool {
	return !s.ControlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined()
}

// isInitialized reports whether the cluster has been initialized.
func (s snapshot) isInitialized() bool {
	before := s.ControlPlane.Status.Initialization.ControlPlaneInitialized
	return before != nil && *before || s.Workload.Initialized
}

// isHeld reports whether a deleted Machine only waits for the removal of its etcd member.
func (s snapshot) isHeld(m machines.OwnedMachine) bool {
	return s.hookInput(&reconciler.Plan{}).awaitsMemberRemoval(m)
}

// matchMembers maps the etcd members to the Machines.
func (s snapshot) matchMembers() workload.MemberMatching {
	in := workload.MatchInput{Now: s.Now, State: s.Workload}
	for _, m := range s.Machines {
		providerID := ""
		if s.Clones != nil {
			providerID = contract.InfraMachine(s.Clones.InfrastructureOf(m.Machine)).ProviderID.Or("")
		}
		in.Machines = append(in.Machines, workload.NewMachineIdentity(m.Machine, m.Deleted, providerID))
	}
	return workload.MatchMembers(in)
}

// newRolloutMachine returns a Machine with the objects it was created from.
func (s snapshot) rolloutMachine(m *clusterv1.Machine) rolloutMachine {
	out := rolloutMachine{Machine: m, Config: s.Configs[m.Spec.Bootstrap.ConfigRef.Name]}
	if s.ControlPlane.Spec.Rollout.Before.CertificatesExpiryDays > 0 {
		out.Authority = secrets.ExpiresAt(s.Secrets[secrets.CA])
	}
	if s.Clones == nil {
		return out
	}
	if infra, ok := s.Clones.Items[clone.Key{Kind: m.Spec.InfrastructureRef.Kind, Name: m.Spec.InfrastructureRef.Name}]; ok {
		out.Infra, _ = clone.ClonedFrom(infra)
	}
	return out
}

// reasons returns the reasons why a Machine has to be replaced.
func (s snapshot) reasons(m *clusterv1.Machine) []rolloutReason { return s.Reasons[m.Name] }

// candidates returns the Machines that are not being deleted.
func (s snapshot) candidates() []deletionCandidate {
	var out []deletionCandidate
	for _, m := range s.Machines {
		if !m.Deleted {
			out = append(out, deletionCandidate{
				Machine: m.Machine, Outdated: len(s.reasons(m.Machine)) > 0, Unhealthy: workload.UnhealthyReason(s.machineWithConditions(m), s.managesEtcd()) != "",
			})
		}
	}
	return out
}

// outdated returns the names of the Machines that have to be replaced and are not being deleted.
func (s snapshot) outdated() []string {
	var out []string
	for _, c := range s.candidates() {
		if c.Outdated {
			out = append(out, c.Name)
		}
	}
	return out
}

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
