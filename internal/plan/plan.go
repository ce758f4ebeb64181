package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/plan/world"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Object identifies an object. All parts of a [Plan] name their objects with it.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Verb is the kind of change of an object. The values are part of the JSON form of a [Plan].
type Verb string

const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Plan contains the effects of a change, as [Run] returns them. `slipway plan` prints it as text, or as JSON or YAML,
// so its fields are an interface for scripts.
type Plan struct {
	// Refused are the parts of the change that the API would reject. The rest of the plan does not include them.
	Refused []Refusal `json:"refused,omitempty"`
	// Objects are the changed objects, by cluster, kind and name.
	Objects []ObjectChange `json:"objects"`
	// Rollouts are the owners whose Machines are created, replaced or deleted.
	Rollouts []Rollout `json:"rollouts,omitempty"`
	// Clusters are affected because one of their objects changes or waits. Untouched is the number of the other
	// clusters.
	Clusters  []string `json:"clusters,omitempty"`
	Untouched int      `json:"untouched"`
	// Hooks are the called lifecycle hooks, in order.
	Hooks []Hook `json:"hooks,omitempty"`
	// Unanswered are the Runtime Extensions whose responses are unknown. The plan does not include anything that
	// depends on them.
	Unanswered []UnknownResponse `json:"unanswered,omitempty"`
	// Actions are the actions of the controllers, in order.
	Actions []Action `json:"actions,omitempty"`
	// Waits are the objects that are waiting at the end and were not waiting before.
	Waits []Waiting `json:"waits,omitempty"`
	// Hosts are the hosts of an inventory that another machine uses in the end, or none.
	Hosts []HostChange `json:"hosts,omitempty"`
	// MissingHosts are the machines that get no host because of the change.
	MissingHosts []MissingHosts `json:"missingHosts,omitempty"`
	// HostsUnknown is true if the hosts could not be read. The plan assumes then that there are enough.
	HostsUnknown bool `json:"hostsUnknown,omitempty"`
	// UnderWay is the number of objects that were still being created, changed or deleted before the change.
	UnderWay int `json:"underWay"`
	// Settled is true if nothing was left to do at the end. Otherwise the plan only contains the first part of the
	// effects.
	Settled bool `json:"settled"`
	// Reconciliations is the number of reconciliations that were run.
	Reconciliations int `json:"reconciliations"`
}

// IsEmpty reports whether nothing changes. The exit status of `slipway plan` depends on it.
func (p *Plan) IsEmpty() bool { return len(p.Objects) == 0 && len(p.Refused) == 0 }

// IsUncertain reports whether more may change than the plan contains, because the response of an extension is unknown.
// `slipway plan` then exits with the status for changes, even if nothing else changes.
func (p *Plan) IsUncertain() bool {
	return slices.ContainsFunc(p.Unanswered, func(u UnknownResponse) bool { return u.Hook != DiscoverVariables })
}

// ObjectChange is the change of one object.
type ObjectChange struct {
	Object
	// Cluster is the object's Cluster as namespace/name, if it has one.
	Cluster string `json:"cluster,omitempty"`
	// Owner is its controller owner, as kind/name.
	Owner string `json:"owner,omitempty"`
	Verb  Verb   `json:"verb"`
	// Generated is true if part of the name is random and will be different in the real cluster.
	Generated bool `json:"generated,omitempty"`
	// Fields are the changed fields of an updated object.
	Fields []Field `json:"fields,omitempty"`
}

// Rollout contains the changes of the Machines of one owner.
type Rollout struct {
	Object
	Cluster string `json:"cluster,omitempty"`
	// Created is the number of Machines that are created and exist at the end. Deleted and Kept are Machines that
	// existed before.
	Created int      `json:"created"`
	Deleted []string `json:"deleted,omitempty"`
	Kept    []string `json:"kept,omitempty"`
	// Steps are the steps of the rollout, in order.
	Steps []Step `json:"steps,omitempty"`
}

// Step contains the Machine changes at one point in time. The runLog records one for each moment at which Machines are
// created or deleted.
type Step struct {
	// Created is the number of created Machines; Deleted are the names of the deleted ones.
	Created int      `json:"created,omitempty"`
	Deleted []string `json:"deleted,omitempty"`
	at      time.Time
}

// Action is one action of a controller.
type Action struct {
	// After is the simulated time until the action. The durations of provider operations are arbitrary.
	After  string `json:"after"`
	Kind   string `json:"kind"`
	Object string `json:"object"`
	Action string `json:"action"`
}

