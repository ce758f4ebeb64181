package controlplane

import (
	"cmp"
	"maps"
	"slices"

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
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// The field managers of Machines and their clones. They must not change: they are the same as in the reference
// implementation, so that both own the same fields of existing objects.
const (
	manager         = "capi-kubeadmcontrolplane"
	metadataManager = "capi-kubeadmcontrolplane-metadata"
)

// machinesState returns the current and desired Machines of the control plane, for package machines, which all owners
// of Machines share. Its actions propagate changes that need no replacement.
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

// labels returns the labels of Machines and their clones: the labels of the template and the selector.
func (s snapshot) labels() map[string]string {
	out := maps.Clone(s.ControlPlane.Spec.MachineTemplate.ObjectMeta.Labels)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, s.selector())
	return out
}

// selector returns the labels by which the objects of the control plane are found. They are part of the API of Cluster
// API.
func (s snapshot) selector() map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel: s.Cluster.Name, clusterv1.MachineControlPlaneLabel: "",
		clusterv1.MachineControlPlaneNameLabel: contract.LabelValue(s.ControlPlane.Name),
	}
}

// gates returns the readiness gates of Machines: the components, and the gates of the template.
func (s snapshot) gates() []clusterv1.MachineReadinessGate {
	out := workload.ReadinessGates(s.managesEtcd())
	for _, gate := range s.ControlPlane.Spec.MachineTemplate.Spec.ReadinessGates {
		if !slices.Contains(workload.ConditionTypes(s.managesEtcd()), gate.ConditionType) {
			out = append(out, gate)
		}
	}
	return out
}

// clones returns the query for the clones of the Machines. KubeadmConfigs are not cloned from a template, so they are
// selected by their kind. observe lists the clones with it, and [Add] watches their kinds.
func (s snapshot) clones() clone.Query {
	configs := clone.Template{Ref: clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: configKind}}
	reserved := slices.Clone(s.Created)
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
// the control plane did. [decide] compares the Secrets with it, and act creates and adopts them for it.
func (s snapshot) secretsOwner() secrets.Owner {
	return secrets.Owner{Ref: ownerReference(s.ControlPlane), Replaces: []string{configKind}}
}

// required returns the Secrets that the control plane needs. observe reads these Secrets, and [decide] creates the
// missing ones.
func (s snapshot) required() []secrets.Requirement {
	return secrets.SignedByKubeadm(s.ControlPlane.Spec.KubeadmConfigSpec)
}

func (s snapshot) managesEtcd() bool {
	return !s.ControlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined()
}

// isInitialized reports whether kubeadm init has completed, which is never reverted.
func (s snapshot) isInitialized() bool {
	before := s.ControlPlane.Status.Initialization.ControlPlaneInitialized
	return before != nil && *before || s.Workload.Initialized
}

// defaultNaming is the default of spec.machineNaming.template, as in Cluster API.
const defaultNaming = "{{ .kubeadmControlPlane.name }}-{{ .random }}"

// newNames returns unused names for a new Machine, one for each random part that is not taken. observe calls it to
// check which names exist, and [create] to choose one of the others.
func newNames(plane *controlplanev1.KubeadmControlPlane, cluster string, random, taken []string) ([]string, error) {
	values := naming.Values{"cluster": {"name": cluster}, "kubeadmControlPlane": {"name": plane.Name}}
	template, err := naming.Parse(cmp.Or(plane.Spec.MachineNaming.Template, defaultNaming), values)
	if err != nil {
		return nil, err
	}
	return template.FreshNames(values, random, taken, len(random))
}
