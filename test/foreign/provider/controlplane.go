package provider

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controlPlane gives the Cluster its kubeconfig once the infrastructure is there, and creates the Machines of the control plane:
// spec.replicas of them, each with infrastructure of the kind in spec.machineKind. One without Machines is managed elsewhere.
func (p *Provider) controlPlane(ctx context.Context, o object) error {
	if !isTrue(o.cluster.Status.Initialization.InfrastructureProvisioned) {
		return nil
	}
	if err := p.secret(ctx, o, o.cluster.Name+"-kubeconfig", map[string][]byte{"value": p.kubeconfig}); err != nil {
		return err
	}
	if err := p.createMachines(ctx, o); err != nil {
		return err
	}
	if _, waits := o.GetAnnotations()[AfterNode]; waits {
		machines, err := p.machines(ctx, o)
		if err != nil || !slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return m.Status.NodeRef.Name != "" }) {
			return err
		}
	}
	return patch(ctx, p.client, o.Unstructured, func() {
		version, _, _ := unstructured.NestedString(o.Object, "spec", "version")
		Set(o.Unstructured, version, "status", "version")
		_, after := o.GetAnnotations()[AfterNode]
		Set(o.Unstructured, !after && replicas(o) == 0, "status", "externalManagedControlPlane")
		o.done("controlPlaneInitialized", "initialized")
		if o.kind.Old {
			Set(o.Unstructured, true, "status", "ready")
		} else {
			SetCondition(o.Unstructured, "Available", metav1.ConditionTrue, "")
		}
	})
}

func replicas(o object) int {
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	return int(n)
}

// machines are those of the control plane of the Cluster.
func (p *Provider) machines(ctx context.Context, o object) ([]clusterv1.Machine, error) {
	var list clusterv1.MachineList
	err := p.client.List(ctx, &list, client.InNamespace(o.GetNamespace()),
		client.MatchingLabels{clusterv1.ClusterNameLabel: o.cluster.Name, clusterv1.MachineControlPlaneLabel: ""})
	return list.Items, err
}

// createMachines spreads Machines over the failure domains of the Cluster that are for control planes.
func (p *Provider) createMachines(ctx context.Context, o object) error {
	var domains []string
	for _, d := range o.cluster.Status.FailureDomains {
		if isTrue(d.ControlPlane) {
			domains = append(domains, d.Name)
		}
	}
	machineKind, _, _ := unstructured.NestedString(o.Object, "spec", "machineKind")
	k := Kind{schema.GroupVersionKind{Group: infra, Version: o.kind.Version, Kind: machineKind}, InfraMachine, o.kind.Old}
	data := "data"
	for i := range replicas(o) {
		name := fmt.Sprintf("%s-%d", o.GetName(), i)
		meta := metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o.Unstructured, o.kind.GroupVersionKind)},
			Labels: map[string]string{clusterv1.ClusterNameLabel: o.cluster.Name, clusterv1.MachineControlPlaneLabel: ""},
		}
		machine := k.New(o.GetNamespace(), name)
		machine.SetLabels(meta.Labels)
		machine.SetOwnerReferences(meta.OwnerReferences)
		if without, ok := o.GetAnnotations()[NoNode]; ok {
			machine.SetAnnotations(map[string]string{NoNode: without})
		}
		if err := ignoreExists(p.client.Create(ctx, machine)); err != nil {
			return err
		}
		m := &clusterv1.Machine{ObjectMeta: meta}
		m.Spec = clusterv1.MachineSpec{
			ClusterName: o.cluster.Name, InfrastructureRef: k.Ref(name), Bootstrap: clusterv1.Bootstrap{DataSecretName: &data},
		}
		m.Spec.Version, _, _ = unstructured.NestedString(o.Object, "spec", "version")
		if len(domains) > 0 {
			m.Spec.FailureDomain = domains[i%len(domains)]
		}
		if err := ignoreExists(p.client.Create(ctx, m)); err != nil {
			return err
		}
	}
	return nil
}

// deleteMachines deletes the Machines that a control plane controls, and reports whether there are any.
func (p *Provider) deleteMachines(ctx context.Context, o object) (left bool, err error) {
	machines, err := p.machines(ctx, o)
	if err != nil {
		return true, err
	}
	for i := range machines {
		if !metav1.IsControlledBy(&machines[i], o.Unstructured) {
			continue
		}
		left = true
		if err := client.IgnoreNotFound(p.client.Delete(ctx, &machines[i])); err != nil {
			return true, err
		}
	}
	return left, nil
}
