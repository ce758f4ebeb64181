package snapshots

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// maxMessage limits the message of one Cluster, in bytes.
const maxMessage = 1000

// conditionInput is a snapshot with the list of Clusters for the status. The conditions are computed from it at the end
// of each reconciliation.
type conditionInput struct {
	snapshot
	clusters []hostedv1.ClusterSnapshots
}

// conditions of EtcdSnapshotPolicies. Types and reasons are part of the API.
var conditions = condition.Table[conditionInput]{
	{Type: hostedv1.ScheduleValidCondition, Compute: conditionInput.scheduleValid},
	{Type: hostedv1.StoreAvailableCondition, Compute: conditionInput.storeAvailable},
	{Type: hostedv1.SnapshotsUpToDateCondition, Compute: conditionInput.upToDate},
	{Type: hostedv1.ReadyCondition, Summarize: conditionInput.ready},
}

func scheduleProblem(s snapshot) string {
	if _, err := snapshots.ParseSchedule(s.Policy.Spec.Schedule); err != nil {
		return fault.UserMessage(err)
	}
	return ""
}

func (j conditionInput) scheduleValid() condition.Result {
	if text := scheduleProblem(j.snapshot); text != "" {
		return condition.False("Invalid", text)
	}
	return condition.True("Valid")
}

func (j conditionInput) storeAvailable() condition.Result {
	before := condition.Set(j.Policy.Status.Conditions).Get(hostedv1.StoreAvailableCondition)
	switch {
	case j.Denied != "":
		return condition.False("DeniedByPolicy", j.Denied)
	case j.Store.Problem != "":
		return condition.False(j.Store.Reason, j.Store.Problem)
	case j.Store.Known:
		return condition.True("Available")
	case before != nil && before.Reason != "DeniedByPolicy" && before.ObservedGeneration == j.Policy.Generation: // the spec is unchanged, so the store is too
		return condition.Result{Status: before.Status, Reason: before.Reason, Message: before.Message}
	}
	return condition.Unknown("NotYetKnown", "The store is read when a snapshot is due")
}

func (j conditionInput) upToDate() condition.Result {
	if j.Policy.Spec.Suspend != nil && *j.Policy.Spec.Suspend {
		return condition.Unknown("Suspended", "Snapshots are suspended: set spec.suspend to false to resume")
	}
	var problems []string
	for _, c := range j.clusters {
		if c.Message != "" {
			problems = append(problems, "* Cluster "+c.Name+": "+c.Message)
		}
	}
	if j.Omitted > 0 {
		problems = append(problems, fmt.Sprintf("* The policy selects %d Clusters more than the limit of %d: select fewer", j.Omitted, hostedv1.MaxSnapshotClusters))
	}
	switch {
	case len(problems) > 5:
		return condition.False("SnapshotsMissing", strings.Join(problems[:5], "\n")+fmt.Sprintf("\nand %d more", len(problems)-5))
	case len(problems) > 0:
		return condition.False("SnapshotsMissing", strings.Join(problems, "\n"))
	case len(j.Clusters) == 0:
		return condition.TrueBecause("NoClusters", "The policy selects no Cluster")
	}
	return condition.True("UpToDate")
}

func (conditionInput) ready(set condition.Set) condition.Result {
	return condition.Summarize(set, condition.Reasons{Info: "Ready", Issue: "NotReady", Unknown: "ReadyUnknown"},
		condition.Part{Type: hostedv1.ScheduleValidCondition}, condition.Part{Type: hostedv1.StoreAvailableCondition}, condition.Part{Type: hostedv1.SnapshotsUpToDateCondition})
}

// report computes the status and the events of an EtcdSnapshotPolicy after its plan was executed; the driver of package
// reconciler writes them. The status lists the newest snapshots, because `slipway snapshots list` reads only the
// status.
func report(s snapshot, _ reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	s.Store.Snapshots = withoutRemoved(s.Store.Snapshots, out)
	j := conditionInput{snapshot: s}
	status := hostedv1.EtcdSnapshotPolicyStatus{ObservedGeneration: s.Policy.Generation}
	for _, target := range s.Clusters {
		row := rowOf(s, target)
		if len(row.Snapshots) > 0 && status.LastSnapshotTime.Before(&row.Snapshots[0].Time) {
			status.LastSnapshotTime = row.Snapshots[0].Time
		}
		j.clusters = append(j.clusters, row)
	}
	status.Clusters = j.clusters
	if times, err := snapshots.ParseSchedule(s.Policy.Spec.Schedule); err == nil && blocked(s).reason == "" {
		status.NextSnapshotTime = metav1.NewTime(times.Next(s.Now))
	}
	status.Conditions = conditions.Evaluate(j, reconciler.EvaluateOptionsFor(s.Policy, s.Now))
	return reconciler.Report{Status: status, Events: events(s, j.clusters, out)}
}

