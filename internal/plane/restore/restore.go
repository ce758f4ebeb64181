// Package restore puts a snapshot of etcd in the place of the data of a control plane.
//
// Does: makes a data folder of a snapshot ([MakeData]). Makes one of the snapshot that a restore has put into the folder of a control plane, puts the old one aside,
// and records that. It runs in the process of the control plane, before its etcd: what is in a snapshot is the tenant's, and a
// damaged database can end the process that opens it. Killed at any step, the next call continues. Revisions continue far
// beyond those of the snapshot, and all of its own count as compacted: who watches lists again, and does not take old objects
// for new ones.
//
// Owns: FOLDER/restore, FOLDER/restored.json and FOLDER/etcd-before-ID, of which the last one is kept.
//
// Never: fetches a snapshot (package providers/hosted does), or touches the data as long as the snapshot may not be usable.
//
// Read first: [Apply].
package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/etcd"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// revisionBump is added to revisions: more than a cluster writes between a snapshot and its restore.
const revisionBump = 1_000_000_000

// kept is how the names of folders begin that have the data from before.
const kept = "etcd-before-"

// Apply restores what the configuration asks for, unless that was done. The caller holds the lock of the folder.
func Apply(folder workload.Folder, cfg workload.Config, now time.Time) error {
	if cfg.Restore == "" {
		return nil
	}
	done, err := folder.ReadRestored()
	if err != nil {
		return err
	}
	if done.ID == cfg.Restore {
		return os.RemoveAll(folder.Restoring())
	}
	request, err := folder.ReadRestoreRequest()
	if err != nil {
		return err
	}
	if request.ID != cfg.Restore {
		return fault.New(fault.Invalid, "RestoreMissing", "the snapshot of restore %s is not on this host", cfg.Restore)
	}
	data := workload.Data{Exists: true, Version: request.Version, EncryptionKeys: request.EncryptionKeys}
	if err := errors.Join(data.Problem(cfg.Version), data.KeysProblem(cfg.EncryptionKeys, "")); err != nil {
		return err
	}
	if err := prepare(folder); err != nil {
		return fmt.Errorf("restoring snapshot %s: %w", request.Snapshot, err)
	}
	if err := swap(folder, request.ID); err != nil {
		return fmt.Errorf("restoring snapshot %s: %w", request.Snapshot, err)
	}
	return finish(folder, request, now)
}

func restoring(f workload.Folder) string { return filepath.Join(string(f), "etcd-restoring") }

// ready is there when the new data folder is complete.
func ready(f workload.Folder) string { return filepath.Join(f.Restoring(), "ready") }

// prepare makes the new data folder.
func prepare(f workload.Folder) error {
	if exists(ready(f)) {
		return nil
	}
	if err := os.RemoveAll(restoring(f)); err != nil {
		return err
	}
	if err := MakeData(f.RestoreSnapshot(), restoring(f), etcd.Member()); err != nil {
		return err
	}
	if err := os.WriteFile(ready(f), nil, 0o600); err != nil {
		return err
	}
	return syncAll(f.Restoring())
}

// MakeData makes a data folder of a snapshot, for the only member of a new cluster. Revisions continue beyond those of the snapshot.
func MakeData(file, folder string, member etcd.Identity) error {
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, OutputDataDir: folder, Name: member.Name, PeerURLs: []string{member.PeerURL},
		InitialCluster: member.Name + "=" + member.PeerURL, InitialClusterToken: member.Token,
		RevisionBump: revisionBump, MarkCompacted: true,
	})
	if err != nil {
		return fault.New(fault.Invalid, "SnapshotDamaged", "the snapshot cannot be restored: use another one; the data from before is unchanged").From(err)
	}
	return syncAll(folder)
}

// swap puts the new data folder in the place of the old one, which is put aside.
func swap(f workload.Folder, id string) error {
	if !exists(restoring(f)) { // it was done before
		return nil
	}
	before := filepath.Join(string(f), kept+id)
	if exists(f.Etcd()) && !exists(before) {
		if err := os.Rename(f.Etcd(), before); err != nil {
			return err
		}
	}
	if err := os.Rename(restoring(f), f.Etcd()); err != nil {
		return err
	}
	return syncOne(string(f))
}

// finish records the restore, and removes what it needed and the data from before earlier ones.
func finish(f workload.Folder, r workload.Restore, now time.Time) error {
	before, err := f.ReadData()
	if err != nil {
		return err
	}
	r.SpentMark = before.EncryptionMark
	if err := f.WriteRun(workload.Run{Version: r.Version, EncryptionKeys: r.EncryptionKeys, EncryptionMark: r.SpentMark}); err != nil {
		return err
	}
	r.At = now.UTC().Truncate(time.Second)
	if err := f.WriteRestored(r); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(string(f), kept+"*"))
	if err != nil {
		return err
	}
	for _, dir := range old {
		if filepath.Base(dir) != kept+r.ID {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(f.Restoring())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// syncAll makes a folder with all that is in it last.
func syncAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncOne(path)
	})
}

func syncOne(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return file.Sync()
}
