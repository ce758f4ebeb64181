package upgrade

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/rollout"
)

// RolloutProgress is the progress of a rollout, which `slipway rollout status` shows, also as JSON.
type RolloutProgress struct {
	Kind RolloutKind `json:"kind"`
	Name string      `json:"name"`
	// Cluster is the name of the resource's Cluster.
	Cluster string `json:"cluster,omitempty"`
	// Desired, Replicas, UpToDate and Available count Machines.
	Desired   int32 `json:"desired"`
	Replicas  int32 `json:"replicas"`
	UpToDate  int32 `json:"upToDate"`
	Available int32 `json:"available"`
	// Observed reports whether the status reflects the current generation.
	Observed bool `json:"observed"`
	// Paused is what pauses the rollout; empty if nothing does.
	Paused string `json:"paused,omitempty"`
	// Reason explains why the rollout is not complete, from the RollingOut condition.
	Reason string `json:"reason,omitempty"`
}

// ReadRollout returns the progress of the rollout of a resource. `slipway rollout status` calls it, repeatedly while it
// follows a rollout.
func ReadRollout(ctx context.Context, c client.Reader, namespace string, r RolloutResource, now time.Time) (RolloutProgress, error) {
	o, err := get(ctx, c, namespace, r)
	if err != nil {
		return RolloutProgress{}, err
	}
	s := RolloutProgress{Kind: r.Kind, Name: r.Name}
	if isPaused(o) {
		s.Paused = "the annotation " + clusterv1.PausedAnnotation
		if r.Kind == MachineDeployment {
			s.Paused = "spec.paused"
		}
	}
	switch o := o.(type) {
	case *clusterv1.MachineDeployment:
		s.Cluster = o.Spec.ClusterName
		s.counts(o.Spec.Replicas, o.Status.Replicas, o.Status.UpToDateReplicas, o.Status.AvailableReplicas)
		s.Observed = o.Status.ObservedGeneration >= o.Generation
		s.setFromConditions(o.Status.Conditions)
		most, err := countCurrentMachines(ctx, c, o, now)
		s.UpToDate = min(s.UpToDate, most)
		return s, err
	case *controlplanev1.KubeadmControlPlane:
		s.Cluster = o.Labels[clusterv1.ClusterNameLabel]
		s.counts(o.Spec.Replicas, o.Status.Replicas, o.Status.UpToDateReplicas, o.Status.AvailableReplicas)
		s.Observed = o.Status.ObservedGeneration >= o.Generation
		s.setFromConditions(o.Status.Conditions)
	case *clusterv1.MachinePool:
		s.Cluster = o.Spec.ClusterName
		s.counts(o.Spec.Replicas, o.Status.Replicas, o.Status.UpToDateReplicas, o.Status.AvailableReplicas)
		s.Observed = o.Status.ObservedGeneration >= o.Generation
		s.setFromConditions(o.Status.Conditions)
	}
	return s, nil
}

// countCurrentMachines counts the Machines of MachineSets that match the current spec of the MachineDeployment.
// Directly after a change, the status of the MachineDeployment still counts outdated Machines as up to date.
func countCurrentMachines(ctx context.Context, c client.Reader, d *clusterv1.MachineDeployment, now time.Time) (int32, error) {
	sets := &clusterv1.MachineSetList{}
	if err := c.List(ctx, sets, client.InNamespace(d.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: d.Name}); err != nil {
		return 0, fmt.Errorf("listing the MachineSets of MachineDeployment %s: %w", d.Name, err)
	}
	var out int32
	for i := range sets.Items {
		set := &sets.Items[i]
		expired := rollout.Expired(d.Spec.Rollout.After.Time, set.CreationTimestamp.Time, now)
		if !expired && len(rollout.Differences(set.Spec.Template, d.Spec.Template)) == 0 && set.Status.Replicas != nil {
			out += *set.Status.Replicas
		}
	}
	return out, nil
}

func (s *RolloutProgress) counts(desired, replicas, upToDate, available *int32) {
	value := func(n *int32, unset int32) int32 {
		if n == nil {
			return unset
		}
		return *n
	}
	s.Desired, s.Replicas = value(desired, 1), value(replicas, 0)
	s.UpToDate, s.Available = value(upToDate, 0), value(available, 0)
}

// setFromConditions sets Reason and Paused from the conditions.
func (s *RolloutProgress) setFromConditions(conditions []metav1.Condition) {
	if c := meta.FindStatusCondition(conditions, clusterv1.RollingOutCondition); c != nil && c.Status == metav1.ConditionTrue {
		first, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
		s.Reason = strings.TrimPrefix(first, "* ")
	}
	if s.Paused == "" && meta.IsStatusConditionTrue(conditions, clusterv1.PausedCondition) {
		s.Paused = "spec.paused of its Cluster"
	}
}

// Done reports whether all Machines are up to date and available, and no surplus Machine is left. `slipway rollout
// status` ends when it returns true.
func (s RolloutProgress) Done() bool {
	return s.Observed && s.UpToDate >= s.Desired && s.Replicas == s.Desired && s.Available >= s.Desired
}

// String describes the progress in the words of kubectl, with the reason for waiting. `slipway rollout status` prints
// it.
func (s RolloutProgress) String() string {
	name := fmt.Sprintf("%s %q", strings.ToLower(string(s.Kind)), s.Name)
	waiting := "Waiting for rollout of " + name + " to finish: "
	switch {
	case s.Done():
		return name + " successfully rolled out"
	case !s.Observed:
		return "Waiting for the spec of " + name + " to be observed..." + s.because()
	case s.UpToDate < s.Desired:
		return waiting + fmt.Sprintf("%d of %d machines are up to date...", s.UpToDate, s.Desired) + s.because()
	case s.Replicas > s.Desired:
		return waiting + fmt.Sprintf("%d old machines are pending termination...", s.Replicas-s.Desired) + s.because()
	}
	return waiting + fmt.Sprintf("%d of %d updated machines are available...", s.Available, s.Desired) + s.because()
}

// reasonLength is the maximum length of a reason in characters. "slipway describe" prints it in full.
const reasonLength = 300

func shortened(text string) string {
	if letters := []rune(text); len(letters) > reasonLength {
		return string(letters[:reasonLength-1]) + "…"
	}
	return text
}

func (s RolloutProgress) because() string {
	if s.Reason == "" {
		return ""
	}
	return " (" + shortened(s.Reason) + ")"
}
