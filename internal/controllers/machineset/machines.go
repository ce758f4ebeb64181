package machineset

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/naming"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// The field managers of Machines, bootstrap configs and infrastructure machines. Cluster API's own controllers use the
// same ones, so that either implementation continues with the objects of the other. They must not change.
const (
	manager         = "capi-machineset"
	metadataManager = "capi-machineset-metadata"
)

// State returns the current and desired Machines of the MachineSet, from which package machines plans and runs the
// actions on them.
func (s snapshot) State() machines.OwnerState {
	return machines.OwnerState{
		Now: s.Now, Definition: s.definition(), Members: s.Machines, Clones: s.Clones, Verified: s.Verified,
		ByOrigin: s.Deployment == nil, Manager: manager,
	}
}

// definition returns the definition of new Machines.
func (s snapshot) definition() machines.Definition {
	labels := maps.Clone(s.Set.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = s.Set.Spec.ClusterName
	labels[clusterv1.MachineSetNameLabel] = contract.LabelValue(s.Set.Name)
	if deployment, ok := s.Set.Labels[clusterv1.MachineDeploymentNameLabel]; ok {
		labels[clusterv1.MachineDeploymentNameLabel] = deployment
	}
	return machines.Definition{
		Namespace: s.Set.Namespace, Cluster: s.Set.Spec.ClusterName, Owner: ownerReference(s.Set),
		Labels: ownership.PassWatchLabel(s.Set, labels), Annotations: inplace.WithoutMarks(s.Set.Spec.Template.Annotations),
		Spec: s.Set.Spec.Template.Spec, Templates: s.templates(),
	}
}

func (s snapshot) templates() clone.Templates { return clone.Templates{s.Bootstrap, s.Infra} }

// clones returns the query for the clones of the MachineSet's Machines: their bootstrap configs and infrastructure
// machines. It includes Machines that the MachineSet does not control and Machines that the cache does not show yet,
// because these have clones, too. readClones (observe.go) runs it.
func (s snapshot) clones() clone.Query {
	return clone.Query{
		Namespace: s.Set.Namespace, Owner: s.Set.UID, Templates: s.templates(), Machines: s.Machines.Machines(),
		Reserved: append(slices.Clone(s.Created), machines.List(s.Others).Names()...),
		Labels: map[string]string{
			clusterv1.ClusterNameLabel: s.Set.Spec.ClusterName, clusterv1.MachineSetNameLabel: contract.LabelValue(s.Set.Name),
		},
	}
}

func ownerReference(set *clusterv1.MachineSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind(setKind))
}

// defaultNaming is the default name template.
const defaultNaming = "{{ .machineSet.name }}-{{ .random }}"

// newNames returns n names for new Machines that neither the MachineSet nor another owner uses. It returns fewer if
// all random parts are used. observe calls it to read which names exist, and scaleUp to create Machines.
func newNames(s snapshot, n int) ([]string, error) {
	values := naming.Values{"cluster": {"name": s.Set.Spec.ClusterName}, "machineSet": {"name": s.Set.Name}}
	template, err := naming.Parse(cmp.Or(s.Set.Spec.MachineNaming.Template, defaultNaming), values)
	if err != nil {
		return nil, err
	}
	taken := slices.Concat(s.Created, s.UsedNames, machines.List(s.Others).Names(), machines.List(s.Machines.Machines()).Names())
	return template.FreshNames(values, s.Random, taken, n)
}
