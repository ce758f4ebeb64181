package machineset

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/clone"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/naming"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// defaultNaming is the name template of MachineSets that have none (MS-06).
const defaultNaming = "{{ .machineSet.name }}-{{ .random }}"

// names returns n names for new Machines that nothing of the set has yet.
func names(s Snapshot, n int) ([]string, error) {
	text := s.Set.Spec.MachineNaming.Template
	if text == "" {
		text = defaultNaming
	}
	values := naming.Values{"cluster": {"name": s.Set.Spec.ClusterName}, "machineSet": {"name": s.Set.Name}}
	template, err := naming.Parse(text, values)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, m := range s.Machines {
		taken[m.Name] = true
	}
	for _, m := range s.Others {
		taken[m.Name] = true
	}
	for _, name := range s.Created {
		taken[name] = true
	}
	var out []string
	for _, random := range s.Random {
		name, err := template.Name(values, random)
		if err != nil {
			return nil, err
		}
		if len(out) < n && !taken[name] {
			taken[name] = true
			out = append(out, name)
		}
	}
	return out, nil
}

// machineLabels are the labels of the set's Machines, and of what is made for them (MS-07).
func machineLabels(s Snapshot) map[string]string {
	out := maps.Clone(s.Set.Spec.Template.Labels)
	if out == nil {
		out = map[string]string{}
	}
	out[clusterv1.ClusterNameLabel] = s.Set.Spec.ClusterName
	out[clusterv1.MachineSetNameLabel] = contract.LabelValue(s.Set.Name)
	if deployment, ok := s.Set.Labels[clusterv1.MachineDeploymentNameLabel]; ok {
		out[clusterv1.MachineDeploymentNameLabel] = deployment
	}
	return ownership.PassWatchLabel(s.Set, out)
}

func machineAnnotations(s Snapshot) map[string]string {
	return maps.Clone(s.Set.Spec.Template.Annotations)
}

func ownedBy(s Snapshot) metav1.OwnerReference {
	return *metav1.NewControllerRef(s.Set, clusterv1.GroupVersion.WithKind(setKind))
}

// newMachine is the Machine of that name with all that it is created with, the Machine controller's finalizer
// included, which costs a write otherwise.
func newMachine(s Snapshot, name string) *clusterv1.Machine {
	template := s.Set.Spec.Template
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Set.Namespace, Name: name, Labels: machineLabels(s), Annotations: machineAnnotations(s),
			OwnerReferences: []metav1.OwnerReference{ownedBy(s)}, Finalizers: []string{clusterv1.MachineFinalizer},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	m.Spec.ClusterName = s.Set.Spec.ClusterName
	m.Spec.InfrastructureRef = clone.Ref(template.Spec.InfrastructureRef, name)
	if template.Spec.Bootstrap.ConfigRef.IsDefined() {
		m.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clone.Ref(template.Spec.Bootstrap.ConfigRef, name)}
	}
	return m
}

// kept is the Machine as the set wants it now: what a Machine is made with once stays as it is, the rest follows the
// template (MS-08).
func kept(s Snapshot, live *clusterv1.Machine) *clusterv1.Machine {
	return machines.InPlace(newMachine(s, live.Name), live)
}

// made is a new Machine with what is made for it, in the order in which they are created.
type made struct{ objects []*unstructured.Unstructured }

// build makes the objects of a new Machine (MS-04, MS-05).
func build(s Snapshot, name string) (made, error) {
	var out made
	for _, t := range []Template{s.Bootstrap, s.Infra} {
		if !t.Ref.IsDefined() {
			continue
		}
		o, err := clone.New(clone.Request{
			Template: t.Object, Name: name, Cluster: s.Set.Spec.ClusterName, Owner: ownedBy(s),
			Labels: machineLabels(s), Annotations: machineAnnotations(s),
		})
		if err != nil {
			return out, fmt.Errorf("cloning %s %s: %w", t.Ref.Kind, t.Ref.Name, err)
		}
		out.objects = append(out.objects, o)
	}
	machine, err := machines.Applied(newMachine(s, name))
	if err != nil {
		return out, err
	}
	out.objects = append(out.objects, machine)
	return out, nil
}
