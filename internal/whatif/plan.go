package whatif

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/whatif/played"
)

// Object names an object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Verb is what becomes of an object.
type Verb string

const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Plan is what a change does.
type Plan struct {
	// Refused is what the API would refuse of the change. The rest of the plan is without it.
	Refused []Refusal `json:"refused,omitempty"`
	// Objects that change, by cluster, kind and name.
	Objects []ObjectChange `json:"objects"`
	// Rollouts are the owners whose Machines are created, replaced or deleted.
	Rollouts []Rollout `json:"rollouts,omitempty"`
	// Clusters that are touched, because an object of them changes or stands still, and how many are not.
	Clusters  []string `json:"clusters,omitempty"`
	Untouched int      `json:"untouched"`
	// Hooks are the lifecycle hooks that are called, in their order.
	Hooks []Hook `json:"hooks,omitempty"`
	// Unanswered are the Runtime Extensions whose answers are not known: what depends on them is not in the plan.
	Unanswered []Unanswered `json:"unanswered,omitempty"`
	// Actions of the controllers in their order.
	Actions []Action `json:"actions,omitempty"`
	// Waits are what stands still in the end and did not before.
	Waits []Waiting `json:"waits,omitempty"`
	// UnderWay is how many objects were still to be created, changed or deleted before the change.
	UnderWay int `json:"underWay"`
	// Settled: nothing was left to do in the end. Otherwise this is the beginning of what would happen.
	Settled bool `json:"settled"`
	// Reconciliations that were run to find out.
	Reconciliations int `json:"reconciliations"`
}

// IsEmpty reports whether nothing changes.
func (p *Plan) IsEmpty() bool { return len(p.Objects) == 0 && len(p.Refused) == 0 }

// IsUncertain reports whether more may change than the plan says, since the answer of an extension is not known.
func (p *Plan) IsUncertain() bool {
	return slices.ContainsFunc(p.Unanswered, func(u Unanswered) bool { return u.Hook != DiscoverVariables })
}

// ObjectChange is what becomes of one object.
type ObjectChange struct {
	Object
	// Cluster that it is a member of, as namespace/name; empty: none.
	Cluster string `json:"cluster,omitempty"`
	// Owner is its controller owner, as kind/name.
	Owner string `json:"owner,omitempty"`
	Verb  Verb   `json:"verb"`
	// Generated: part of the name is chosen at random when it is created, and will be another.
	Generated bool `json:"generated,omitempty"`
	// Fields that change of an object that is updated.
	Fields []Field `json:"fields,omitempty"`
}

// Rollout is what becomes of the Machines of one owner.
type Rollout struct {
	Object
	Cluster string `json:"cluster,omitempty"`
	// Created is how many Machines are created and are there in the end. Deleted and Kept are those that were there before.
	Created int      `json:"created"`
	Deleted []string `json:"deleted,omitempty"`
	Kept    []string `json:"kept,omitempty"`
	// Steps in their order.
	Steps []Step `json:"steps,omitempty"`
}

// Step is what happens at one time.
type Step struct {
	// Created is how many Machines are created, Deleted are the names of those that are deleted.
	Created int      `json:"created,omitempty"`
	Deleted []string `json:"deleted,omitempty"`
	at      time.Time
}

// Action is one decision of a controller.
type Action struct {
	// After is how much time passes in the world until then. What providers do takes a made-up time there.
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

func hooksOf(calls []played.HookCall, began time.Time) []Hook {
	var out []Hook
	for _, c := range calls {
		out = append(out, Hook{After: c.At.Sub(began).Round(time.Second).String(), Hook: c.Hook, Cluster: c.Cluster.String(), Handlers: c.Handlers})
	}
	return out
}

// Unanswered is a Runtime Extension whose answer is not known.
type Unanswered struct {
	Hook      string `json:"hook"`
	Extension string `json:"extension"`
	// Objects are the Clusters, ClusterClasses or MachineSets that it is asked about, as namespace/name.
	Objects []string `json:"objects"`
	// Problem is why it did not answer; empty: it was not asked.
	Problem string `json:"problem,omitempty"`
	// Means is what is not known without the answer.
	Means string `json:"means"`
}

// DiscoverVariables is the hook without whose answer the last one is used.
const DiscoverVariables = "DiscoverVariables"

// CanUpdateMachineSet is the hook that is asked about MachineSets.
const CanUpdateMachineSet = "CanUpdateMachineSet"

func unansweredOf(list []played.Unanswered) []Unanswered {
	var out []Unanswered
	for _, u := range list {
		one := Unanswered{Hook: u.Hook, Extension: u.Handler, Problem: u.Problem, Means: means(u.Hook)}
		for _, key := range u.Of {
			one.Objects = append(one.Objects, key.String())
		}
		out = append(out, one)
	}
	return out
}

// means says what is not known without the answer to a hook.
func means(hook string) string {
	switch hook {
	case DiscoverVariables:
		return "the variables that it defines are taken to be those of the last time"
	case "GenerateUpgradePlan":
		return "the versions of the upgrade are not known, and no upgrade is in the plan"
	case CanUpdateMachineSet:
		return "whether Machines are updated in place is not known, and their rollout is not in the plan"
	case "ValidateTopology":
		return "whether it accepts the topology is not known, and nothing that follows from the topology is in the plan"
	}
	return "what it makes of the templates is not known, and nothing that follows from the topology is in the plan"
}

// Waiting is an object that waits.
type Waiting struct {
	Kind   string      `json:"kind"`
	Object string      `json:"object"`
	Waits  []loop.Wait `json:"waits,omitempty"`
	Errors []string    `json:"errors,omitempty"`
}

func objectOf(u *unstructured.Unstructured) Object {
	return Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// clusterOf is the Cluster of an object.
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

// isKind reports whether an object is of a kind of the core.
func isKind(u *unstructured.Unstructured, kind string) bool {
	gvk := u.GroupVersionKind()
	return gvk.Kind == kind && gvk.Group == clusterv1.GroupVersion.Group
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// rank orders kinds from the general to the particular.
func rank(kind string) int {
	order := []string{"ClusterClass", "Cluster", "MachineDeployment", "MachinePool", "MachineHealthCheck", "MachineSet", "Machine"}
	if n := slices.Index(order, kind); n >= 0 {
		return n
	}
	return len(order)
}
