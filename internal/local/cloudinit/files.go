package cloudinit

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// defaultMode is cloud-init's mode for files without permissions.
const defaultMode fs.FileMode = 0o644

// file is a file to write. Missing parent directories are created with mode 0755 and owner root. The section
// write_files has them; the sections users and ntp add some of their own.
type file struct {
	// Path is absolute and clean.
	Path string
	// Content is decoded.
	Content []byte
	// Owner and Group are names or numbers. They default to "root".
	Owner, Group string
	// Mode holds the permission bits including setuid, setgid and sticky as in chmod, at most 0o7777.
	Mode fs.FileMode
	// Append adds to an existing file instead of replacing it.
	Append bool

	deferred bool
}

// fileItem is an item of write_files.
type fileItem struct {
	Path        string    `yaml:"path"`
	Content     yaml.Node `yaml:"content"`
	Owner       string    `yaml:"owner"`
	Permissions yaml.Node `yaml:"permissions"`
	Encoding    string    `yaml:"encoding"`
	Append      bool      `yaml:"append"`
	Defer       bool      `yaml:"defer"`
	Source      yaml.Node `yaml:"source"`
}

// readFiles returns the steps of the section write_files and the names of its unsupported items. Fields, defaults and
// encodings follow cloud-init. assemble calls it for [parse].
func readFiles(s section) ([]step, []string, error) {
	items, err := listOf(s.name, s.value)
	if err != nil {
		return nil, nil, err
	}
	var steps []step
	var skipped []string
	for i, node := range items {
		var item fileItem
		if err := node.Decode(&item); err != nil {
			return nil, nil, invalidFault("write_files[%d] cannot be read", i).From(err)
		}
		if item.Source.Kind != 0 {
			skipped = append(skipped, "write_files.source")
			continue
		}
		file, err := item.file()
		if err != nil {
			return nil, nil, invalidFault("write_files[%d] (%s) cannot be used", i, item.Path).From(err)
		}
		steps = append(steps, step{Section: s.name, File: file})
	}
	return steps, skipped, nil
}

func (item fileItem) file() (*file, error) {
	if !path.IsAbs(item.Path) {
		return nil, fmt.Errorf("path %q is not absolute", item.Path)
	}
	mode, err := fileMode(&item.Permissions)
	if err != nil {
		return nil, err
	}
	content, err := decode(&item.Content, item.Encoding)
	if err != nil {
		return nil, err
	}
	owner, group, _ := strings.Cut(item.Owner, ":")
	return &file{
		Path: path.Clean(item.Path), Content: content, Owner: cmp.Or(owner, "root"), Group: cmp.Or(group, "root"),
		Mode: mode, Append: item.Append, deferred: item.Defer,
	}, nil
}

// fileMode parses permissions. A quoted value is an octal number. An unquoted value follows YAML 1.1: octal with a
// leading zero and decimal without.
func fileMode(n *yaml.Node) (fs.FileMode, error) {
	if n.Kind == 0 || isNull(n) {
		return defaultMode, nil
	}
	value := strings.TrimPrefix(strings.TrimPrefix(n.Value, "0o"), "0O")
	base := 8
	if n.Tag == "!!int" && n.Value == value && !strings.HasPrefix(value, "0") {
		base = 10
	}
	mode, err := strconv.ParseUint(value, base, 32)
	if err != nil || mode > 0o7777 || n.Kind != yaml.ScalarNode {
		return 0, fmt.Errorf(`permissions %q are not an octal number such as "0640"`, n.Value)
	}
	return fs.FileMode(mode), nil
}

// decode decodes the content of a file. Encodings apply from right to left: gzip+base64 is base64 around gzip.
func decode(n *yaml.Node, encoding string) ([]byte, error) {
	if n.Kind == 0 || isNull(n) {
		return []byte{}, nil
	}
	if n.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("content is not text")
	}
	content := []byte(n.Value)
	if n.Tag == "!!binary" {
		var err error
		if content, err = decodeBase64(content); err != nil {
			return nil, err
		}
	}
	unzip := false
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "text/plain":
		return content, nil
	case "gz", "gzip":
		return gunzip(content)
	case "gz+base64", "gzip+base64", "gz+b64", "gzip+b64":
		unzip = true
	case "b64", "base64":
	default:
		return nil, fmt.Errorf("encoding %q is not one of base64, gzip, gzip+base64", encoding)
	}
	content, err := decodeBase64(content)
	if err != nil || !unzip {
		return content, err
	}
	return gunzip(content)
}

func decodeBase64(content []byte) ([]byte, error) {
	text := strings.Join(strings.Fields(string(content)), "")
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("decoding base64 content: %w", err)
	}
	return out, nil
}
