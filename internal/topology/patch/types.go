package patch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// Role is the role of a template. Package topology assigns one to each [Item], and [selects] compares it with the
// selectors.
type Role string

// The roles of templates that patches can select. Their texts are used only in messages.
const (
	InfrastructureCluster    Role = "infrastructure cluster"
	ControlPlane             Role = "control plane"
	ControlPlaneMachines     Role = "machines of the control plane"
	DeploymentBootstrap      Role = "bootstrap of the MachineDeployment"
	DeploymentInfrastructure Role = "infrastructure of the MachineDeployment"
	PoolBootstrap            Role = "bootstrap of the MachinePool"
	PoolInfrastructure       Role = "infrastructure of the MachinePool"
)

// Item is a template that patches may change, an input of [Program.Apply]. Package topology creates one for each part
// of a topology.
type Item struct {
	// UID identifies an item within one computation. It must be deterministic, because responses of extensions are
	// cached by request.
	UID  types.UID
	Role Role
	// Class and Topology are the class of the workers and their name in the topology; empty if the template does not
	// belong to a worker.
	Class, Topology string
	// Holder is the object that uses the template.
	Holder runtimehooksv1.HolderReference
	// Object is the template that the class references. It is not modified.
	Object *unstructured.Unstructured
	// Variables holds the builtin variable and the overrides for this item.
	Variables variables.Values
}

// String returns the name of the item for messages.
func (i Item) String() string {
	text := fmt.Sprintf("%s %s (%s", i.Object.GetKind(), i.Object.GetName(), i.Role)
	if i.Topology != "" {
		text += " " + i.Topology
	}
	return text + ")"
}

// Result holds the patched templates by the UID of their items. It includes unchanged items. [Program.Apply] returns
// it, and package topology creates the desired objects from it.
type Result map[types.UID]*unstructured.Unstructured

// ExtensionRequest is a request to an extension whose response Apply needs. The topology controller sends it.
type ExtensionRequest struct {
	// Patch is the name of the patch in the class; Extension is the handler that it names.
	Patch, Extension string
	// Request is a GeneratePatchesRequest or a ValidateTopologyRequest.
	Request runtime.Object
	// Key is a hash of the request: a response is valid for every request with the same key.
	Key string
}

// String returns a description of the request.
func (q ExtensionRequest) String() string {
	if _, validates := q.Request.(*runtimehooksv1.ValidateTopologyRequest); validates {
		return "validation of the topology by extension " + q.Extension + " of patch " + q.Patch
	}
	return "patches by extension " + q.Extension + " of patch " + q.Patch
}

// Responses holds the responses of extensions by the keys of the requests. A response to a ValidateTopologyRequest
// means that the topology was accepted. The topology controller collects them and passes them to [Program.Apply].
type Responses map[string]runtimehooksv1.ResponseObject
