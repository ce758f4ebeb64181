package repository

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Memory is a [Repository] in memory with files by version and name. The built-in provider "local" has one (package
// template), and tests use it.
type Memory struct {
	Default    string
	Components string
	Files      map[string]map[string]string
}

// DefaultVersion implements Repository.
func (m Memory) DefaultVersion() string { return m.Default }

// ComponentsFile implements Repository.
func (m Memory) ComponentsFile() string { return m.Components }

// Versions implements Repository.
func (m Memory) Versions(context.Context) ([]string, error) {
	var out []string
	for version := range m.Files {
		out = append(out, version)
	}
	return out, nil
}

// File implements Repository.
func (m Memory) File(_ context.Context, version, name string) ([]byte, error) {
	data, ok := m.Files[version][name]
	if !ok {
		return nil, fileNotFound(slices.Collect(maps.Keys(m.Files[version])), version, name, notFound("the repository", version, name))
	}
	return []byte(data), nil
}

// fileNotFound returns the fault for a file that does not exist in a version. It lists the files of the same kind, such
// as the templates of other flavors. If there are none, it returns other.
func fileNotFound(files []string, version, name string, other error) error {
	kind := "clusterclass-"
	if strings.HasPrefix(name, "cluster-template") {
		kind = "cluster-template"
	}
	var there []string
	for _, file := range files {
		if strings.HasPrefix(name, kind) && strings.HasPrefix(file, kind) {
			there = append(there, file)
		}
	}
	if len(there) == 0 {
		return other
	}
	slices.Sort(there)
	return fault.New(fault.Gone, reasonNotFound, "file %s does not exist in version %s; available files: %s", name, version, strings.Join(there, ", "))
}
