package conversion

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// referencesUp converts the references in a spoke, which include a version, to references in the hub, which do not.
// [Converter] calls it in each conversion of a spoke, because the API module leaves references to its caller.
func referencesUp(spoke, hub runtime.Object) error {
	switch in := spoke.(type) {
	case *clusterv1beta1.Cluster:
		out := hub.(*clusterv1.Cluster)
		return cmp.Or(
			referenceUp(in.Spec.InfrastructureRef, &out.Spec.InfrastructureRef),
			referenceUp(in.Spec.ControlPlaneRef, &out.Spec.ControlPlaneRef))
	case *clusterv1beta1.Machine:
		return machineUp(&in.Spec, &hub.(*clusterv1.Machine).Spec)
	case *clusterv1beta1.MachineSet:
		return machineUp(&in.Spec.Template.Spec, &hub.(*clusterv1.MachineSet).Spec.Template.Spec)
	case *clusterv1beta1.MachineDeployment:
		return machineUp(&in.Spec.Template.Spec, &hub.(*clusterv1.MachineDeployment).Spec.Template.Spec)
	case *clusterv1beta1.MachinePool:
		return machineUp(&in.Spec.Template.Spec, &hub.(*clusterv1.MachinePool).Spec.Template.Spec)
	case *controlplanev1beta1.KubeadmControlPlane:
		out := hub.(*controlplanev1.KubeadmControlPlane)
		return referenceUp(&in.Spec.MachineTemplate.InfrastructureRef, &out.Spec.MachineTemplate.Spec.InfrastructureRef)
	}
	return nil
}

func machineUp(in *clusterv1beta1.MachineSpec, out *clusterv1.MachineSpec) error {
	return cmp.Or(
		referenceUp(&in.InfrastructureRef, &out.InfrastructureRef),
		referenceUp(in.Bootstrap.ConfigRef, &out.Bootstrap.ConfigRef))
}

func referenceUp(in *corev1.ObjectReference, out *clusterv1.ContractVersionedObjectReference) error {
	if in == nil {
		return nil
	}
	version, err := schema.ParseGroupVersion(in.APIVersion)
	if err != nil {
		return fmt.Errorf("reading the reference to %s %s: %w", in.Kind, in.Name, err)
	}
	*out = clusterv1.ContractVersionedObjectReference{APIGroup: version.Group, Kind: in.Kind, Name: in.Name}
	return nil
}

// referencesDown converts the references in the hub to references in a spoke, with the version that serves the newest
// contract and the object's namespace, because references cannot cross namespaces. It is called in each conversion of a
// hub.
func (c *Converter) referencesDown(hub, spoke runtime.Object) {
	switch in := hub.(type) {
	case *clusterv1.Cluster:
		out := spoke.(*clusterv1beta1.Cluster)
		out.Spec.InfrastructureRef = c.referenceDown(in.Spec.InfrastructureRef, in.Namespace)
		out.Spec.ControlPlaneRef = c.referenceDown(in.Spec.ControlPlaneRef, in.Namespace)
	case *clusterv1.Machine:
		c.machineDown(&in.Spec, &spoke.(*clusterv1beta1.Machine).Spec, in.Namespace)
	case *clusterv1.MachineSet:
		out := spoke.(*clusterv1beta1.MachineSet)
		c.machineDown(&in.Spec.Template.Spec, &out.Spec.Template.Spec, in.Namespace)
	case *clusterv1.MachineDeployment:
		out := spoke.(*clusterv1beta1.MachineDeployment)
		c.machineDown(&in.Spec.Template.Spec, &out.Spec.Template.Spec, in.Namespace)
	case *clusterv1.MachinePool:
		out := spoke.(*clusterv1beta1.MachinePool)
		c.machineDown(&in.Spec.Template.Spec, &out.Spec.Template.Spec, in.Namespace)
	case *controlplanev1.KubeadmControlPlane:
		out := spoke.(*controlplanev1beta1.KubeadmControlPlane)
		if ref := c.referenceDown(in.Spec.MachineTemplate.Spec.InfrastructureRef, in.Namespace); ref != nil {
			out.Spec.MachineTemplate.InfrastructureRef = *ref
		}
	case *clusterv1.MachineHealthCheck:
		inNamespace(spoke.(*clusterv1beta1.MachineHealthCheck).Spec.RemediationTemplate, in.Namespace)
	}
	for _, check := range healthChecks(spoke) {
		inNamespace(check.RemediationTemplate, spoke.(metav1.Object).GetNamespace())
	}
}

// healthChecks returns the health checks in a Cluster or ClusterClass.
func healthChecks(spoke runtime.Object) []*clusterv1beta1.MachineHealthCheckClass {
	var checks []*clusterv1beta1.MachineHealthCheckClass
	add := func(class *clusterv1beta1.MachineHealthCheckClass) {
		if class != nil {
			checks = append(checks, class)
		}
	}
	addTopology := func(topology *clusterv1beta1.MachineHealthCheckTopology) {
		if topology != nil {
			add(&topology.MachineHealthCheckClass)
		}
	}
	switch object := spoke.(type) {
	case *clusterv1beta1.Cluster:
		if object.Spec.Topology == nil {
			break
		}
		addTopology(object.Spec.Topology.ControlPlane.MachineHealthCheck)
		if workers := object.Spec.Topology.Workers; workers != nil {
			for i := range workers.MachineDeployments {
				addTopology(workers.MachineDeployments[i].MachineHealthCheck)
			}
		}
	case *clusterv1beta1.ClusterClass:
		add(object.Spec.ControlPlane.MachineHealthCheck)
		for i := range object.Spec.Workers.MachineDeployments {
			add(object.Spec.Workers.MachineDeployments[i].MachineHealthCheck)
		}
	}
	return checks
}

// inNamespace sets the namespace of a reference that the API module has converted.
func inNamespace(ref *corev1.ObjectReference, namespace string) {
	if ref != nil {
		ref.Namespace = namespace
	}
}

func (c *Converter) machineDown(in *clusterv1.MachineSpec, out *clusterv1beta1.MachineSpec, namespace string) {
	if ref := c.referenceDown(in.InfrastructureRef, namespace); ref != nil {
		out.InfrastructureRef = *ref
	}
	out.Bootstrap.ConfigRef = c.referenceDown(in.Bootstrap.ConfigRef, namespace)
}

func (c *Converter) referenceDown(in clusterv1.ContractVersionedObjectReference, namespace string) *corev1.ObjectReference {
	if !in.IsDefined() {
		return nil
	}
	version := ""
	if c.versionOf != nil {
		version = c.versionOf(in.GroupKind())
	}
	return &corev1.ObjectReference{
		APIVersion: schema.GroupVersion{Group: in.APIGroup, Version: cmp.Or(version, unknownVersion)}.String(),
		Kind:       in.Kind,
		Name:       in.Name,
		Namespace:  namespace,
	}
}
