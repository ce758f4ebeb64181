package repository

import (
	"context"
	"net/url"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	gitlabPrefix = "/api/v4/projects/"
	// gitlabToken is the variable with a GitLab token. In the configuration file it is written gitlab-access-token.
	gitlabToken = "GITLAB_ACCESS_TOKEN"
)

// gitlab implements [Repository] with a generic package of the GitLab package registry. Its versions cannot be listed:
// the URL or the user specifies one.
type gitlab struct {
	fetcher
	base, version, file string
	token               string
}

// newGitLab parses the URL of a package. open (repository.go) calls it.
func newGitLab(p provider.Provider, u *url.URL, o Options) (Repository, error) {
	segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), gitlabPrefix), "/")
	if len(segments) != 6 || segments[1] != "packages" || segments[2] != "generic" || u.RawQuery != "" {
		return nil, invalidURLError(p, "write it as https://HOST/api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE")
	}
	base := "https://" + u.Host + gitlabPrefix + strings.Join(segments[:4], "/")
	version, file, err := parseVersionFile(p, segments[4], segments[5])
	return gitlab{fetcher: o.fetcher(), base: base, version: version, file: file, token: o.variable(gitlabToken)}, err
}

// parseVersionFile validates the version and the file in the URL of a repository that cannot list its versions.
func parseVersionFile(p provider.Provider, version, file string) (string, string, error) {
	version, err := url.PathUnescape(version)
	if err != nil || !isSegment(version) || !isSegment(file) {
		return "", "", invalidURLError(p, "it does not end with a version and a file; correct it")
	}
	if !isSemantic(version) && version != latestVersion {
		return "", "", invalidURLError(p, "%q before the file name is not a semantic version; write it as v1.2.3", version)
	}
	if version == latestVersion {
		return "", "", invalidURLError(p, "the versions of this repository cannot be listed; use a version instead of latest")
	}
	return version, file, nil
}

func (g gitlab) DefaultVersion() string { return g.version }

func (g gitlab) ComponentsFile() string { return g.file }

func (g gitlab) Versions(context.Context) ([]string, error) { return []string{g.version}, nil }

func (g gitlab) File(ctx context.Context, version, name string) ([]byte, error) {
	return g.fetcher.file(ctx, request{url: g.base, token: g.token, credentials: gitlabToken}, version, name)
}

// file reads BASE/VERSION/NAME. The repositories gitlab and web call it.
func (f fetcher) file(ctx context.Context, r request, version, name string) ([]byte, error) {
	base := r.url
	r.url += "/" + url.PathEscape(version) + "/" + url.PathEscape(name)
	resp, err := f.get(ctx, r)
	if fault.KindOf(err) == fault.Gone {
		return nil, notFound(base, version, name)
	}
	return resp.body, err
}
