package backend

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// archiveExtension is the extension of complete archives, and partialPrefix begins the names of those that are being written.
	archiveExtension = ".tar"
	partialPrefix    = ".tar."
	// maxPartialAge is the time without a write after which an archive is deleted, because the process that wrote it was killed.
	maxPartialAge = 24 * time.Hour
)

// ImageArchives stores the archives of container images that `slipway image load` loads into the nodes of a cluster,
// for its future nodes. The archives of all clusters are below one directory of the data directory.
type ImageArchives struct{ Dir string }

// folder returns the directory of a cluster, and false if the name is invalid. Names come from labels, which other
// users can write. `slipway move` moves the directory of a Cluster, so it computes the same path.
func (a ImageArchives) folder(cluster types.NamespacedName) (string, bool) {
	for _, name := range []string{cluster.Namespace, cluster.Name} {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return "", false
		}
	}
	return filepath.Join(a.Dir, cluster.Namespace, cluster.Name), true
}

// Store stores an archive for future nodes of a cluster and replaces an archive of the same name. It returns the file,
// which is written atomically. `slipway image load` calls it.
func (a ImageArchives) Store(cluster types.NamespacedName, name string, archive io.Reader) (file string, err error) {
	folder, ok := a.folder(cluster)
	if !ok {
		return "", fmt.Errorf("there is no Cluster %s", cluster)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	if err := deletePartial(folder, time.Now().Add(-maxPartialAge)); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(folder, partialPrefix+"*")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(name))
	file = filepath.Join(folder, hex.EncodeToString(sum[:8])+archiveExtension)
	_, err = io.Copy(f, archive)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return file, nil
}

// deletePartial deletes the incomplete archives that were last written before a time.
func deletePartial(folder string, before time.Time) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), partialPrefix) || !info.ModTime().Before(before) {
			continue // one without information was completed just now
		}
		if err := os.Remove(filepath.Join(folder, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ForCluster returns the archive files of a cluster from the oldest to the newest, because the last of two images with
// the same name takes effect. [WrapPreloading] loads these files into a new machine.
func (a ImageArchives) ForCluster(cluster types.NamespacedName) ([]string, error) {
	folder, ok := a.folder(cluster)
	if !ok {
		return nil, nil
	}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), archiveExtension) {
			found = append(found, info)
		}
	}
	slices.SortFunc(found, func(x, y fs.FileInfo) int {
		return cmp.Or(x.ModTime().Compare(y.ModTime()), strings.Compare(x.Name(), y.Name()))
	})
	var files []string
	for _, info := range found {
		files = append(files, filepath.Join(folder, info.Name()))
	}
	return files, nil
}

// Delete removes the archives of a cluster. It returns no error if there are none.
func (a ImageArchives) Delete(cluster types.NamespacedName) error {
	folder, ok := a.folder(cluster)
	if !ok {
		return nil
	}
	return os.RemoveAll(folder)
}
