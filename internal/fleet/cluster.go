package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/internal/version"
)

// Cluster is the row of a cluster. `slipway get clusters` prints it, also as JSON for scripts, so its JSON names must
// not change. The page of `slipway ui` shows it, too.
type Cluster struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Class is empty for a cluster without a class.
	Class string `json:"class,omitempty"`
	// Infrastructure is the kind of the infrastructure object.
	Infrastructure string `json:"infrastructure,omitempty"`
	// Version is the desired version, and RunningVersions are the versions of the Machines, the oldest first.
	Version         string   `json:"version,omitempty"`
	RunningVersions []string `json:"runningVersions,omitempty"`
	Phase           string   `json:"phase"`
	// ControlPlane is nil for a control plane without Machines.
	ControlPlane *Replicas `json:"controlPlane,omitempty"`
	Workers      *Replicas `json:"workers,omitempty"`
	Health       Health    `json:"health"`
	Cause
	// Available is the status of the Available condition, and Message its message.
	Available string            `json:"available"`
	Message   string            `json:"message,omitempty"`
	Paused    bool              `json:"paused,omitempty"`
	Created   time.Time         `json:"created"`
	Labels    map[string]string `json:"-"`
	// Revision changes with every change of the row on a [Board].
	Revision uint64 `json:"-"`

	// independent are the versions of workers that no topology upgrades to the desired version.
	independent []string
}

// Replicas counts the Machines of a control plane or of the workers. Commands and the page print it.
type Replicas struct {
	Ready     int32 `json:"ready"`
	Available int32 `json:"available"`
	UpToDate  int32 `json:"upToDate"`
	Desired   int32 `json:"desired"`
	// Current includes Machines that are being created or deleted.
	Current int32 `json:"current"`

	// isCurrentUnknown and isUpToDateUnknown are true if the Cluster does not report these numbers.
	isCurrentUnknown, isUpToDateUnknown bool
}

// isComplete reports whether all desired Machines exist and are up to date, and no others exist. Numbers that are not reported
// are considered complete.
func (r *Replicas) isComplete() bool {
	return r == nil || (r.isCurrentUnknown || r.Current == r.Desired) && (r.isUpToDateUnknown || r.UpToDate >= r.Desired)
}

// Ref returns the Cluster of the row.
func (c Cluster) Ref() rootcause.Ref { return clusterRef(c.Namespace, c.Name) }

func clusterRef(namespace, name string) rootcause.Ref {
	return rootcause.Ref{Group: clusterv1.GroupVersion.Group, Kind: "Cluster", Namespace: namespace, Name: name}
}

// newCluster computes the row of a Cluster. [Board] calls it for a stale row.
func newCluster(g rootcause.Graph, c *clusterv1.Cluster, now time.Time) Cluster {
	row := Cluster{
		Namespace: c.Namespace, Name: c.Name, Class: c.Spec.Topology.ClassRef.Name, Infrastructure: c.Spec.InfrastructureRef.Kind,
		Phase: c.Status.Phase, Available: "Unknown", Paused: isPaused(c.Spec.Paused, c.Annotations), Created: c.CreationTimestamp.Time, Labels: c.Labels,
	}
	controlPlane, _ := g.Get(contractRef(c.Namespace, c.Spec.ControlPlaneRef))
	row.Version, row.RunningVersions, row.independent = versionsOf(c, controlPlane)
	if p := c.Status.ControlPlane; p != nil {
		row.ControlPlane = newReplicas(p.DesiredReplicas, p.Replicas, p.ReadyReplicas, p.AvailableReplicas, p.UpToDateReplicas)
	}
	if w := c.Status.Workers; w != nil {
		row.Workers = newReplicas(w.DesiredReplicas, w.Replicas, w.ReadyReplicas, w.AvailableReplicas, w.UpToDateReplicas)
	}
	if available := condition.Set(c.Status.Conditions).Get(clusterv1.ClusterAvailableCondition); available != nil {
		row.Available, row.Message = string(available.Status), available.Message
	}
	var facts healthFacts
	row.Cause, facts = explain(g, row.Ref(), now)
	facts.paused, facts.deleting, facts.progressing = row.Paused, !c.DeletionTimestamp.IsZero(), facts.progressing || row.isProgressing(c)
	row.Health = healthOf(facts)
	if row.Reason == "" && row.Health == changing {
		row.Reason = progressText(c, row)
	}
	return row
}

func isPaused(spec *bool, annotations map[string]string) bool {
	_, annotated := annotations[clusterv1.PausedAnnotation]
	return spec != nil && *spec || annotated
}

