package topology

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// Role is the role of an object in a topology.
type Role string

// The roles. Their texts are part of messages and of the digests in names; the texts of Deployment and Pool are also
// stored in the annotation [lifecycle.WorkersAnnotation]. They must not change.
const (
	InfraCluster             Role = "infrastructure cluster"
	controlPlaneMachines     Role = "template of control plane machines"
	ControlPlane             Role = "control plane"
	ControlPlaneHealthCheck  Role = "health check of the control plane"
	deploymentBootstrap      Role = "bootstrap template of the MachineDeployment"
	deploymentInfrastructure Role = "infrastructure template of the MachineDeployment"
	Deployment               Role = "MachineDeployment"
	deploymentHealthCheck    Role = "health check of the MachineDeployment"
	poolBootstrap            Role = "bootstrap config of the MachinePool"
	poolInfrastructure       Role = "infrastructure of the MachinePool"
	Pool                     Role = "MachinePool"
)

// IsTemplate reports whether objects of the role are templates of Machines, which are replaced when their spec changes.
// Before it changes such a template, the topology controller checks with a dry run whether the spec changes.
func (r Role) IsTemplate() bool {
	return r == controlPlaneMachines || r == deploymentBootstrap || r == deploymentInfrastructure
}

// Key identifies an object of a topology.
type Key struct {
	Role Role
	// Worker is the name of the MachineDeployment or MachinePool in the topology; empty if the object does not belong
	// to one.
	Worker string
}

// String returns the name of the object for messages.
func (k Key) String() string {
	if k.Worker == "" {
		return string(k.Role)
	}
	return string(k.Role) + " " + k.Worker
}

// Group returns the key of the control plane, infrastructure or worker to which a part belongs. Parts of a group depend
// on each other, but not on other groups once the Cluster references its infrastructure and control plane. While a
// template of a group cannot be written, the topology controller restricts the writes of the group.
func (k Key) Group() Key {
	switch k.Role {
	case ControlPlane, controlPlaneMachines, ControlPlaneHealthCheck:
		return Key{Role: ControlPlane}
	case InfraCluster:
		return Key{Role: InfraCluster}
	}
	return k.OfWorker()
}

// IsHealthCheck reports whether objects of the role are MachineHealthChecks. The topology controller applies a health
// check even while a template of its group cannot be written.
func (r Role) IsHealthCheck() bool { return r == ControlPlaneHealthCheck || r == deploymentHealthCheck }

// OfWorker returns the key of the worker to which an object belongs, or an empty key. The topology controller calls it
// for each part.
func (k Key) OfWorker() Key {
	switch k.Role {
	case deploymentBootstrap, deploymentInfrastructure, deploymentHealthCheck, Deployment:
		return Key{Deployment, k.Worker}
	case poolBootstrap, poolInfrastructure, Pool:
		return Key{Pool, k.Worker}
	}
	return Key{}
}

// Snapshot is the input of the desired state. The topology controller reads it in each reconciliation and passes it to
// [NewDraft]; it is not modified.
type Snapshot struct {
	Cluster *clusterv1.Cluster
	Class   *clusterv1.ClusterClass
	// Templates of the class, by reference.
	Templates map[clusterv1.ClusterClassTemplateReference]contract.Object
	// Live holds the existing objects. Of workers that are being deleted it has only keys and names.
	Live Live
	// Changed holds the existing templates whose spec would change, according to a dry run of the topology controller.
	Changed map[Key]bool
}

// Live holds the existing objects of a topology. The topology controller reads them before it computes the desired
// objects.
type Live struct {
	InfraCluster, ControlPlane, ControlPlaneMachines contract.Object
	// Deployments and Pools by their name in the topology.
	Deployments map[string]LiveWorker
	Pools       map[string]LiveWorker
	// HealthChecks by name.
	HealthChecks map[string]*clusterv1.MachineHealthCheck
	// Surplus holds workers whose topology name is not in the topology, or is already used by another worker.
	Surplus []client.Object
	// Deleting holds the workers that are being deleted.
	Deleting map[Key]bool
	// Names of the existing MachineDeployments and MachinePools of the Cluster.
	Names map[string]bool
}

// worker returns the existing worker with the key. [NewDraft] and the [builder] call it.
func (l Live) worker(key Key) LiveWorker {
	if key.Role == Pool {
		return l.Pools[key.Worker]
	}
	return l.Deployments[key.Worker]
}

// LiveWorker is a MachineDeployment or MachinePool with the objects that it references. The topology controller reads
// it.
type LiveWorker struct {
	// Object is a *MachineDeployment or a *MachinePool.
	Object                    client.Object
	Bootstrap, Infrastructure contract.Object
}

// machine returns the Machine spec of the worker; it is empty if the worker does not exist. [NewDraft] calls it.
func (w LiveWorker) machine() clusterv1.MachineSpec {
	switch o := w.Object.(type) {
	case *clusterv1.MachineDeployment:
		return o.Spec.Template.Spec
	case *clusterv1.MachinePool:
		return o.Spec.Template.Spec
	}
	return clusterv1.MachineSpec{}
}

// Versions holds the Kubernetes version that each part may have now. The topology controller fills it in from the
// decision of package lifecycle.
type Versions struct {
	ControlPlane string
	// Deployments and Pools by their name in the topology; the default is the version of the topology.
	Deployments, Pools map[string]string
	// Withheld holds the workers that may not be created yet, Frozen the parts whose spec must not change now: a change
	// now, and a change of the version soon after, would replace the Machines twice. Keys have the roles ControlPlane,
	// Deployment and Pool.
	Withheld, Frozen map[Key]bool
}

// Part is one object of a topology, with its desired and current state.
type Part struct {
	Key
	// Want holds the fields that the topology sets.
	Want *unstructured.Unstructured
	// Live is the existing object with the name of Want; nil if it has to be created.
	Live client.Object
	// Replaces is the template that Want replaces, or nil.
	Replaces client.Object
	// Frozen parts are not changed now.
	Frozen bool
}

// Desired is the desired state of a topology, as returned by [Draft.DesiredState].
type Desired struct {
	// Parts in the order in which they are written: an object comes after the objects that it references.
	Parts []Part
	// Obsolete objects no longer belong to the topology and have to be deleted.
	Obsolete []client.Object
}

// Part returns the part with the key, or nil.
func (d Desired) Part(key Key) *Part {
	for i := range d.Parts {
		if d.Parts[i].Key == key {
			return &d.Parts[i]
		}
	}
	return nil
}
