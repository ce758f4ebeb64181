package class

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
	"github.com/slipwayhq/slipway/internal/clusterctl/manifest"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of the faults of this package.
const (
	// ReasonNotFound says that there is no ClusterClass of the name; the kind is Gone.
	ReasonNotFound = "ClusterClassNotFound"
	// ReasonNoWorkers says that a class has no class of workers; the kind is Invalid.
	ReasonNoWorkers = "NoWorkerClass"
	// ReasonControlPlanes says that a control plane cannot have so many nodes; the kind is Invalid.
	ReasonControlPlanes = "InvalidControlPlanes"
	// ReasonVariable says that a value is not one that the class takes; the kind is Invalid.
	ReasonVariable = "InvalidVariable"
)

// Class is a ClusterClass, and what is missing before a Cluster can use it.
type Class struct {
	*clusterv1.ClusterClass
	// Missing are the objects of a class that ships and is not in the namespace yet, in the order in which they are to be made.
	Missing []*unstructured.Unstructured
}

// Find returns the class that a Cluster of the namespace refers to. One that ships need not be there yet. A reader of nil asks no
// management cluster; then only those that ship are known.
func Find(ctx context.Context, r client.Reader, namespace string, ref clusterv1.ClusterClassRef) (Class, error) {
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
		if shipped, ok, err := shipped(ref.Name, namespace); ok || err != nil {
			return shipped, err
		}
	}
	return Class{}, notFound(ctx, r, namespace, ref)
}

// shipped returns a class that ships.
func shipped(name, namespace string) (Class, bool, error) {
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
	return Class{}, false, fmt.Errorf("class %s ships without a ClusterClass", name)
}

// notFound says which classes there are.
func notFound(ctx context.Context, r client.Reader, namespace string, ref clusterv1.ClusterClassRef) error {
	where := cmp.Or(ref.Namespace, namespace)
	message := fmt.Sprintf("there is no ClusterClass %q in namespace %q; with Slipway come: %s", ref.Name, where, strings.Join(classes.Names(), ", "))
	if r == nil {
		return fault.New(fault.Gone, ReasonNotFound, "%s; whether there are others is not known, because no management cluster answers", message)
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
		message += "; there are also: " + strings.Join(there, ", ")
	}
	return fault.New(fault.Gone, ReasonNotFound, "%s", message)
}

// Containers reports whether clusters of the class are made of containers of this host, in a network that is chosen when they are created.
func (c Class) Containers() bool {
	return c.Spec.Infrastructure.TemplateRef.Kind == "LocalClusterTemplate" && c.variable(manifest.Subnet) != nil
}

// RunsOnHost reports whether control planes of the class run on the host of the management cluster, as versions that it has.
func (c Class) RunsOnHost() bool {
	return c.Spec.ControlPlane.TemplateRef.Kind == "HostedControlPlaneTemplate" && c.Containers()
}

// ControlPlanes is how many nodes the control plane is to have: one where none are asked for and it runs on Machines, and 0 where it has
// no Machines, of which there can be none.
func (c Class) ControlPlanes(asked int32) (int32, error) {
	plane := c.Spec.ControlPlane
	switch {
	case !plane.MachineInfrastructure.TemplateRef.IsDefined() && asked > 0:
		return 0, fault.New(fault.Invalid, ReasonControlPlanes, "ClusterClass %q has a control plane without nodes (%s); leave --control-planes out, or use a class such as %q",
			c.Name, plane.TemplateRef.Kind, classes.Kubeadm)
	case !plane.MachineInfrastructure.TemplateRef.IsDefined():
		return 0, nil
	case asked > 0 && asked%2 == 0 && plane.TemplateRef.Kind == kubeadmTemplate:
		return 0, fault.New(fault.Invalid, ReasonControlPlanes, "a control plane of %d nodes survives the loss of no more of them than one of %d: etcd needs an odd number, for example %d",
			asked, asked-1, asked+1)
	}
	return max(1, asked), nil
}

// kubeadmTemplate is the kind of control planes whose nodes are the members of etcd.
const kubeadmTemplate = "KubeadmControlPlaneTemplate"

// Workers are a number of nodes of the first class for workers: of MachineDeployments, or else of MachinePools.
func (c Class) Workers(n int32) (manifest.Workers, error) {
	switch {
	case len(c.Spec.Workers.MachineDeployments) > 0:
		return manifest.Workers{Kind: "MachineDeployment", Class: c.Spec.Workers.MachineDeployments[0].Class, Replicas: n}, nil
	case len(c.Spec.Workers.MachinePools) > 0:
		return manifest.Workers{Kind: "MachinePool", Class: c.Spec.Workers.MachinePools[0].Class, Replicas: n}, nil
	case n == 0:
		return manifest.Workers{}, nil
	}
	return manifest.Workers{}, fault.New(fault.Invalid, ReasonNoWorkers, "ClusterClass %q has no workers; use --workers 0", c.Name)
}

// Definitions are the variables of the class, sorted by name: those that extensions define included, once the class was reconciled.
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
