package hosted

import (
	"context"
	"errors"
	"os"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// restoreStager fetches snapshots. A restore calls Stage in a background job, because it takes minutes.
type restoreStager struct{ snapshots.Retriever }

// restoreStaging is a snapshot to fetch. The controller fills it in from the request when it starts the job.
type restoreStaging struct {
	Request RestoreRequest
	Cluster snapshots.Cluster
	// Config is the configuration of the control plane.
	Config processconfig.Config
	Folder processconfig.Folder
}

// Stage fetches the snapshot into the directory of its control plane, together with the restore request for
// the next process. It rejects an unsuitable snapshot before fetching it. The job that [controller.stageRestore] starts
// calls it. The restore request is written last, so that no process restores an incomplete snapshot.
func (s restoreStager) Stage(ctx context.Context, o restoreStaging) error {
	m, err := s.Find(ctx, o.Cluster, snapshots.RetrievalRequest{
		Policy: o.Request.Policy, Snapshot: o.Request.Snapshot, IdentitySecret: o.Request.IdentitySecret, OtherCluster: o.Request.OtherCluster,
	})
	if err != nil {
		return err
	}
	if err := checkSnapshot(m.Manifest, o); err != nil {
		return err
	}
	if err := emptyFolder(o.Folder); err != nil {
		return err
	}
	if err := m.Fetch(ctx, o.Folder.RestoreSnapshot()); err != nil {
		return err
	}
	return o.Folder.WriteRestoreRequest(processconfig.Restore{
		ID: o.Request.ID, Snapshot: m.Name, Version: m.Kubernetes, EncryptionKeys: m.EncryptionKeys, Revision: m.Revision,
	})
}

// emptyFolder creates a new directory for the snapshot. It never uses an existing one, because the process of
// the control plane can run as another user, which must not be able to redirect the writes with a symbolic
// link.
func emptyFolder(f processconfig.Folder) error {
	return errors.Join(os.RemoveAll(f.Restoring()), os.MkdirAll(string(f), 0o700), os.Mkdir(f.Restoring(), 0o700))
}

// checkSnapshot rejects a snapshot that the control plane could not run with.
func checkSnapshot(m snapshots.Manifest, o restoreStaging) error {
	data := processconfig.Data{Exists: true, Version: m.Kubernetes, EncryptionKeys: m.EncryptionKeys}
	if err := data.KeysProblem(o.Config.EncryptionKeys, ""); err != nil {
		return err
	}
	return data.Problem(o.Config.Version)
}
