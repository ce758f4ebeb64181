package describe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// core returns the row of the tree for an object of a core Cluster API kind. [Build] arranges the rows that the
// functions of this file create.
func (b builder) core(o client.Object, kind string) *Object {
	row := b.identity(o, kind)
	row.APIVersion = clusterv1.GroupVersion.String()
	// The conversion cannot fail for API types; otherwise the row would have no conditions.
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err == nil {
		row.Conditions = conditionsOf(content, b.Deprecated)
		status, _, _ := unstructured.NestedMap(content, "status")
		row.Unreported = len(status) == 0
	}
	row.negative = negativeGates(o)
	return row
}

// negativeGates returns the types of the gates with negative polarity in the spec of an object.
func negativeGates(o client.Object) []string {
	var types []string
	gate := func(conditionType string, p clusterv1.ConditionPolarity) {
		if p == clusterv1.NegativePolarityCondition {
			types = append(types, conditionType)
		}
	}
	switch o := o.(type) {
	case *clusterv1.Cluster:
		for _, g := range o.Spec.AvailabilityGates {
			gate(g.ConditionType, g.Polarity)
		}
	case *clusterv1.Machine:
		for _, g := range o.Spec.ReadinessGates {
			gate(g.ConditionType, g.Polarity)
		}
	}
	return types
}

func (b builder) identity(o metav1.Object, kind string) *Object {
	return &Object{
		Kind:           kind,
		Namespace:      o.GetNamespace(),
		Name:           o.GetName(),
		DeletedAt:      o.GetDeletionTimestamp(),
		ShowConditions: b.showsConditions(kind, o.GetName()),
	}
}

// referenced returns the row of a provider object; nil if the reference is not set. [Build] calls it for each reference
// to a provider object.
func (b builder) referenced(role string, r clusterv1.ContractVersionedObjectReference) *Object {
	if !r.IsDefined() {
		return nil
	}
	return b.object(role, refOf(r))
}

// object returns the row of a provider object, which may be missing.
func (b builder) object(role string, ref Ref) *Object {
	u := b.Objects[ref]
	if b.Unread[ref] {
		return &Object{Role: role, Kind: ref.Kind, Namespace: b.Cluster.Namespace, Name: ref.Name, Unread: true}
	}
	if u == nil {
		missing := b.Missing[ref]
		if missing == "" {
			missing = "does not exist"
		}
		return &Object{Role: role, Kind: ref.Kind, Namespace: b.Cluster.Namespace, Name: ref.Name, Missing: missing}
	}
	row := b.identity(u, ref.Kind)
	row.Role = role
	row.APIVersion = u.GetAPIVersion()
	row.Conditions = conditionsOf(u.Object, b.Deprecated)
	row.Replicas = replicasOf(u)
	return row
}

// replicasOf reads the replica counters of the control plane contract. It returns nil for objects without
// spec.replicas, for example a control plane without Machines or the infrastructure of a pool.
func replicasOf(u *unstructured.Unstructured) *Replicas {
	desired := number(u, "spec", "replicas")
	if desired == nil {
		return nil
	}
	r := &Replicas{
		Desired:   desired,
		Current:   number(u, "status", "replicas"),
		Available: number(u, "status", "availableReplicas"),
		Ready:     number(u, "status", "readyReplicas"),
		UpToDate:  number(u, "status", "upToDateReplicas"),
	}
	if r.UpToDate == nil {
		r.UpToDate = number(u, "status", "updatedReplicas")
	}
	return r
}

func number(u *unstructured.Unstructured, path ...string) *int32 {
	n, found, err := unstructured.NestedInt64(u.Object, path...)
	if err != nil || !found {
		return nil
	}
	v := int32(n)
	return &v
}

// clusterReplicas sums the counters of the control plane and the workers. [Build] calls it for the row of the Cluster.
func clusterReplicas(c *clusterv1.Cluster) *Replicas {
	var total *Replicas
	if p := c.Status.ControlPlane; p != nil {
		total = total.add(&Replicas{p.DesiredReplicas, p.Replicas, p.AvailableReplicas, p.ReadyReplicas, p.UpToDateReplicas})
	}
	if w := c.Status.Workers; w != nil {
		total = total.add(&Replicas{w.DesiredReplicas, w.Replicas, w.AvailableReplicas, w.ReadyReplicas, w.UpToDateReplicas})
	}
	return total
}

// count returns 1 if the condition is true, 0 if it is not, and nil if it is not reported. [Build] sets the counters of
// a Machine's row with it.
func (o *Object) count(conditionType string) *int32 {
	c := o.Condition(conditionType)
	if c == nil {
		return nil
	}
	var n int32
	if c.Status == metav1.ConditionTrue {
		n = 1
	}
	return &n
}
