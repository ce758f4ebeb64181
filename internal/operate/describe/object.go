package describe

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object is one row of the tree with its children. [Build] creates it. `slipway describe cluster -o json` and `-o yaml`
// print it, so the JSON names must stay.
type Object struct {
	// Role is the role of the object for its parent, for example ClusterInfrastructure. It is empty if the kind is
	// sufficient. A row with a role and no kind only groups its children.
	Role string `json:"role,omitempty"`

	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`

	// Members are the names of the objects that a grouped row represents; Name is empty then.
	Members []string `json:"members,omitempty"`

	// Unreported means that no controller has written a status yet.
	Unreported bool `json:"unreported,omitempty"`

	// Missing is the reason why a referenced object could not be read; empty if it was read.
	Missing string `json:"missing,omitempty"`

	// Unread is true if the read of a referenced object failed ([ReadAvailable]).
	Unread bool `json:"-"`

	// Remediation is the upcoming remediation of a Machine by a MachineHealthCheck; nil if there is none.
	Remediation *Remediation `json:"remediation,omitempty"`

	// DeletedAt is the deletion timestamp.
	DeletedAt *metav1.Time `json:"deletedAt,omitempty"`

	// Replicas are the counters of a scalable object. A Machine counts as one.
	Replicas *Replicas `json:"replicas,omitempty"`

	// Conditions are all conditions of the object: Available and Ready first, then by type.
	Conditions []Condition `json:"conditions,omitempty"`

	// ShowConditions is true if all conditions are to be shown as separate rows.
	ShowConditions bool `json:"-"`

	// shown are the conditions shown as separate rows by default.
	shown []Condition
	// negative are the types of conditions with negative polarity of this object, in addition to [negativeTypes].
	negative []string

	Children []*Object `json:"children,omitempty"`
}

// Replicas are the counters of a scalable object. A nil counter is not reported. [Build] fills them in; [Render] and
// package ui display them.
type Replicas struct {
	Desired   *int32 `json:"desired,omitempty"`
	Current   *int32 `json:"current,omitempty"`
	Available *int32 `json:"available,omitempty"`
	Ready     *int32 `json:"ready,omitempty"`
	UpToDate  *int32 `json:"upToDate,omitempty"`
}

// Condition is a v1beta1 or v1beta2 condition. Only deprecated v1beta1 conditions have a Severity.
type Condition struct {
	Type               string                 `json:"type"`
	Status             metav1.ConditionStatus `json:"status"`
	Severity           string                 `json:"severity,omitempty"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty,omitzero"`
	// ObservedGeneration is the generation of the object that the condition reflects; 0 if it is not reported.
	ObservedGeneration int64 `json:"-"`
}

// Condition returns the condition of the type, or nil.
func (o *Object) Condition(conditionType string) *Condition {
	i := slices.IndexFunc(o.Conditions, func(c Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &o.Conditions[i]
}

// Headline returns the summary condition of the object: Deleting while it is being deleted, else Available, else Ready;
// for a Machine, Ready takes precedence. It returns nil if the object has none of them.
func (o *Object) Headline() *Condition {
	order := []string{"Available", "Ready"}
	if o.Kind == "Machine" {
		order = []string{"Ready", "Available"}
	}
	if o.DeletedAt != nil {
		if c := o.Condition("Deleting"); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
		return &Condition{Type: "Deleting", Status: metav1.ConditionTrue, LastTransitionTime: *o.DeletedAt}
	}
	for _, t := range order {
		if c := o.Condition(t); c != nil {
			return c
		}
	}
	return nil
}

// add sums counters. A counter that neither operand reports remains nil. [Build] calls it for the row of the Cluster
// and for grouped Machines.
func (r *Replicas) add(s *Replicas) *Replicas {
	if r == nil || s == nil {
		return cmpOr(r, s)
	}
	return &Replicas{
		Desired:   sum(r.Desired, s.Desired),
		Current:   sum(r.Current, s.Current),
		Available: sum(r.Available, s.Available),
		Ready:     sum(r.Ready, s.Ready),
		UpToDate:  sum(r.UpToDate, s.UpToDate),
	}
}

func cmpOr(a, b *Replicas) *Replicas {
	if a != nil {
		return a
	}
	return b
}

func sum(a, b *int32) *int32 {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	n := *a + *b
	return &n
}

// Find returns the row of an object in the subtree, or nil. Package progress calls it to follow one object.
func (o *Object) Find(kind, name string) *Object {
	if o.Kind == kind && o.Name == name {
		return o
	}
	for _, c := range o.Children {
		if found := c.Find(kind, name); found != nil {
			return found
		}
	}
	return nil
}
