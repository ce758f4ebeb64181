package bundle

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"slices"
)

// Paths on hosts. Both are short enough to replace the paths that Debian's programs and their loader contain. Hosts
// link /var/lib/slipway/lib to the libraries of the bundle in use (ssh/remote/scripts/node-prepare.sh), so the paths
// must not change.
const (
	hostLibraries = "/var/lib/slipway/lib/"
	hostLoader    = hostLibraries + loaderName
	loaderName    = "ld.so"
	// hostCache replaces /etc/ld.so.cache in the loader, so that it never finds libraries of the host there. The file does
	// not exist.
	hostCache   = "/etc/slipway/ldc"
	loaderCache = "/etc/ld.so.cache"
)

// program is what an ELF file needs to run.
type program struct {
	// loader is the path of the program loader; empty: static, or a library.
	loader string
	// libraries are the names of the required libraries.
	libraries []string
}

// inspect reads an ELF file. A file of another format needs nothing.
func inspect(data []byte) (p program, isELF bool, err error) {
	if !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		return p, false, nil
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return p, true, err
	}
	for _, segment := range f.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(text, 0); err != nil {
			return p, true, err
		}
		p.loader = string(bytes.TrimRight(text, "\x00"))
	}
	p.libraries, err = f.ImportedLibraries()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return p, true, err
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		if paths, err := f.DynString(tag); err == nil && len(paths) > 0 {
			return p, true, fmt.Errorf("the program looks for libraries in %s, which is not supported", paths[0])
		}
	}
	return p, true, nil
}

// withHostLoader returns a program that is started by the loader of the bundle.
func withHostLoader(data []byte, loader string) ([]byte, error) {
	return replaceText(data, []byte(loader+"\x00"), hostLoader, 1)
}

// loaderForHost returns a loader that finds libraries in the bundle only. libraries is the directory of Debian's
// libraries, such as "/lib/x86_64-linux-gnu/", which the loader searches first.
func loaderForHost(data []byte, libraries string) ([]byte, error) {
	data, err := replaceText(data, []byte("\x00"+loaderCache+"\x00"), "\x00"+hostCache, 1)
	if err != nil {
		return nil, err
	}
	// The directories follow each other; the length of each is stored elsewhere and must not change.
	old := []byte(libraries + "\x00/usr" + libraries + "\x00")
	if bytes.Count(data, old) == 0 {
		return nil, fmt.Errorf("the program loader does not search %s first", libraries)
	}
	padded := []byte(hostLibraries)
	if len(padded) > len(libraries) {
		return nil, fmt.Errorf("%s is too short to be replaced", libraries)
	}
	for len(padded) < len(libraries) {
		padded = append(padded, '/')
	}
	return bytes.ReplaceAll(data, old, append(padded, old[len(libraries):]...)), nil
}

// replaceText replaces a text that must occur exactly count times with one that is not longer, padded with zero bytes.
func replaceText(data, old []byte, with string, count int) ([]byte, error) {
	if found := bytes.Count(data, old); found != count {
		return nil, fmt.Errorf("%q occurs %d times instead of %d", bytes.Trim(old, "\x00"), found, count)
	}
	if len(with) >= len(old) {
		return nil, fmt.Errorf("%q is too short to be replaced", bytes.Trim(old, "\x00"))
	}
	padded := make([]byte, len(old))
	copy(padded, with)
	return bytes.ReplaceAll(data, old, padded), nil
}

// collector collects programs of a userland with their libraries, as files of a bundle. debianFiles collects the Debian
// programs of a bundle with it.
type collector struct {
	from *userland
	// files by path in the bundle.
	files map[string][]byte
	// loader is the path of the loader of the programs so far.
	loader string
}

// add adds a program or library under a path of the bundle.
func (c *collector) add(to string, data []byte) error {
	p, isELF, err := inspect(data)
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	if isELF && p.loader != "" {
		if err := c.addLoader(p.loader); err != nil {
			return fmt.Errorf("%s: %w", to, err)
		}
		if data, err = withHostLoader(data, p.loader); err != nil {
			return fmt.Errorf("%s: %w", to, err)
		}
	}
	c.files[to] = data
	for _, name := range p.libraries {
		if err := c.addLibrary(name); err != nil {
			return fmt.Errorf("%s: %w", to, err)
		}
	}
	return nil
}

// addLoader adds the program loader.
func (c *collector) addLoader(loader string) error {
	if c.loader == loader {
		return nil
	}
	if c.loader != "" {
		return fmt.Errorf("the program has the loader %s, others have %s", loader, c.loader)
	}
	at, err := c.from.resolve(loader)
	if err != nil {
		return err
	}
	data, err := c.from.read(at)
	if err != nil {
		return err
	}
	libraries := path.Dir(at) + "/"
	if len(libraries) > 4 && libraries[:5] == "/usr/" { // the loader contains the path before /lib became a link
		libraries = libraries[4:]
	}
	if data, err = loaderForHost(data, libraries); err != nil {
		return err
	}
	c.loader = loader
	c.files["lib/"+loaderName] = data
	return nil
}

// addLibrary adds a library with the libraries that it needs.
func (c *collector) addLibrary(name string) error {
	to := "lib/" + path.Base(name)
	if c.files[to] != nil || path.Base(c.loader) == path.Base(name) {
		return nil
	}
	for _, dir := range c.libraryDirs() {
		data, ok, err := c.from.find(path.Join(dir, path.Base(name)))
		if err != nil {
			return err
		}
		if ok {
			return c.add(to, data)
		}
	}
	return fmt.Errorf("the Debian system has no library %s", name)
}

// libraryDirs returns the directories of libraries in the userland.
func (c *collector) libraryDirs() []string {
	var out []string
	for _, arch := range []string{"x86_64-linux-gnu", "aarch64-linux-gnu"} {
		out = append(out, "/lib/"+arch, "/usr/lib/"+arch)
	}
	return slices.Concat(out, []string{"/lib", "/usr/lib"})
}
