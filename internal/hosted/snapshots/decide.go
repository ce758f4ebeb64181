package snapshots

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

const (
	// retryAfter is the delay before a failed snapshot or an unreachable store is retried.
	retryAfter = 5 * time.Minute
	// maxRecheck is the maximum time between reconciliations, because the clock of the host may be changed.
	maxRecheck = time.Hour
	// statusRecheck is the delay before the next reconciliation after a status update.
	statusRecheck = time.Second
	// busyAgain is the delay before checking for the end of another snapshot; usually an event triggers the
	// reconciliation earlier.
	busyAgain = 10 * time.Second
)

// decide returns the plan for an EtcdSnapshotPolicy. The driver of package reconciler calls it in each reconciliation
// after observe, and again after the store was read. It must not have side effects. The first of the upper five rows
// that applies ends the plan. The rows below them apply together, and the last four are checked for each Cluster:
//
//	suspended                                      wait for the user
//	invalid schedule or denied destination         wait for the user
//	nothing due, requested or finished             wait for the next scheduled time
//	contents of the store not read yet             read the store
//	store unreachable                              wait, and retry
//	request already listed in the status, without
//	a Cluster of this policy, or failed            remove the request
//	requested snapshot in the store, not yet in
//	the status                                     update the status, requeue
//	more snapshots than the retention allows       remove them
//	due snapshot already in the store              nothing
//	snapshot in progress                           wait
//	snapshot failed recently                       wait
//	snapshot due or requested                      take it
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	if why := blocked(s); why.reason != "" {
		p.WaitFor(why.reason, "%s", why.message).For(kind, s.Policy.Name).UntilUserActs()
		return p
	}
	times, _ := snapshots.ParseSchedule(s.Policy.Spec.Schedule) // validated by blocked
	p.RecheckIn(min(times.Next(s.Now).Sub(s.Now), maxRecheck))
	if !needsStore(s, times) {
		return p
	}
	if !s.Store.Known {
		p.Reads = append(p.Reads, readStore{})
		return p
	}
	if s.Store.Problem != "" {
		p.WaitFor(s.Store.Reason, "%s", s.Store.Problem).For(kind, s.Policy.Name).ForTime()
		p.RecheckIn(retryAfter)
		return p
	}
	request := requestOf(s)
	if request.removalReason != "" {
		p.Do(removeRequest{Name: request.name, Why: request.removalReason})
	}
	if request.stored {
		p.RecheckIn(statusRecheck)
	}
	for _, c := range s.Clusters {
		for _, m := range expiredSnapshots(s.Policy.Spec.Retention, s.Store.Snapshots[c.Name], s.Now) {
			p.Do(removeSnapshot{Manifest: m.m, Why: m.why})
		}
	}
	decideSnapshots(s, times, request, &p)
	return p
}

// blockReason is a reason with its message.
type blockReason struct{ reason, message string }

// blocked returns the reason why the policy is inactive until the user changes something.
func blocked(s snapshot) blockReason {
	if s.Policy.Spec.Suspend != nil && *s.Policy.Spec.Suspend {
		return blockReason{"Suspended", "Snapshots are suspended: set spec.suspend to false to resume"}
	}
	if _, err := snapshots.ParseSchedule(s.Policy.Spec.Schedule); err != nil {
		return blockReason{"ScheduleInvalid", scheduleProblem(s)}
	}
	if s.Denied != "" {
		return blockReason{"DeniedByPolicy", s.Denied}
	}
	return blockReason{}
}

// decideSnapshots starts the first snapshot that is due and possible, and waits for the others.
func decideSnapshots(s snapshot, times snapshots.Schedule, request snapshotRequest, p *reconciler.Plan) {
	started := false
	for _, c := range s.Clusters {
		name := dueName(s, c, times)
		if request.removalReason == "" && !request.stored && request.cluster == c.Name {
			name = request.name
		}
		if name == "" || c.Problem != "" {
			continue
		}
		switch job := c.Job; {
		case job.Running:
			p.WaitFor("SnapshotUnderWay", "Waiting for the snapshot of Cluster %s to be stored", c.Name).For("Cluster", c.Name).ToChange("")
		case job.Err != "" && name != request.name && s.Now.Sub(job.Ended) < retryAfter:
			p.WaitFor("SnapshotFailed", "Cluster %s: %s, retrying in up to 5m", c.Name, job.Err).For("Cluster", c.Name).ForTime()
			p.RecheckIn(job.Ended.Add(retryAfter).Sub(s.Now))
		case job.Busy || started:
			p.WaitFor("WaitingForOtherSnapshot", "Waiting for another snapshot or restore to end before the snapshot of Cluster %s", c.Name).For("Cluster", c.Name).ForTime()
			p.RecheckIn(busyAgain)
		default:
			p.Do(takeSnapshot{Cluster: c.Cluster, Name: name})
			started = true
		}
	}
}

// needsStore reports whether the contents of the store are needed: a snapshot is due, requested or finished, or the
// store was never read.
func needsStore(s snapshot, times snapshots.Schedule) bool {
	if s.Policy.Annotations[hostedv1.TakeSnapshotAnnotation] != "" || len(s.Policy.Status.Conditions) == 0 || s.Changed {
		return true
	}
	return slices.ContainsFunc(s.Clusters, func(c target) bool {
		if c.Job.Running {
			return false
		}
		return !c.Job.Ended.IsZero() || c.Problem == "" && dueName(s, c, times) != ""
	})
}

