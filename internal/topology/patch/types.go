package patch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// Role is what a template is for.
type Role string

// The roles.
const (
	InfrastructureCluster    Role = "infrastructure cluster"
	ControlPlane             Role = "control plane"
	ControlPlaneMachines     Role = "machines of the control plane"
	DeploymentBootstrap      Role = "bootstrap of the MachineDeployment"
	DeploymentInfrastructure Role = "infrastructure of the MachineDeployment"
	PoolBootstrap            Role = "bootstrap of the MachinePool"
	PoolInfrastructure       Role = "infrastructure of the MachinePool"
)

// Item is a template that patches may change.
type Item struct {
	// UID tells the items of one computation apart. It is the same whenever the same is computed: what an extension said is
	// remembered by its request.
	UID  types.UID
	Role Role
	// Class and Topology are the class of the workers and their name in the topology; empty: the template is not for workers.
	Class, Topology string
	// Holder is where the template is used.
	Holder runtimehooksv1.HolderReference
	// Object is the template as the class refers to it. It is not changed.
	Object *unstructured.Unstructured
	// Variables are the builtin variable and the overrides of this item.
	Variables variables.Values
}

// String names the item for messages.
func (i Item) String() string {
	text := fmt.Sprintf("%s %s (%s", i.Object.GetKind(), i.Object.GetName(), i.Role)
	if i.Topology != "" {
		text += " " + i.Topology
	}
	return text + ")"
}

// Result are the patched templates by the UID of their items. Items that no patch applies to are in it as they were.
type Result map[types.UID]*unstructured.Unstructured

// Question is a request to an extension, the answer to which Apply needs.
type Question struct {
	// Patch and Extension are the names of the patch of the class and of the handler that it names.
	Patch, Extension string
	// Request is a GeneratePatchesRequest or a ValidateTopologyRequest.
	Request runtime.Object
	// Key names the content of the request: an answer is good for every question with the same key.
	Key string
}

// String says what is to be found out.
func (q Question) String() string {
	if _, validates := q.Request.(*runtimehooksv1.ValidateTopologyRequest); validates {
		return "whether extension " + q.Extension + " of patch " + q.Patch + " accepts the topology"
	}
	return "what extension " + q.Extension + " of patch " + q.Patch + " changes"
}

// Answers are the responses of extensions by the keys of the questions; a response to a ValidateTopologyRequest accepts the topology.
type Answers map[string]runtimehooksv1.ResponseObject
