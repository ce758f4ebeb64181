package repository

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// local implements [Repository] with the files folder/VERSION/FILE on this machine.
type local struct {
	folder        string
	version, file string
}

// newLocal parses the path of a components file. open (repository.go) calls it.
func newLocal(p provider.Provider, u *url.URL) (Repository, error) {
	if !filepath.IsAbs(u.Path) || u.Host != "" {
		return nil, invalidURLError(p, "a path must start with /; write it as /BASE/%s/VERSION/FILE", p.Label())
	}
	folder, file := filepath.Split(filepath.Clean(u.Path))
	folder, version := filepath.Split(filepath.Clean(folder))
	if !isSemantic(version) && version != latestVersion {
		return nil, invalidURLError(p, "%q in its path is neither a semantic version nor latest; write the path as /BASE/%s/VERSION/FILE", version, p.Label())
	}
	if filepath.Base(folder) != p.Label() {
		return nil, invalidURLError(p, "the folder above the version is %q; write the path as /BASE/%s/VERSION/FILE", filepath.Base(folder), p.Label())
	}
	return local{folder: filepath.Clean(folder), version: version, file: file}, nil
}

func (l local) DefaultVersion() string { return l.version }

func (l local) ComponentsFile() string { return l.file }

func (l local) Versions(context.Context) ([]string, error) {
	entries, err := os.ReadDir(l.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Gone, reasonNotFound, "the folder %s does not exist; check the url of the provider", l.folder).From(err)
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(l.folder, e.Name())) // follow symbolic links
		if err == nil && info.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

func (l local) File(_ context.Context, version, name string) ([]byte, error) {
	data, err := readFile(filepath.Join(l.folder, version, name))
	if errors.Is(err, fs.ErrNotExist) {
		var files []string
		if entries, err := os.ReadDir(filepath.Join(l.folder, version)); err == nil {
			for _, e := range entries {
				files = append(files, e.Name())
			}
		}
		return nil, fileNotFound(files, version, name, notFound(l.folder, version, name))
	}
	return data, err
}

// readFile reads a regular file of limited size. [Source.File] reads overrides with it, too.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New(fault.Invalid, reasonNotFound, "%s is not a regular file; replace it with a regular file", path)
	}
	f, err := os.Open(path) // #nosec G304 -- the user chooses the folder
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAll(f, path)
}

// readAll reads everything up to the size limit.
func readAll(r io.Reader, what string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, tooLarge(what)
	}
	return data, nil
}

func tooLarge(what string) error {
	return fault.New(fault.Invalid, reasonTooLarge, "%s is larger than %d MiB, the limit for a file of a release; check the file", what, maxFile>>20)
}
