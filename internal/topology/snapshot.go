package topology

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// Role is what an object of a topology is for.
type Role string

// The roles.
const (
	InfraCluster             Role = "infrastructure cluster"
	ControlPlaneMachines     Role = "template of control plane machines"
	ControlPlane             Role = "control plane"
	ControlPlaneHealthCheck  Role = "health check of the control plane"
	DeploymentBootstrap      Role = "bootstrap template of the MachineDeployment"
	DeploymentInfrastructure Role = "infrastructure template of the MachineDeployment"
	Deployment               Role = "MachineDeployment"
	DeploymentHealthCheck    Role = "health check of the MachineDeployment"
	PoolBootstrap            Role = "bootstrap config of the MachinePool"
	PoolInfrastructure       Role = "infrastructure of the MachinePool"
	Pool                     Role = "MachinePool"
)

// IsTemplate reports whether an object of the role is a template of machines, which is replaced where its spec changes.
func (r Role) IsTemplate() bool {
	return r == ControlPlaneMachines || r == DeploymentBootstrap || r == DeploymentInfrastructure
}

// Key tells the objects of a topology apart.
type Key struct {
	Role Role
	// Worker is the name of the MachineDeployment or MachinePool in the topology; empty: it is of none.
	Worker string
}

// String names the object for messages.
func (k Key) String() string {
	if k.Worker == "" {
		return string(k.Role)
	}
	return string(k.Role) + " " + k.Worker
}

// Group is the key of the object that a part is, is for, or checks: the parts of a group depend on each other, and on no other group
// once the Cluster refers to its infrastructure and its control plane.
func (k Key) Group() Key {
	switch k.Role {
	case ControlPlane, ControlPlaneMachines, ControlPlaneHealthCheck:
		return Key{Role: ControlPlane}
	case InfraCluster:
		return Key{Role: InfraCluster}
	}
	return k.OfWorker()
}

// IsHealthCheck reports whether an object of the role is a MachineHealthCheck.
func (r Role) IsHealthCheck() bool { return r == ControlPlaneHealthCheck || r == DeploymentHealthCheck }

// OfWorker is the key of the worker that an object is, is for, or checks; empty: it is of none.
func (k Key) OfWorker() Key {
	switch k.Role {
	case DeploymentBootstrap, DeploymentInfrastructure, DeploymentHealthCheck, Deployment:
		return Key{Deployment, k.Worker}
	case PoolBootstrap, PoolInfrastructure, Pool:
		return Key{Pool, k.Worker}
	}
	return Key{}
}

// Snapshot is everything that the desired state is computed from. Nothing in it is changed.
type Snapshot struct {
	Cluster *clusterv1.Cluster
	Class   *clusterv1.ClusterClass
	// Templates of the class by the references of the class.
	Templates map[clusterv1.ClusterClassTemplateReference]contract.Object
	// Live are the objects that exist, the ones that are being deleted included.
	Live Live
	// Changed are the templates that exist and have another spec than they should have.
	Changed map[Key]bool
}

// Live are the objects of a topology that exist.
type Live struct {
	InfraCluster, ControlPlane, ControlPlaneMachines contract.Object
	// Deployments and Pools by their name in the topology.
	Deployments map[string]LiveWorker
	Pools       map[string]LiveWorker
	// HealthChecks by name.
	HealthChecks map[string]*clusterv1.MachineHealthCheck
	// Surplus are workers that are of no name in the topology, or of one that another has already.
	Surplus []client.Object
	// Deleting are the workers that are being deleted.
	Deleting map[Key]bool
	// Names that MachineDeployments and MachinePools of the Cluster have.
	Names map[string]bool
}

// LiveWorker is a MachineDeployment or a MachinePool with what it refers to.
type LiveWorker struct {
	// Object is a *MachineDeployment or a *MachinePool.
	Object                    client.Object
	Bootstrap, Infrastructure contract.Object
}

// machine is the spec of the worker's Machines; empty where it does not exist.
func (w LiveWorker) machine() clusterv1.MachineSpec {
	switch o := w.Object.(type) {
	case *clusterv1.MachineDeployment:
		return o.Spec.Template.Spec
	case *clusterv1.MachinePool:
		return o.Spec.Template.Spec
	}
	return clusterv1.MachineSpec{}
}

// Versions say which Kubernetes version each part may have now.
type Versions struct {
	ControlPlane string
	// Deployments and Pools by their name in the topology; those without one have that of the topology.
	Deployments, Pools map[string]string
	// Withheld are workers that may not be created yet, Frozen are parts that keep the spec they have: a change now, and
	// another of the version soon after, would replace the Machines twice. Keys are of the roles ControlPlane, Deployment and Pool.
	Withheld, Frozen map[Key]bool
}

// Part is one object of a topology: what it should be, and what it is.
type Part struct {
	Key
	// Want is what the topology sets of the object.
	Want *unstructured.Unstructured
	// Live is the object with the name of Want; nil: it is to be created.
	Live client.Object
	// Replaces is a template in the place of which Want is created; nil: none.
	Replaces client.Object
	// Frozen parts are not changed now.
	Frozen bool
}

// Desired is what a topology consists of.
type Desired struct {
	// Parts in the order in which they are written: each after what it refers to.
	Parts []Part
	// Obsolete objects are of the topology no more, and to be deleted.
	Obsolete []client.Object
}

// Part returns the part with the key; nil: there is none.
func (d Desired) Part(key Key) *Part {
	for i := range d.Parts {
		if d.Parts[i].Key == key {
			return &d.Parts[i]
		}
	}
	return nil
}
