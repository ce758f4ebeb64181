package repository

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Source reads the releases of a provider for the commands, from any kind of [Repository]. It applies overrides and
// reads every file only once.
type Source struct {
	provider   provider.Provider
	repository Repository
	overrides  string

	mu    sync.Mutex
	files map[[2]string][]byte
}

// New returns the source for a provider and a repository of any kind. [Open] calls it, and package template for the
// built-in repository.
func New(p provider.Provider, r Repository, o Options) *Source {
	return &Source{provider: p, repository: r, overrides: o.Overrides, files: map[[2]string][]byte{}}
}

// Provider returns the provider whose releases the source reads.
func (s *Source) Provider() provider.Provider { return s.provider }

// ComponentsFile returns the name of the components file. `slipway generate provider` prints it.
func (s *Source) ComponentsFile() string { return s.repository.ComponentsFile() }

// Version returns the named version if it is not empty, else the version in the URL, else the latest release with the
// contract. Package install calls it for the version of a provider reference.
func (s *Source) Version(ctx context.Context, named, contract string) (string, error) {
	version := cmp.Or(named, s.repository.DefaultVersion())
	if version == latestVersion {
		return s.Latest(ctx, contract)
	}
	if !isSegment(version) {
		return "", fault.New(fault.Invalid, ReasonNoVersion, "%q is not a valid version of provider %s; write it as v1.2.3", version, s.provider.Label())
	}
	return version, nil
}

// Versions returns the semantic versions of the repository, lowest first.
func (s *Source) Versions(ctx context.Context) ([]string, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range semantic(all) {
		out = append(out, r.tag)
	}
	slices.Reverse(out)
	return out, nil
}

// all returns the versions of the repository unmodified.
func (s *Source) all(ctx context.Context) ([]string, error) {
	all, err := s.repository.Versions(ctx)
	return all, s.hintLocalProvider(err)
}

// Components returns the components file of a version. [LoadComponents] calls it.
func (s *Source) Components(ctx context.Context, version string) ([]byte, error) {
	return s.File(ctx, version, s.repository.ComponentsFile())
}

// Template returns the cluster template of a flavor; empty for the default flavor. Package template calls it.
func (s *Source) Template(ctx context.Context, version, flavor string) ([]byte, error) {
	name := "cluster-template.yaml"
	if flavor != "" {
		name = "cluster-template-" + flavor + ".yaml"
	}
	return s.File(ctx, version, name)
}

// ClusterClass returns the file with the ClusterClass of the given name and its templates. Package template calls it.
func (s *Source) ClusterClass(ctx context.Context, version, name string) ([]byte, error) {
	return s.File(ctx, version, "clusterclass-"+name+".yaml")
}

// Metadata returns the contracts of the release series. An override of the file applies. Package install reads the
// contract of a version from it.
func (s *Source) Metadata(ctx context.Context, version string) (Metadata, error) {
	data, err := s.File(ctx, version, MetadataFile)
	if err != nil {
		return Metadata{}, err
	}
	return ParseMetadata(data, s.provider.Label()+" "+version)
}

// File returns a file of a version from the overrides folder or else from the repository.
func (s *Source) File(ctx context.Context, version, name string) ([]byte, error) {
	if !isSegment(version) || !isSegment(name) {
		return nil, fault.New(fault.Invalid, reasonNotFound, "provider %s: %q of version %q is not a valid file name; use names without slashes", s.provider.Label(), name, version)
	}
	if s.overrides != "" {
		data, err := readFile(filepath.Join(s.overrides, s.provider.Label(), version, name))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return s.repositoryFile(ctx, version, name)
}

// repositoryFile returns a file from the repository itself.
func (s *Source) repositoryFile(ctx context.Context, version, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{version, name}
	if data, ok := s.files[key]; ok {
		return data, nil
	}
	data, err := s.repository.File(ctx, version, name)
	if err != nil {
		return nil, s.explainMissing(ctx, version, err)
	}
	s.files[key] = data
	return data, nil
}

// shownVersions is the maximum number of versions in an error.
const shownVersions = 5

// explainMissing returns the fault for a file that could not be read. If the version does not exist, it lists the
// available versions.
func (s *Source) explainMissing(ctx context.Context, version string, err error) error {
	if fault.KindOf(err) != fault.Gone {
		return s.hintLocalProvider(err)
	}
	all, listing := s.Versions(ctx)
	if listing != nil || len(all) == 0 || slices.Contains(all, version) {
		return err
	}
	slices.Reverse(all)
	return fault.New(fault.Gone, reasonNotFound, "provider %s has no version %s; its newest versions are: %s", s.provider.Label(), version,
		strings.Join(all[:min(len(all), shownVersions)], ", ")).From(err)
}

// hintLocalProvider extends an Unreachable error of the docker provider with the hint that the built-in provider
// "local" needs no release.
func (s *Source) hintLocalProvider(err error) error {
	known := fault.As(err)
	if known == nil || known.Reason != reasonUnreachable || s.provider.Type != provider.Infrastructure || s.provider.Name != "docker" {
		return err
	}
	return fault.New(fault.Unreachable, reasonUnreachable, "%s. The provider \"local\" of \"slipway up\" also runs Machines in containers on this host and needs no release: use \"slipway create cluster\", or \"slipway generate cluster\" without --infrastructure", known.Message).From(err)
}
