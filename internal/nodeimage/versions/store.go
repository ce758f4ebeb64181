package versions

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage"
	"github.com/slipwayhq/slipway/internal/version"
)

// Reasons of the faults of this package. Their values must not change.
const (
	// reasonVersion: not a Kubernetes version, or a version that this build of Slipway does not support.
	reasonVersion = "KubernetesVersionUnknown"
	// reasonAbsent: the host does not have the release; the kind is Gone.
	reasonAbsent = "KubernetesVersionAbsent"
	// reasonInUse: control planes run the release.
	reasonInUse = "KubernetesVersionInUse"
	// reasonBroken: the files differ from those that were added or exported.
	reasonBroken = "KubernetesReleaseBroken"
	// reasonOther: the release was added by an incompatible version of Slipway.
	reasonOther = "KubernetesReleaseOfAnotherSlipway"
	// reasonPlatform: the release is for another operating system or architecture.
	reasonPlatform = "KubernetesReleaseOfAnotherPlatform"
	// reasonDiskFull: there is too little disk space.
	reasonDiskFull = "DiskFull"
	// reasonProxy: the Go module proxy does not respond; the kind is Unreachable.
	reasonProxy = "ModuleProxyUnreachable"
	// reasonNoGo: the Go toolchain is missing.
	reasonNoGo = "GoMissing"
)

// Store contains the releases of a host. The commands of `slipway versions` change it; the manager and the processes of
// hosted control planes read it.
type Store struct {
	Dir string // created when the first release is added
	// Included is the version of this build, which needs no separate program.
	Included string
	// Slipway is the version of this build, Protocol the revision of its interface to the programs of releases.
	Slipway  string
	Protocol int
	Now      func() time.Time
	Progress io.Writer
}

// LocalStore returns the Store in a directory of this host, for this build. The manager, commands and the process of a
// hosted control plane call it.
func LocalStore(dir string) Store {
	return Store{
		Dir: dir, Included: buildinfo.Kubernetes(), Slipway: buildinfo.Version(), Protocol: childproc.Protocol, Now: time.Now, Progress: io.Discard,
	}
}

// Release is a Kubernetes version on this host, as `slipway versions list` prints it.
type Release struct {
	Version  string    `json:"kubernetesVersion"`
	Included bool      `json:"included"` // in this build
	Size     int64     `json:"sizeBytes,omitempty"`
	Added    time.Time `json:"added,omitzero"`
	// Problem is the reason why it cannot be run. Empty: it can.
	Problem string `json:"problem,omitempty"`
}

// draftPrefix is the prefix of directories with incomplete or deleted releases. No version starts with it.
const draftPrefix = ".draft-"

// List returns the releases, including those that cannot be run, oldest version first. `slipway versions list` prints
// it.
func (s Store) List() ([]Release, error) {
	all := []Release{{Version: s.Included, Included: true}}
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list Kubernetes releases: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !version.Valid(e.Name()) || e.Name() == s.Included {
			continue
		}
		r := Release{Version: e.Name()}
		m, err := s.read(e.Name())
		if err != nil {
			r.Problem = fault.UserMessage(err)
		}
		r.Size, r.Added = m.Size, m.Added
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Release) int { return compareVersions(a.Version, b.Version) })
	return all, nil
}

// compareVersions compares versions; invalid versions are compared as strings.
func compareVersions(a, b string) int {
	x, errA := version.Parse(a)
	y, errB := version.Parse(b)
	if errA != nil || errB != nil {
		return strings.Compare(a, b)
	}
	return x.Compare(y)
}

// Versions returns the versions that can be run, oldest first. If the directory cannot be read, it returns the included
// version. It reads only small files. Commands, admission and the HostedControlPlane controller check a requested
// version with it.
func (s Store) Versions() []string {
	all, err := s.List()
	if err != nil {
		return []string{s.Included}
	}
	var out []string
	for _, r := range all {
		if r.Problem == "" {
			out = append(out, r.Version)
		}
	}
	return out
}

// read returns the manifest of an added release, or the reason why it cannot be run. It does not read the content of
// the program.
func (s Store) read(v string) (manifest, error) {
	dir := s.folder(v)
	m, err := readManifest(dir)
	if err != nil {
		return m, brokenFault(v, err)
	}
	if err := s.checkRunnable(m); err != nil {
		return m, err
	}
	info, err := os.Stat(filepath.Join(dir, programFile))
	if err == nil && (info.Size() != m.Size || m.Kubernetes != v) {
		err = errors.New("the program has changed since it was added")
	}
	if err != nil {
		return m, brokenFault(v, err)
	}
	return m, nil
}

func brokenFault(v string, err error) error {
	return fault.New(fault.Invalid, reasonBroken, "the files of Kubernetes %s have changed since they were added (%v); remove it with `slipway versions remove %s`, and add it again", v, err, v).From(err)
}

func (s Store) folder(v string) string { return filepath.Join(s.Dir, v) }

// Program returns the path of an added release's program after verifying its checksum. The process of a hosted control
// plane calls it before it runs the program.
func (s Store) Program(v string) (string, error) {
	if err := s.require(v); err != nil {
		return "", err
	}
	m, err := s.read(v)
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.folder(v), programFile)
	sum, err := checksum(file)
	if err == nil && sum != m.Program {
		err = errors.New("the checksum of the program differs")
	}
	if err != nil {
		return "", brokenFault(v, err)
	}
	return file, nil
}

// require returns a fault of kind Gone if the host does not have the release.
func (s Store) require(v string) error {
	if version.Valid(v) {
		if _, err := os.Stat(s.folder(v)); err == nil {
			return nil
		}
	}
	return fault.New(fault.Gone, reasonAbsent, "this host does not have Kubernetes %s; it has %s", v, strings.Join(s.Versions(), ", "))
}

// Remove deletes an added release. users are the control planes that run it; it is not removed if there are any.
// `slipway versions remove` calls it.
func (s Store) Remove(v string, users []string) error {
	if v == s.Included {
		return fault.New(fault.Invalid, reasonInUse, "Kubernetes %s is included in this build of slipway and cannot be removed", v)
	}
	if err := s.require(v); err != nil {
		return err
	}
	if len(users) > 0 {
		return fault.New(fault.Invalid, reasonInUse, "Kubernetes %s is in use by %s; upgrade or delete these hosted control planes first", v, strings.Join(users, ", "))
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.discard(s.folder(v))
}

// discard renames a directory, so that it disappears atomically, and deletes it.
func (s Store) discard(dir string) error {
	gone, err := os.MkdirTemp(s.Dir, draftPrefix)
	if err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(gone, "removed")); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// lock waits until no other process changes the releases, and removes the leftovers of processes that were killed.
func (s Store) lock() (func(), error) {
	unlock, err := nodeimage.BuildCache{Dir: s.Dir, Progress: s.Progress}.Lock()
	if err != nil {
		return nil, err
	}
	drafts, err := filepath.Glob(filepath.Join(s.Dir, draftPrefix+"*"))
	for _, d := range drafts {
		err = errors.Join(err, os.RemoveAll(d))
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("remove the files of an earlier run: %w", err)
	}
	return unlock, nil
}

// diskFull returns a fault with advice if the error is caused by a full disk, else err.
func (s Store) diskFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.New(fault.Invalid, reasonDiskFull, "there is no space left on the disk of %s; free some, and run the command again: it continues", s.Dir).From(err)
	}
	return err
}
