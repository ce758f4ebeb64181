package template

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults.
const (
	// reasonClassNotFound is the reason when the ClusterClass does not exist; Gone.
	reasonClassNotFound = "ClusterClassNotFound"
	// reasonNoWorkers is the reason when a class has no worker class; Invalid.
	reasonNoWorkers = "NoWorkerClass"
	// reasonControlPlanes is the reason when the control plane cannot have the requested number of nodes; Invalid.
	reasonControlPlanes = "InvalidControlPlanes"
	// reasonVariable is the reason when the class does not accept a value; Invalid.
	reasonVariable = "InvalidVariable"
)

// Class is a ClusterClass, with the objects to create before a Cluster can use it. "slipway create cluster" creates a
// Cluster of it.
type Class struct {
	*clusterv1.ClusterClass
	// Missing are the objects of a built-in class that does not exist in the namespace yet, in creation order.
	Missing []*unstructured.Unstructured
}

// FindClass returns the class that a Cluster of the namespace refers to, for "slipway create cluster" and "upgrade
// cluster". A built-in class need not exist in the cluster yet. If r is nil, only built-in classes are found.
func FindClass(ctx context.Context, r client.Reader, namespace string, ref clusterv1.ClusterClassRef) (Class, error) {
	if r != nil {
		found := &clusterv1.ClusterClass{}
		err := r.Get(ctx, client.ObjectKey{Namespace: cmp.Or(ref.Namespace, namespace), Name: ref.Name}, found)
		if err == nil {
			return Class{ClusterClass: found}, nil
		}
		if !apierrors.IsNotFound(err) {
			return Class{}, fmt.Errorf("reading ClusterClass %s: %w", ref.Name, err)
		}
	}
	if ref.Namespace == "" || ref.Namespace == namespace {
		if shipped, ok, err := builtinClass(ref.Name, namespace); ok || err != nil {
			return shipped, err
		}
	}
	return Class{}, notFound(ctx, r, namespace, ref)
}

// builtinClass returns a built-in class.
func builtinClass(name, namespace string) (Class, bool, error) {
	objects, ok, err := classes.Objects(name, namespace)
	if err != nil || !ok {
		return Class{}, false, err
	}
	for _, o := range objects {
		if o.GetKind() == "ClusterClass" {
			found := &clusterv1.ClusterClass{}
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, found)
			return Class{ClusterClass: found, Missing: objects}, true, err
		}
	}
	return Class{}, false, fmt.Errorf("built-in class %s contains no ClusterClass", name)
}

// notFound returns an error that lists the available classes.
func notFound(ctx context.Context, r client.Reader, namespace string, ref clusterv1.ClusterClassRef) error {
	where := cmp.Or(ref.Namespace, namespace)
	message := fmt.Sprintf("ClusterClass %q does not exist in namespace %q; built-in ClusterClasses: %s", ref.Name, where, strings.Join(classes.Names(), ", "))
	if r == nil {
		return fault.New(fault.Gone, reasonClassNotFound, "%s; it is unknown whether others exist, because no management cluster responds", message)
	}
	var list clusterv1.ClusterClassList
	if err := r.List(ctx, &list); err != nil {
		return fmt.Errorf("listing ClusterClasses: %w", err)
	}
	var there []string
	for _, c := range list.Items {
		name := c.Name
		if c.Namespace != namespace {
			name = c.Namespace + "/" + c.Name
		}
		if !slices.Contains(classes.Names(), name) {
			there = append(there, name)
		}
	}
	slices.Sort(there)
	if len(there) > 0 {
		message += "; other ClusterClasses: " + strings.Join(there, ", ")
	}
	return fault.New(fault.Gone, reasonClassNotFound, "%s", message)
}

// UsesContainers reports whether Clusters of the class run in containers on this host, in a subnet that is selected
// when they are created. `slipway create cluster` calls it to decide whether the cluster needs a subnet.
func (c Class) UsesContainers() bool {
	return c.Spec.Infrastructure.TemplateRef.Kind == "LocalClusterTemplate" && c.variable(SubnetVariable) != nil
}

