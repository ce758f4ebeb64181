package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Take reads the Cluster API objects of a management cluster, for `slipway backup`. It pauses and writes nothing.
func Take(ctx context.Context, c client.Client, what graph.Scope, now time.Time) (Archive, error) {
	var system corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return Archive{}, fmt.Errorf("reading Namespace %s: %w", metav1.NamespaceSystem, err)
	}
	providers, err := provider.ReadInventory(ctx, c)
	if err != nil {
		return Archive{}, err
	}
	objects, err := move.Snapshot(ctx, c, what)
	if err != nil {
		return Archive{}, err
	}
	if len(objects) == 0 {
		return Archive{}, fault.New(fault.Gone, "NothingToSave", "there are no objects of Cluster API, so that there is nothing to save: check --kubeconfig and --namespace")
	}
	a := Archive{Objects: objects, Info: Info{
		Format: format, CreatedAt: now.UTC().Truncate(time.Second), Version: buildinfo.Version(), Source: string(system.UID), Namespace: what.Namespace,
		Objects: len(objects), Providers: providers,
	}}
	for _, o := range objects {
		if graph.IDOf(o).IsCore(graph.Cluster) {
			a.Info.Clusters++
		}
		if isSecret(o) {
			a.Info.Secrets++
		}
	}
	return a, nil
}

// Saved describes a written archive. `slipway backup` prints it, also as JSON.
type Saved struct {
	File string `json:"file"`
	// SHA256 is the checksum of the file.
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Info
}

// Save writes the archive to a new file that only its owner can read. The file is renamed to its final name after it
// has been read back and verified. `slipway backup` calls it after [Take].
func (a Archive) Save(path string, to []age.Recipient) (Saved, error) {
	if err := CheckNew(path); err != nil {
		return Saved{}, err
	}
	partial := path + ".partial"
	saved, err := a.save(partial, to)
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		_ = os.Remove(partial) // remove an incomplete file
		return Saved{}, fileError("the backup cannot be written", err)
	}
	saved.File = path
	return saved, nil
}

// CheckNew returns an error if the file exists. `slipway backup` calls it before it reads the objects, so that a wrong
// name fails at once.
func CheckNew(path string) error {
	_, err := os.Lstat(path)
	if err == nil {
		return fault.New(fault.Invalid, reasonFile, "%s exists already: name another file", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fileError("the backup cannot be written", err)
	}
	return nil
}

func fileError(what string, err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	return fault.New(fault.Invalid, reasonFile, "%s: %v", what, err).From(err)
}

func (a Archive) save(path string, to []age.Recipient) (saved Saved, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return Saved{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := a.Write(f, to); err != nil {
		return Saved{}, err
	}
	if err := f.Sync(); err != nil {
		return Saved{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Saved{}, err
	}
	hash := sha256.New()
	whole := io.TeeReader(f, hash)
	if saved.Info, _, err = readVerified(whole); err != nil {
		return Saved{}, err
	}
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return Saved{}, err
	}
	if saved.Bytes, err = f.Seek(0, io.SeekEnd); err != nil {
		return Saved{}, err
	}
	saved.SHA256 = fmt.Sprintf("%x", hash.Sum(nil))
	return saved, nil
}

// Open reads the archive in a file. `slipway restore` calls it.
func Open(path string, identities []age.Identity) (a Archive, err error) {
	f, err := os.Open(path)
	if err != nil {
		return Archive{}, fileError("the backup cannot be read", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return readArchive(f, identities)
}

// Restore is called by `slipway restore`. It creates the objects in a management cluster, paused, and resumes them when
// all exist; objects that were paused at the time of the backup remain paused. Existing objects are left unchanged.
// After an interruption, the same call completes the restore.
func (a Archive) Restore(ctx context.Context, c client.Client, o move.RestoreOptions) (move.DirectoryResult, error) {
	installed, err := provider.ReadInventory(ctx, c)
	if err != nil {
		return move.DirectoryResult{}, err
	}
	if problems := graph.MissingProviders(providers(a.Info.Providers), providers(installed)); len(problems) > 0 {
		return move.DirectoryResult{}, fault.New(fault.Invalid, reasonCannotRestore, "nothing was created, because of what follows:\n  - %s", strings.Join(problems, "\n  - "))
	}
	o.KeepPaused = true
	return move.Restore(ctx, c, a.Objects, o)
}

func providers(records []provider.Installed) []graph.Provider {
	var out []graph.Provider
	for _, r := range records {
		out = append(out, graph.Provider{Name: r.Name, Type: string(r.Type), Version: r.Version, Namespace: r.Namespace})
	}
	return out
}

// OnHost returns the objects with resources on the host of their management cluster, which an archive does not contain.
// `slipway backup` and `slipway restore` warn about them.
func (a Archive) OnHost() []string {
	var out []string
	for _, o := range a.Objects {
		id := graph.IDOf(o)
		if move.OnHost(graph.Item{Node: &graph.Node{Object: graph.Object{Unstructured: o}, ID: id}}) {
			out = append(out, id.String())
		}
	}
	return out
}
