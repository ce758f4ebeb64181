package repository

import (
	"context"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Memory is a repository in memory: files by version and name.
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
		if there := m.alike(version, name); len(there) > 0 {
			return nil, fault.New(fault.Gone, ReasonNotFound, "there is no file %s of version %s; there are: %s", name, version, strings.Join(there, ", "))
		}
		return nil, notFound("the repository", version, name)
	}
	return []byte(data), nil
}

// alike are the files of a version whose names begin as this one does, such as the templates of other flavors.
func (m Memory) alike(version, name string) []string {
	kind := "clusterclass-"
	if strings.HasPrefix(name, "cluster-template") {
		kind = "cluster-template"
	}
	var out []string
	for there := range m.Files[version] {
		if strings.HasPrefix(name, kind) && strings.HasPrefix(there, kind) {
			out = append(out, there)
		}
	}
	slices.Sort(out)
	return out
}