// UsesHosts reports whether the nodes of the class are machines that are reached over SSH. `slipway create cluster`
// calls it to choose the Pod network.
func (c Class) UsesHosts() bool {
	return c.Spec.Infrastructure.TemplateRef.Kind == "SSHClusterTemplate"
}

// RunsOnHost reports whether control planes of the class run on the host of the management cluster, which limits them
// to the Kubernetes versions available there. The commands that create and upgrade clusters call it (package
// cli/hidden).
func (c Class) RunsOnHost() bool {
	return c.Spec.ControlPlane.TemplateRef.Kind == "HostedControlPlaneTemplate" && c.UsesContainers()
}

// ControlPlanes returns the number of control plane nodes. It defaults to one if the control plane runs on Machines,
// and is 0 if it has no Machines; requesting nodes is an error then. `slipway create cluster` calls it.
func (c Class) ControlPlanes(asked int32) (int32, error) {
	plane := c.Spec.ControlPlane
	switch {
	case !plane.MachineInfrastructure.TemplateRef.IsDefined() && asked > 0:
		return 0, fault.New(fault.Invalid, reasonControlPlanes, "ClusterClass %q has a control plane without nodes (%s); omit --control-planes, or use a class such as %q",
			c.Name, plane.TemplateRef.Kind, classes.Kubeadm)
	case !plane.MachineInfrastructure.TemplateRef.IsDefined():
		return 0, nil
	case asked > 0 && asked%2 == 0 && plane.TemplateRef.Kind == kubeadmTemplate:
		return 0, fault.New(fault.Invalid, reasonControlPlanes, "a control plane with %d nodes tolerates no more failed nodes than one with %d: etcd requires an odd number, for example %d",
			asked, asked-1, asked+1)
	}
	return max(1, asked), nil
}

// kubeadmTemplate is the kind of control planes whose nodes are etcd members.
const kubeadmTemplate = "KubeadmControlPlaneTemplate"

// Workers returns n workers of the first worker class: a MachineDeployment class if there is one, else a MachinePool
// class. `slipway create cluster` calls it.
func (c Class) Workers(n int32) (WorkerGroup, error) {
	switch {
	case len(c.Spec.Workers.MachineDeployments) > 0:
		return WorkerGroup{Kind: "MachineDeployment", Class: c.Spec.Workers.MachineDeployments[0].Class, Replicas: n}, nil
	case len(c.Spec.Workers.MachinePools) > 0:
		return WorkerGroup{Kind: "MachinePool", Class: c.Spec.Workers.MachinePools[0].Class, Replicas: n}, nil
	case n == 0:
		return WorkerGroup{}, nil
	}
	return WorkerGroup{}, fault.New(fault.Invalid, reasonNoWorkers, "ClusterClass %q has no workers; use --workers 0", c.Name)
}

// Definitions returns the variables of the class, sorted by name. Once the class is reconciled, they include the
// variables defined by extensions.
func (c Class) Definitions() []clusterv1.ClusterClassStatusVariable {
	definitions := slices.Clone(c.Status.Variables)
	for _, v := range c.Spec.Variables {
		if !slices.ContainsFunc(definitions, func(d clusterv1.ClusterClassStatusVariable) bool { return d.Name == v.Name }) {
			definitions = append(definitions, clusterv1.ClusterClassStatusVariable{Name: v.Name, Definitions: []clusterv1.ClusterClassStatusVariableDefinition{
				{From: clusterv1.VariableDefinitionFromInline, Required: v.Required, Schema: v.Schema},
			}})
		}
	}
	slices.SortFunc(definitions, func(a, b clusterv1.ClusterClassStatusVariable) int { return strings.Compare(a.Name, b.Name) })
	return definitions
}

func (c Class) variable(name string) *clusterv1.ClusterClassStatusVariable {
	definitions := c.Definitions()
	if i := slices.IndexFunc(definitions, func(d clusterv1.ClusterClassStatusVariable) bool { return d.Name == name }); i >= 0 {
		return &definitions[i]
	}
	return nil
}