// dueName returns the name of the snapshot of a Cluster that is due and not stored yet, or the empty string if none
// is due.
func dueName(s snapshot, c target, times snapshots.Schedule) string {
	last := latest(s.Policy.CreationTimestamp.Time, c.Created)
	for _, name := range namesOf(s, c.Name) {
		if _, at, ok := snapshots.ParseName(name); ok {
			last = latest(last, at)
		}
	}
	due := times.Due(last, s.Now)
	if due.IsZero() {
		return ""
	}
	return snapshots.Name(c.Name, due)
}

// namesOf returns the names of a Cluster's snapshots, from the store or, until the store has been read, from the
// status.
func namesOf(s snapshot, cluster string) []string {
	var out []string
	if s.Store.Known && s.Store.Problem == "" {
		for _, m := range s.Store.Snapshots[cluster] {
			out = append(out, m.Name)
		}
		return out
	}
	for _, c := range s.Policy.Status.Clusters {
		if c.Name == cluster {
			for _, one := range c.Snapshots {
				out = append(out, one.Name)
			}
		}
	}
	return out
}

// isStoredText is the removal reason of a request that is fulfilled.
const isStoredText = "the snapshot is stored"

// snapshotRequest is a snapshot that a user requested with the annotation.
type snapshotRequest struct {
	name, cluster string
	// removalReason is the reason why the request can be removed, or empty if it is still to be fulfilled. Method
	// events compares the text for a stored snapshot, for which there is no warning.
	removalReason string
	// stored is true if the snapshot is stored but not yet listed in the status. The request is removed in a later
	// reconciliation, because a reconciliation that changes the object does not write its status.
	stored bool
}

// isListed reports whether the status lists the snapshot.
func isListed(p *hostedv1.EtcdSnapshotPolicy, name string) bool {
	return slices.ContainsFunc(p.Status.Clusters, func(of hostedv1.ClusterSnapshots) bool {
		return slices.ContainsFunc(of.Snapshots, func(s hostedv1.EtcdSnapshot) bool { return s.Name == name })
	})
}

// requestOf returns the requested snapshot, and whether its request can be removed.
func requestOf(s snapshot) snapshotRequest {
	r := snapshotRequest{name: s.Policy.Annotations[hostedv1.TakeSnapshotAnnotation]}
	if r.name == "" {
		return r
	}
	cluster, at, ok := snapshots.ParseName(r.name)
	r.cluster = cluster
	i := slices.IndexFunc(s.Clusters, func(c target) bool { return c.Name == cluster })
	switch {
	case !ok || at.After(s.Now.Add(time.Minute)):
		r.removalReason = "it is not a snapshot name with the current time"
	case i < 0:
		r.removalReason = "the policy has no Cluster " + cluster
	case slices.Contains(namesOf(s, cluster), r.name):
		newest := namesOf(s, cluster)
		newest = newest[max(0, len(newest)-hostedv1.MaxListedSnapshots):] // the status lists only these
		if r.stored = slices.Contains(newest, r.name) && !isListed(s.Policy, r.name); !r.stored {
			r.removalReason = isStoredText
		}
	case s.Clusters[i].Problem != "":
		r.removalReason = s.Clusters[i].Problem
	case s.Clusters[i].Job.Err != "" && s.Clusters[i].Job.Name == r.name:
		r.removalReason = s.Clusters[i].Job.Err
	}
	return r
}

// removal is a snapshot to remove, with the reason. [decide] plans a [removeSnapshot] for each.
type removal struct {
	m   snapshots.Manifest
	why string
}

// expiredSnapshots returns the snapshots that exceed the retention, oldest first. The newest snapshot is never removed.
func expiredSnapshots(keep hostedv1.SnapshotRetention, have []snapshots.Manifest, now time.Time) []removal {
	count := int(cmp.Or(keep.Count, hostedv1.DefaultSnapshotCount))
	var out []removal
	for i, m := range have {
		age := time.Duration(keep.MaximumAgeHours) * time.Hour
		switch left := len(have) - i; {
		case left == 1:
		case left > count:
			out = append(out, removal{m, fmt.Sprintf("the retention is %d", count)})
		case age > 0 && now.Sub(m.Taken) > age:
			out = append(out, removal{m, fmt.Sprintf("it is older than %d h", keep.MaximumAgeHours)})
		}
	}
	return out
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// The actions of the controller. All of them are idempotent.
type (
	// takeSnapshot starts taking a snapshot. [decideSnapshots] plans it, and act starts a job for it.
	takeSnapshot struct {
		Cluster snapshots.Cluster
		Name    string
	}
	// removeSnapshot removes a snapshot from the store.
	removeSnapshot struct {
		Manifest snapshots.Manifest
		Why      string
	}
	// removeRequest removes the annotation that requests a snapshot.
	removeRequest struct{ Name, Why string }
	// readStore reads the contents of the store.
	readStore struct{}
)

func (a takeSnapshot) String() string { return "take snapshot " + a.Name + ": it is due" }
func (a removeSnapshot) String() string {
	return fmt.Sprintf("remove snapshot %s: %s", a.Manifest.Name, a.Why)
}
func (a removeRequest) String() string {
	return fmt.Sprintf("remove the request for snapshot %s: %s", a.Name, strings.ToLower(a.Why[:1])+a.Why[1:])
}
func (readStore) String() string { return "list the snapshots in the store" }