// Hook is a call of the extensions that handle a lifecycle hook.
type Hook struct {
	After    string   `json:"after"`
	Hook     string   `json:"hook"`
	Cluster  string   `json:"cluster"`
	Handlers []string `json:"handlers"`
}

// hooksOf returns the calls for the [Plan], with the time since the change. The run calls it at its end.
func hooksOf(calls []world.HookCall, began time.Time) []Hook {
	var out []Hook
	for _, c := range calls {
		out = append(out, Hook{After: c.At.Sub(began).Round(time.Second).String(), Hook: c.Hook, Cluster: c.Cluster.String(), Handlers: c.Handlers})
	}
	return out
}

// UnknownResponse is a Runtime Extension whose response is unknown.
type UnknownResponse struct {
	Hook      string `json:"hook"`
	Extension string `json:"extension"`
	// Objects are the Clusters, ClusterClasses or MachineSets of the call, as namespace/name.
	Objects []string `json:"objects"`
	// Problem is the error of the call. It is empty if the extension was not called.
	Problem string `json:"problem,omitempty"`
	// Means describes which part of the plan is unknown without the response.
	Means string `json:"means"`
}

// DiscoverVariables is the hook whose previous response is used if there is no new one. `slipway plan` names the
// ClusterClasses whose calls are missing by it.
const DiscoverVariables = "DiscoverVariables"

// CanUpdateMachineSet is the hook that is called for MachineSets. `slipway plan` prints their names if it is not
// called.
const CanUpdateMachineSet = "CanUpdateMachineSet"

// unansweredOf returns the calls for the [Plan], each with the part that is unknown. The run calls it at its end.
func unansweredOf(list []world.Unanswered) []UnknownResponse {
	var out []UnknownResponse
	for _, u := range list {
		one := UnknownResponse{Hook: u.Hook, Extension: u.Handler, Problem: u.Problem, Means: means(u.Hook)}
		for _, key := range u.Objects {
			one.Objects = append(one.Objects, key.String())
		}
		out = append(out, one)
	}
	return out
}

// means describes which part of the plan is unknown without the response of a hook.
func means(hook string) string {
	switch hook {
	case DiscoverVariables:
		return "the plan uses the variables of its previous response"
	case "GenerateUpgradePlan":
		return "the plan contains no upgrade, because its versions are unknown"
	case CanUpdateMachineSet:
		return "the plan contains no rollout of the Machines, because it is unknown whether they can be updated in place"
	case "ValidateTopology":
		return "the plan contains no effects of the topology, because it is unknown whether the extension accepts it"
	}
	return "the plan contains no effects of the topology, because the patches of the extension are unknown"
}

// Waiting is an object that is waiting or failing.
type Waiting struct {
	Kind   string            `json:"kind"`
	Object string            `json:"object"`
	Waits  []reconciler.Wait `json:"waits,omitempty"`
	Errors []string          `json:"errors,omitempty"`
}

// objectOf returns the identity of an object for the [Plan].
func objectOf(u *unstructured.Unstructured) Object {
	return Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// clusterOf returns the Cluster of an object. The parts of a [Plan] are grouped by it.
func clusterOf(u *unstructured.Unstructured) string {
	name := u.GetLabels()[clusterv1.ClusterNameLabel]
	if inSpec, _, _ := unstructured.NestedString(u.Object, "spec", "clusterName"); inSpec != "" {
		name = inSpec
	}
	if isKind(u, clusterv1.ClusterKind) {
		name = u.GetName()
	}
	for _, ref := range u.GetOwnerReferences() {
		if name == "" && ref.Kind == clusterv1.ClusterKind {
			name = ref.Name
		}
	}
	if name == "" {
		return ""
	}
	return u.GetNamespace() + "/" + name
}

// isKind reports whether an object is of a kind of the core provider.
func isKind(u *unstructured.Unstructured, kind string) bool {
	gvk := u.GroupVersionKind()
	return gvk.Kind == kind && gvk.Group == clusterv1.GroupVersion.Group
}

// compareObjects orders objects by kind, from general to specific, then by namespace and name.
func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// rank orders kinds from general to specific, for the output.
func rank(kind string) int {
	order := []string{"ClusterClass", "Cluster", "MachineDeployment", "MachinePool", "MachineHealthCheck", "MachineSet", "Machine"}
	if n := slices.Index(order, kind); n >= 0 {
		return n
	}
	return len(order)
}
