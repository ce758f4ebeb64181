package releases

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
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/gobuild"
	"github.com/slipwayhq/slipway/internal/plane/handover"
	"github.com/slipwayhq/slipway/internal/version"
)

// Reasons of the faults of this package.
const (
	// ReasonVersion says that something is not a Kubernetes version, or one that this slipway does not know.
	ReasonVersion = "KubernetesVersionUnknown"
	// ReasonAbsent says that the host does not have the release; the kind is Gone.
	ReasonAbsent = "KubernetesVersionAbsent"
	// ReasonInUse says that control planes run the release.
	ReasonInUse = "KubernetesVersionInUse"
	// ReasonBroken says that files are not those that were added or exported.
	ReasonBroken = "KubernetesReleaseBroken"
	// ReasonOther says that another slipway added the release.
	ReasonOther = "KubernetesReleaseOfAnotherSlipway"
	// ReasonPlatform says that the release is for another operating system or architecture.
	ReasonPlatform = "KubernetesReleaseOfAnotherPlatform"
	// ReasonDiskFull says that there is too little space.
	ReasonDiskFull = "DiskFull"
	// ReasonProxy says that the Go module proxy does not answer; the kind is Unreachable.
	ReasonProxy = "ModuleProxyUnreachable"
	// ReasonNoGo says that the Go toolchain is missing.
	ReasonNoGo = "GoMissing"
)

// Store is the releases of a host.
type Store struct {
	Dir string // created when the first release is added
	// Included is the version of this build, which needs no program.
	Included string
	// Slipway is the version of this slipway, Protocol the revision that it has in common with its programs.
	Slipway  string
	Protocol int
	Now      func() time.Time
	Progress io.Writer
}

// Local returns the releases in a folder of this host, for this build.
func Local(dir string) Store {
	return Store{
		Dir: dir, Included: buildinfo.Kubernetes(), Slipway: buildinfo.Version(), Protocol: handover.Protocol, Now: time.Now, Progress: io.Discard,
	}
}

// Release is a Kubernetes version that this host has.
type Release struct {
	Version  string    `json:"kubernetesVersion"`
	Included bool      `json:"included"` // in this build
	Size     int64     `json:"sizeBytes,omitempty"`
	Added    time.Time `json:"added,omitzero"`
	// Problem says why it cannot be run; empty: it can.
	Problem string `json:"problem,omitempty"`
}

// draftPrefix begins the name of what is not a release yet, or not any more. No version begins so.
const draftPrefix = ".draft-"

// List returns the releases, those that cannot be run included, the oldest version first.
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
	slices.SortFunc(all, func(a, b Release) int { return compare(a.Version, b.Version) })
	return all, nil
}

// compare orders versions; those that are none come first.
func compare(a, b string) int {
	x, errA := version.Parse(a)
	y, errB := version.Parse(b)
	if errA != nil || errB != nil {
		return strings.Compare(a, b)
	}
	return x.Compare(y)
}

// Versions returns the versions that can be run, the oldest first; where the folder cannot be read, that of this build. It
// reads small files only.
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

// read returns the manifest of an added release; an error says why it cannot be run. The program's content is not read.
func (s Store) read(v string) (Manifest, error) {
	dir := s.folder(v)
	m, err := readManifest(dir)
	if err != nil {
		return m, broken(v, err)
	}
	if err := s.problem(m); err != nil {
		return m, err
	}
	info, err := os.Stat(filepath.Join(dir, programFile))
	if err == nil && (info.Size() != m.Size || m.Kubernetes != v) {
		err = errors.New("the program is not the one that was added")
	}
	if err != nil {
		return m, broken(v, err)
	}
	return m, nil
}

func broken(v string, err error) error {
	return fault.New(fault.Invalid, ReasonBroken, "the files of Kubernetes %s are not those that were added (%v); remove it with `slipway versions remove %s`, and add it again", v, err, v).From(err)
}

func (s Store) folder(v string) string { return filepath.Join(s.Dir, v) }

// Program returns the path of the program of an added release, after it has compared its checksum.
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
		return "", broken(v, err)
	}
	return file, nil
}

// require returns a fault of kind Gone where the host does not have the release.
func (s Store) require(v string) error {
	if version.Valid(v) {
		if _, err := os.Stat(s.folder(v)); err == nil {
			return nil
		}
	}
	return fault.New(fault.Gone, ReasonAbsent, "this host does not have Kubernetes %s; it has %s", v, strings.Join(s.Versions(), ", "))
}

// Remove deletes an added release. users are the control planes that run it: it is not removed while there are any.
func (s Store) Remove(v string, users []string) error {
	if v == s.Included {
		return fault.New(fault.Invalid, ReasonInUse, "Kubernetes %s is included in this build of slipway and cannot be removed", v)
	}
	if err := s.require(v); err != nil {
		return err
	}
	if len(users) > 0 {
		return fault.New(fault.Invalid, ReasonInUse, "Kubernetes %s is in use by %s; upgrade or delete these hosted control planes first", v, strings.Join(users, ", "))
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.discard(s.folder(v))
}

// discard makes a folder disappear at once, and deletes it.
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

// lock waits until no other process changes the releases, and removes what one that was killed has left.
func (s Store) lock() (func(), error) {
	unlock, err := gobuild.Store{Dir: s.Dir, Progress: s.Progress}.Lock()
	if err != nil {
		return nil, err
	}
	drafts, err := filepath.Glob(filepath.Join(s.Dir, draftPrefix+"*"))
	for _, d := range drafts {
		err = errors.Join(err, os.RemoveAll(d))
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	return unlock, nil
}

// diskFull returns a fault that says so where an error means that there is no space left.
func (s Store) diskFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.New(fault.Invalid, ReasonDiskFull, "there is no space left on the disk of %s; free some, and run the command again: it continues", s.Dir).From(err)
	}
	return err
}
