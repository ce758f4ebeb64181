package hosted

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

const (
	// fetchAgain is the delay after a failed fetch of a snapshot.
	fetchAgain = time.Minute
	// busyAgain is the delay before checking whether another job has ended, in case its event is missed.
	busyAgain = 10 * time.Second
)

// restore is the state of a requested restore. observe reads it, [planRestore] fetches the requested snapshot, and the
// next process restores it before its etcd starts. The annotation controlplane.slipway.dev/restore requests a restore.
type restore struct {
	// Request is the parsed annotation. It is nil if the annotation is missing or invalid.
	Request *RestoreRequest
	// Problem and Reason describe why the restore is not possible. They are empty if it is.
	Problem, Reason string
	// Running means that the snapshot is being fetched. Busy means that another job runs.
	Running, Busy bool
	// Ended is the time when the last fetch ended, and Err is the message of its error, if any.
	Ended time.Time
	Err   string
}

// readRestore reads the request and the state of the job that fetches its snapshot. observe calls it.
func (c *controller) readRestore(s snapshot, b backend.Backend) restore {
	var out restore
	var err error
	if out.Request, err = parseRestore(s.Plane); err != nil {
		return restore{Problem: fault.UserMessage(err), Reason: fault.As(err).Reason}
	}
	if out.Request == nil {
		return out
	}
	if s.Capabilities.InPods {
		out.Reason, out.Problem = "RestoreImpossible", "A control plane in a Pod cannot be restored from a snapshot of etcd: restore its PersistentVolumeClaim from a snapshot of the volume"
		return out
	}
	if b.Folder == nil || c.jobs == nil {
		out.Reason, out.Problem = "RestoreImpossible", "A "+s.Capabilities.Kind+" control plane has no etcd on this host: it cannot be restored"
		return out
	}
	if job := c.jobs.State(jobs.Key(kind, client.ObjectKeyFromObject(s.Plane))); job.What == out.Request.String() || job.Running || job.Busy {
		out.Running, out.Busy, out.Ended = job.Running, job.Busy, job.Ended
		if job.Err != nil && job.What == out.Request.String() {
			out.Err = fault.UserMessage(job.Err)
		}
	}
	return out
}

// hasStagedRestore reports whether the next process restores a snapshot.
func hasStagedRestore(s snapshot) bool {
	r := s.Restore.Request
	return r != nil && s.Restore.Problem == "" && s.Process.Data.Staged.ID == r.ID && s.Process.Data.Restored.ID != r.ID
}

// restoreID returns the restore that the process must have completed: the requested one if its snapshot was fetched,
// otherwise the last one. It is part of the configuration of the process ([configOf]), so a new restore restarts the
// process.
func restoreID(s snapshot) string {
	if hasStagedRestore(s) {
		return s.Restore.Request.ID
	}
	return s.Process.Data.Restored.ID
}

// wasRestored reports whether the requested snapshot was restored. The steps that need a ready API server may
// still be outstanding.
func wasRestored(s snapshot) bool {
	return s.Restore.Request != nil && s.Process.Data.Restored.ID == s.Restore.Request.ID
}

// planRestore fetches the requested snapshot. It is a step of [decide] and of a quiesced start. A running process
// continues in the meantime, and a process that does not run waits for the snapshot.
func planRestore(s snapshot) (p reconciler.Plan) {
	r := s.Restore.Request
	switch state := s.Restore; {
	case state.Problem != "":
		p.WaitFor(state.Reason, "%s", state.Problem).For(kind, s.Plane.Name).UntilUserActs()
		return p
	case r == nil || hasStagedRestore(s) || wasRestored(s):
		return p
	case state.Running:
		p.WaitFor("FetchingSnapshot", "Fetching snapshot %s", r.Snapshot).For(kind, s.Plane.Name).ToChange("condition Restored")
	case state.Err != "" && s.Now.Sub(state.Ended) < fetchAgain:
		p.WaitFor("SnapshotNotFetched", "%s, retrying in up to 1m", strings.TrimSuffix(state.Err, ", retrying")).For(kind, s.Plane.Name).ForTime()
		p.RecheckIn(state.Ended.Add(fetchAgain).Sub(s.Now))
	case state.Busy:
		p.WaitFor("WaitingForOtherSnapshot", "Waiting for another snapshot or restore to end before snapshot %s is fetched", r.Snapshot).For(kind, s.Plane.Name).ForTime()
		p.RecheckIn(busyAgain)
	default:
		p.Do(stageRestore{Snapshot: r.Snapshot})
		p.RecheckIn(busyAgain) // another job may have started in the meantime
	}
	if !s.Process.Running {
		p.Enter(stageAdmission, "")
	}
	return p
}

// stageRestore starts a job that fetches the snapshot. act calls it for the action stageRestore.
func (c *controller) stageRestore(s snapshot, b backend.Backend) {
	order := restoreStaging{
		Request: *s.Restore.Request, Config: configOf(s), Folder: b.Folder(nameOf(s.Plane)),
		Cluster: snapshots.Cluster{Namespace: s.Plane.Namespace, Name: s.Cluster.Name, UID: string(s.Cluster.UID)},
	}
	c.jobs.Start(jobs.Key(kind, client.ObjectKeyFromObject(s.Plane)), order.Request.String(), func(ctx context.Context) error { return c.stager.Stage(ctx, order) })
}

// restored returns the condition Restored, or Absent if nothing was ever restored or requested. [report] calls it.
func (j conditionInput) restored() condition.Result {
	r, done := j.Restore.Request, j.Process.Data.Restored
	switch {
	case j.Restore.Problem != "":
		return condition.False(j.Restore.Reason, j.Restore.Problem)
	case r != nil && done.ID != r.ID && j.Restore.Err != "" && !j.Restore.Running && !hasStagedRestore(j.snapshot):
		return condition.False("SnapshotNotFetched", j.Restore.Err)
	case r != nil && done.ID != r.ID && hasStagedRestore(j.snapshot) && j.Process.LastExit != "" && !j.Process.Running:
		return condition.False("RestoreFailed", "The process that restores snapshot "+r.Snapshot+" ended ("+j.Process.LastExit+"); condition ProcessRunning has its last log lines. Remove annotation "+hostedv1.RestoreAnnotation+" to continue with the previous data")
	case r != nil && done.ID != r.ID:
		return condition.False("Restoring", "Restoring snapshot "+r.Snapshot)
	case r != nil && !j.Process.Ready:
		return condition.False("Restoring", "Waiting for the API server to be ready with snapshot "+r.Snapshot)
	case done.ID != "":
		return condition.TrueBecause("Restored", "The data is from snapshot "+done.Snapshot+" (restore "+done.ID+"); the previous data is in the directory of the control plane, in etcd-before-"+done.ID)
	}
	return condition.Absent()
}
