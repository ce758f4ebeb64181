package repository

import "context"

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
		return nil, notFound("the repository", version, name)
	}
	return []byte(data), nil
}
