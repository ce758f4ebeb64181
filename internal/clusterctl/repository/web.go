package repository

import (
	"context"
	"net/url"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
)

// web implements [Repository] with a web server: BASE/VERSION/FILE. Its versions cannot be listed.
type web struct {
	fetcher
	base, version, file string
}

// newWeb parses the URL of a components file. open (repository.go) calls it.
func newWeb(p provider.Provider, u *url.URL, o Options) (Repository, error) {
	segments := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	if len(segments) < 2 || u.RawQuery != "" {
		return nil, invalidURLError(p, "write it as https://HOST/PATH/VERSION/FILE")
	}
	last := len(segments) - 1
	base := "https://" + strings.Join(append([]string{u.Host}, segments[:last-1]...), "/")
	version, file, err := parseVersionFile(p, segments[last-1], segments[last])
	if err != nil {
		return nil, err
	}
	return web{fetcher: o.fetcher(), base: base, version: version, file: file}, nil
}

func (w web) DefaultVersion() string { return w.version }

func (w web) ComponentsFile() string { return w.file }

func (w web) Versions(context.Context) ([]string, error) { return []string{w.version}, nil }

func (w web) File(ctx context.Context, version, name string) ([]byte, error) {
	return w.fetcher.file(ctx, request{url: w.base}, version, name)
}
