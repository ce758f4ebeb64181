package topology

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Worker is a MachineDeployment or MachinePool in spec.topology, with the fields that both have, so that webhooks and
// the topology controller handle both kinds with the same code.
type Worker struct {
	Key
	// Index in the list of its kind.
	Index     int
	Class     string
	Metadata  clusterv1.ObjectMeta
	Replicas  *int32
	Taints    []clusterv1.MachineTaint
	Overrides []clusterv1.ClusterVariable
	// HealthCheck is empty for MachinePools, which have none.
	HealthCheck clusterv1.MachineDeploymentTopologyHealthCheck
}

// Workers returns the MachineDeployments of a topology, then its MachinePools. The webhooks of Clusters and
// ClusterClasses call it too.
func Workers(t clusterv1.Topology) []Worker {
	var out []Worker
	for i, d := range t.Workers.MachineDeployments {
		out = append(out, Worker{
			Key: Key{Deployment, d.Name}, Index: i, Class: d.Class, Metadata: d.Metadata, Replicas: d.Replicas, Taints: d.Taints,
			Overrides: d.Variables.Overrides, HealthCheck: d.HealthCheck,
		})
	}
	for i, p := range t.Workers.MachinePools {
		out = append(out, Worker{
			Key: Key{Pool, p.Name}, Index: i, Class: p.Class, Metadata: p.Metadata, Replicas: p.Replicas, Taints: p.Taints,
			Overrides: p.Variables.Overrides,
		})
	}
	return out
}

// Path returns the path of the worker below the path of the topology, for validation errors. The webhooks of Clusters
// and ClusterClasses call it.
func (w Worker) Path(topology *field.Path) *field.Path {
	return workersPath(topology, w.Role).Index(w.Index)
}

// WorkerClass is a class of MachineDeployments or MachinePools in a ClusterClass, with the fields that both have.
// [FindWorkerClass] returns it to the webhooks and to [NewDraft].
type WorkerClass struct {
	// Key has the name of the class.
	Key
	// Index in the list of its kind.
	Index    int
	Metadata clusterv1.ObjectMeta
	// Naming is the template of the names of workers, or empty.
	Naming string
	WorkerTemplates
	Taints []clusterv1.MachineTaint
	// HealthCheck is empty for MachinePools, which have none.
	HealthCheck clusterv1.MachineDeploymentClassHealthCheck
}

// WorkerTemplates holds the templates of a worker's class; they are empty if the ClusterClass does not have the class.
// The topology controller reads the objects behind these references.
type WorkerTemplates struct {
	Bootstrap, Infrastructure clusterv1.ClusterClassTemplateReference
}

// WorkerClasses returns the classes of MachineDeployments in a ClusterClass, then those of MachinePools. The webhooks
// of Clusters and ClusterClasses call it.
func WorkerClasses(class *clusterv1.ClusterClass) []WorkerClass {
	var out []WorkerClass
	for i := range class.Spec.Workers.MachineDeployments {
		out = append(out, deploymentClass(class, i))
	}
	for i := range class.Spec.Workers.MachinePools {
		out = append(out, poolClass(class, i))
	}
	return out
}

func deploymentClass(class *clusterv1.ClusterClass, i int) WorkerClass {
	c := &class.Spec.Workers.MachineDeployments[i]
	return WorkerClass{
		Key: Key{Deployment, c.Class}, Index: i, Metadata: c.Metadata, Naming: c.Naming.Template, Taints: c.Taints, HealthCheck: c.HealthCheck,
		WorkerTemplates: WorkerTemplates{c.Bootstrap.TemplateRef, c.Infrastructure.TemplateRef},
	}
}

func poolClass(class *clusterv1.ClusterClass, i int) WorkerClass {
	c := &class.Spec.Workers.MachinePools[i]
	return WorkerClass{
		Key: Key{Pool, c.Class}, Index: i, Metadata: c.Metadata, Naming: c.Naming.Template, Taints: c.Taints,
		WorkerTemplates: WorkerTemplates{c.Bootstrap.TemplateRef, c.Infrastructure.TemplateRef},
	}
}

// FindWorkerClass returns the class of workers with a role and name, or nil. The webhooks and the topology controller
// find the class of a worker with it.
func FindWorkerClass(class *clusterv1.ClusterClass, role Role, name string) *WorkerClass {
	workers := class.Spec.Workers
	if role == Pool {
		i := slices.IndexFunc(workers.MachinePools, func(c clusterv1.MachinePoolClass) bool { return c.Class == name })
		if i < 0 {
			return nil
		}
		return new(poolClass(class, i))
	}
	i := slices.IndexFunc(workers.MachineDeployments, func(c clusterv1.MachineDeploymentClass) bool { return c.Class == name })
	if i < 0 {
		return nil
	}
	return new(deploymentClass(class, i))
}

// Path returns the path of the class below the path of the spec, for validation errors. The webhook of ClusterClasses
// calls it.
func (c WorkerClass) Path(spec *field.Path) *field.Path {
	return workersPath(spec, c.Role).Index(c.Index)
}

func workersPath(parent *field.Path, role Role) *field.Path {
	if role == Pool {
		return parent.Child("workers", "machinePools")
	}
	return parent.Child("workers", "machineDeployments")
}