// withoutRemoved returns the stored snapshots without the removed ones.
func withoutRemoved(all map[string][]snapshots.Manifest, out reconciler.Outcome) map[string][]snapshots.Manifest {
	gone := map[string]bool{}
	for _, a := range out.Done {
		if r, ok := a.(removeSnapshot); ok {
			gone[r.Manifest.Name] = true
		}
	}
	left := map[string][]snapshots.Manifest{}
	for cluster, list := range all {
		for _, m := range list {
			if !gone[m.Name] {
				left[cluster] = append(left[cluster], m)
			}
		}
	}
	return left
}

// rowOf returns the status entry of a Cluster, from the store or, if the store was not read, from the previous
// status.
func rowOf(s snapshot, c target) hostedv1.ClusterSnapshots {
	row := hostedv1.ClusterSnapshots{Name: c.Name}
	if s.Store.Known && s.Store.Problem == "" {
		list := s.Store.Snapshots[c.Name]
		row.Count = int32(len(list))
		for i := len(list) - 1; i >= 0 && len(row.Snapshots) < hostedv1.MaxListedSnapshots; i-- {
			row.Snapshots = append(row.Snapshots, listed(list[i]))
		}
	} else if i := slices.IndexFunc(s.Policy.Status.Clusters, func(r hostedv1.ClusterSnapshots) bool { return r.Name == c.Name }); i >= 0 {
		row = s.Policy.Status.Clusters[i]
		row.Message = ""
	}
	if c.Job.Err != "" && !c.Job.Running {
		row.Message, row.LastFailureTime = redact.Clip(c.Job.Err, maxMessage), metav1.NewTime(c.Job.Ended.Truncate(time.Second))
	} else if !c.Job.Running && (c.Job.Ended.IsZero() || c.Job.Err == "") && s.Store.Known && s.Store.Problem == "" {
		row.LastFailureTime = metav1.Time{}
	}
	if c.Problem != "" {
		row.Message = redact.Clip(c.Problem, maxMessage)
	}
	return row
}

// listed returns the status entry of a snapshot.
func listed(m snapshots.Manifest) hostedv1.EtcdSnapshot {
	one := hostedv1.EtcdSnapshot{Name: m.Name, Time: metav1.NewTime(m.Taken.Truncate(time.Second)), Revision: max(m.Revision, 0), Bytes: m.Bytes, Version: m.Kubernetes}
	if m.Encrypted {
		one.Encrypted = &m.Encrypted
	}
	return one
}

// events returns the events for new snapshots, failures and rejected requests.
func events(s snapshot, now []hostedv1.ClusterSnapshots, out reconciler.Outcome) []reconciler.Event {
	var list []reconciler.Event
	for _, row := range now {
		i := slices.IndexFunc(s.Policy.Status.Clusters, func(r hostedv1.ClusterSnapshots) bool { return r.Name == row.Name })
		if i < 0 {
			continue
		}
		before := s.Policy.Status.Clusters[i]
		if len(row.Snapshots) > 0 && !slices.ContainsFunc(before.Snapshots, func(e hostedv1.EtcdSnapshot) bool { return e.Name == row.Snapshots[0].Name }) {
			list = append(list, reconciler.Normal("SnapshotTaken", "Took snapshot %s of etcd", row.Snapshots[0].Name))
		}
		if !row.LastFailureTime.IsZero() && !row.LastFailureTime.Equal(&before.LastFailureTime) {
			list = append(list, reconciler.Warning("SnapshotFailed", "Cluster %s: %s", row.Name, row.Message))
		}
	}
	for _, a := range out.Done {
		if r, ok := a.(removeRequest); ok && r.Why != isStoredText {
			list = append(list, reconciler.Warning("SnapshotRequestRefused", "No snapshot %s: %s", redact.Clip(r.Name, maxMessage), r.Why))
		}
	}
	return list
}
