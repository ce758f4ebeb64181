package bundle

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"
)

// maxLinks limits the symbolic links that are followed for one path.
const maxLinks = 40

// userland is a file system in a tar archive, from which debianFiles copies programs into a bundle. Package nodeimage
// installs Debian packages into it. Files are read on demand.
type userland struct {
	archive *os.File
	entries map[string]userlandEntry
}

// userlandEntry is a file or link.
type userlandEntry struct {
	offset, size int64
	link         string
	isFile       bool
}

// openUserland indexes the archive. [Store.Build] calls it.
func openUserland(file string) (*userland, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	u := &userland{archive: f, entries: map[string]userlandEntry{}}
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return u, nil
		}
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		name := path.Clean("/" + h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := f.Seek(0, io.SeekCurrent) // the reader has read exactly the header
			if err != nil {
				_ = f.Close()
				return nil, err
			}
			u.entries[name] = userlandEntry{offset: at, size: h.Size, isFile: true}
		case tar.TypeSymlink:
			u.entries[name] = userlandEntry{link: h.Linkname}
		case tar.TypeLink:
			u.entries[name] = u.entries[path.Clean("/"+h.Linkname)]
		}
	}
}

// close closes the archive. [Store.Build] calls it after it has copied the programs.
func (u *userland) close() { _ = u.archive.Close() }

// resolve follows the symbolic links in a path. The result need not exist.
func (u *userland) resolve(name string) (string, error) {
	rest := strings.Split(strings.Trim(path.Clean("/"+name), "/"), "/")
	at, links := "/", 0
	for len(rest) > 0 {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		e, ok := u.entries[next]
		if !ok || e.link == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s has too many symbolic links", name)
		}
		to := e.link
		if !path.IsAbs(to) {
			to = path.Join(at, to)
		}
		rest = append(strings.Split(strings.Trim(path.Clean(to), "/"), "/"), rest...)
		at = "/"
	}
	return at, nil
}

// find returns the content of a file, and false if there is none.
func (u *userland) find(name string) ([]byte, bool, error) {
	at, err := u.resolve(name)
	if err != nil {
		return nil, false, err
	}
	e, ok := u.entries[at]
	if !ok || !e.isFile {
		return nil, false, nil
	}
	data := make([]byte, e.size)
	_, err = u.archive.ReadAt(data, e.offset)
	return data, true, err
}

// read returns the content of a file. The collector (elf.go) copies programs and libraries with it.
func (u *userland) read(name string) ([]byte, error) {
	data, ok, err := u.find(name)
	if err == nil && !ok {
		return nil, fmt.Errorf("the Debian system has no %s", name)
	}
	return data, err
}

// list returns the names of the files in a directory, sorted. debianFiles finds the plugins of CNI and iptables with
// it.
func (u *userland) list(dir string) []string {
	at, err := u.resolve(dir)
	if err != nil {
		return nil
	}
	var out []string
	for name := range u.entries {
		if path.Dir(name) == at {
			out = append(out, path.Base(name))
		}
	}
	sort.Strings(out)
	return out
}
