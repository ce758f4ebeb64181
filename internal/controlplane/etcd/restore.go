package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

// revisionBump is added to revisions. It is larger than the number of writes between a snapshot and its
// restore.
const revisionBump = 1_000_000_000

// previousDataPrefix is the name prefix of directories with previous data.
const previousDataPrefix = "etcd-before-"

// ApplyRestore restores the snapshot that the configuration of a hosted control plane requests, unless this was done
// already. Package controlplane calls it in the process of the control plane, before etcd starts. The caller must hold
// the lock of the directory.
func ApplyRestore(folder processconfig.Folder, cfg processconfig.Config, now time.Time) error {
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
	data := processconfig.Data{Exists: true, Version: request.Version, EncryptionKeys: request.EncryptionKeys}
	if err := errors.Join(data.Problem(cfg.Version), data.KeysProblem(cfg.EncryptionKeys, "")); err != nil {
		return err
	}
	if err := prepare(folder); err != nil {
		return fmt.Errorf("restoring snapshot %s: %w", request.Snapshot, err)
	}
	if err := swapData(folder, request.ID); err != nil {
		return fmt.Errorf("restoring snapshot %s: %w", request.Snapshot, err)
	}
	return finish(folder, request, now)
}

func restoring(f processconfig.Folder) string { return filepath.Join(string(f), "etcd-restoring") }

// readyFile returns the path of a file that exists when the new data directory is complete.
func readyFile(f processconfig.Folder) string { return filepath.Join(f.Restoring(), "ready") }

// prepare creates the new data directory.
func prepare(f processconfig.Folder) error {
	if exists(readyFile(f)) {
		return nil
	}
	if err := os.RemoveAll(restoring(f)); err != nil {
		return err
	}
	if err := CreateDataDir(f.RestoreSnapshot(), restoring(f), onlyMember()); err != nil {
		return err
	}
	if err := os.WriteFile(readyFile(f), nil, 0o600); err != nil {
		return err
	}
	return syncAll(f.Restoring())
}

// CreateDataDir creates a data directory from a snapshot, for the only member of a new cluster. The hidden command
// etcd-data also calls it, on the node of a control plane Machine. Revisions continue beyond the revisions in the
// snapshot.
func CreateDataDir(file, folder string, member Identity) error {
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

// swapData replaces the data directory with the new one, and moves the previous one aside.
func swapData(f processconfig.Folder, id string) error {
	if !exists(restoring(f)) { // it was done before
		return nil
	}
	before := filepath.Join(string(f), previousDataPrefix+id)
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

// finish records the restore, and deletes its files and the previous data of earlier restores.
func finish(f processconfig.Folder, r processconfig.Restore, now time.Time) error {
	before, err := f.ReadData()
	if err != nil {
		return err
	}
	r.SpentMark = before.EncryptionMark
	if err := f.WriteRun(processconfig.Run{Version: r.Version, EncryptionKeys: r.EncryptionKeys, EncryptionMark: r.SpentMark}); err != nil {
		return err
	}
	r.At = now.UTC().Truncate(time.Second)
	if err := f.WriteRestored(r); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(string(f), previousDataPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range old {
		if filepath.Base(dir) != previousDataPrefix+r.ID {
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

// syncAll syncs a directory with all content to disk.
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