// isProgressing reports whether a creation, upgrade, rollout or scaling is not complete.
func (c Cluster) isProgressing(of *clusterv1.Cluster) bool {
	starting := c.Phase == "" || c.Phase == string(clusterv1.ClusterPhasePending) || c.Phase == string(clusterv1.ClusterPhaseProvisioning)
	initialized := of.Status.Initialization.ControlPlaneInitialized
	return starting || initialized == nil || !*initialized || c.IsUpgrading() || !c.ControlPlane.isComplete() || !c.Workers.isComplete() ||
		anyTrue(of.Status.Conditions, clusterv1.ClusterRollingOutCondition, clusterv1.ClusterScalingUpCondition, clusterv1.ClusterScalingDownCondition, clusterv1.ClusterRemediatingCondition)
}

// progressText describes a change without a problem.
func progressText(of *clusterv1.Cluster, c Cluster) string {
	for _, step := range []struct {
		applies bool
		text    string
	}{
		{!of.DeletionTimestamp.IsZero(), "Deleting"},
		{c.IsUpgrading(), "Upgrading"},
		{isTrue(of.Status.Conditions, clusterv1.ClusterRemediatingCondition), "Remediating"},
		{isTrue(of.Status.Conditions, clusterv1.ClusterRollingOutCondition), "Rolling out"},
		{isTrue(of.Status.Conditions, clusterv1.ClusterScalingUpCondition), "Scaling up"},
		{isTrue(of.Status.Conditions, clusterv1.ClusterScalingDownCondition), "Scaling down"},
		{c.Phase == string(clusterv1.ClusterPhaseProvisioned), "Replacing Machines"},
	} {
		if step.applies {
			return step.text
		}
	}
	return "Provisioning"
}

// IsUpgrading reports whether a Machine runs another version than the desired one. Workers have versions of their own without
// a topology.
func (c Cluster) IsUpgrading() bool {
	return c.Version != "" && slices.ContainsFunc(c.RunningVersions, func(v string) bool {
		return withoutBuild(v) != withoutBuild(c.Version) && !slices.Contains(c.independent, v)
	})
}

// withoutBuild returns a version without its build metadata, such as "+k3s1".
func withoutBuild(v string) string {
	v, _, _ = strings.Cut(v, "+")
	return v
}

// VersionText returns the version, or the oldest running version and the desired one while they differ.
func (c Cluster) VersionText() string {
	running := slices.DeleteFunc(slices.Clone(c.RunningVersions), func(v string) bool { return slices.Contains(c.independent, v) })
	if c.IsUpgrading() && withoutBuild(running[0]) != withoutBuild(c.Version) {
		return running[0] + " → " + c.Version
	}
	if c.IsUpgrading() {
		return running[len(running)-1] + " → " + c.Version
	}
	return cmp.Or(c.Version, strings.Join(c.RunningVersions, ", "))
}

// versionsOf returns the desired version, from the topology or the control plane, the running versions, and the versions of
// workers alone without a topology.
func versionsOf(c *clusterv1.Cluster, controlPlane *unstructured.Unstructured) (desired string, running, independent []string) {
	desired = c.Spec.Topology.Version
	if controlPlane != nil {
		if desired == "" {
			desired, _, _ = unstructured.NestedString(controlPlane.Object, "spec", "version")
		}
		if current, _, _ := unstructured.NestedString(controlPlane.Object, "status", "version"); current != "" {
			running = append(running, current)
		}
	}
	if p := c.Status.ControlPlane; p != nil {
		running = appendVersions(running, p.Versions)
	}
	if w := c.Status.Workers; w != nil {
		workers := appendVersions(nil, w.Versions)
		if c.Spec.Topology.Version == "" {
			independent = slices.DeleteFunc(slices.Clone(workers), func(v string) bool { return slices.Contains(running, v) })
		}
		running = append(running, workers...)
	}
	slices.SortFunc(running, version.Compare)
	return desired, slices.Compact(running), independent
}

func appendVersions(out []string, versions []clusterv1.StatusVersion) []string {
	for _, v := range versions {
		out = append(out, v.Version)
	}
	return out
}

func contractRef(namespace string, r clusterv1.ContractVersionedObjectReference) rootcause.Ref {
	return rootcause.Ref{Group: r.APIGroup, Kind: r.Kind, Namespace: namespace, Name: r.Name}
}

// newReplicas returns the counters, or nil if no number of Machines is desired. The order of the counters is desired,
// current, ready, available, up to date.
func newReplicas(counters ...*int32) *Replicas {
	if counters[0] == nil {
		return nil
	}
	values := make([]int32, len(counters))
	for i, c := range counters {
		if c != nil {
			values[i] = *c
		}
	}
	return &Replicas{
		Desired: values[0], Current: values[1], Ready: values[2], Available: values[3], UpToDate: values[4],
		isCurrentUnknown: counters[1] == nil, isUpToDateUnknown: counters[4] == nil,
	}
}

// zeroTime returns nil for a zero time.
func zeroTime(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
