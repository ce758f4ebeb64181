package repository

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults.
const (
	// reasonURL is the reason when the URL of a provider is not the URL of a repository; Invalid.
	reasonURL = "RepositoryURL"
	// reasonNotFound is the reason when a repository does not have the version or file; Gone.
	reasonNotFound = "RepositoryFileNotFound"
	// ReasonNoVersion is the reason when no release is suitable; Invalid.
	ReasonNoVersion = "NoSuitableRelease"
	// reasonUnreachable is the reason when a server is unreachable or its response is unusable; Unreachable.
	reasonUnreachable = "RepositoryUnreachable"
	// reasonRateLimited is the reason when a server limits the rate of requests; Unreachable.
	reasonRateLimited = "RepositoryRateLimited"
	// reasonCredentials is the reason when a server requires other credentials; Invalid.
	reasonCredentials = "RepositoryCredentials"
	// reasonInsecure is the reason when a request would not use TLS; Invalid.
	reasonInsecure = "RepositoryInsecure"
	// reasonTooLarge is the reason when a file exceeds the size limit; Invalid.
	reasonTooLarge = "RepositoryFileTooLarge"
)

// latestVersion, as the version in a URL, selects the latest release.
const latestVersion = "latest"

// maxFile is the maximum size of a file in a repository in bytes. The largest published ones have about 2 MiB.
const maxFile = 32 << 20

// Repository provides the releases of one provider. Each kind of repository implements it in a file of its own.
type Repository interface {
	// DefaultVersion returns the version in the URL; [latestVersion] means that a version must be selected.
	DefaultVersion() string
	// ComponentsFile returns the name of the components file.
	ComponentsFile() string
	// Versions returns the available versions in any order.
	Versions(ctx context.Context) ([]string, error)
	// File returns a file of a version. The fault is Gone if the version or the file does not exist.
	File(ctx context.Context, version, name string) ([]byte, error)
}

// Options configure the access to repositories. Package install fills them in from the configuration file.
type Options struct {
	// Variable looks up GITHUB_TOKEN, GITLAB_ACCESS_TOKEN and GOPROXY; nil means that none is set.
	Variable func(name string) (value string, ok bool)
	// Overrides is a folder with files LABEL/VERSION/FILE that replace the files of repositories; empty for none.
	Overrides string
	// Transport sends the requests; nil means [http.DefaultTransport].
	Transport http.RoundTripper
	// Pause waits before a retry; nil means real time.
	Pause func(ctx context.Context, d time.Duration) error
	// Keychain provides the credentials for registries; nil means the user's Docker configuration.
	Keychain authn.Keychain
}

// variable returns the value of a variable; empty if it is not set. The repositories read tokens with it.
func (o Options) variable(name string) string {
	if o.Variable == nil {
		return ""
	}
	value, _ := o.Variable(name)
	return value
}

// Open returns the repository of a provider with overrides and a cache. It does not read from the repository yet.
// Package install calls it for providers, and package certificates for cert-manager.
func Open(p provider.Provider, o Options) (*Source, error) {
	r, err := open(p, o)
	if err != nil {
		return nil, err
	}
	return New(p, r, o), nil
}

// open selects the kind of repository by the URL of the provider.
func open(p provider.Provider, o Options) (Repository, error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return nil, invalidURLError(p, "it is not a valid URL; correct it")
	}
	segments := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	switch {
	case u.Scheme == "file" || u.Scheme == "":
		return newLocal(p, u)
	case u.Scheme == "oci":
		return newOCI(p, o)
	case u.Scheme != "https":
		return nil, invalidURLError(p, "its scheme is %q; use https, oci, or the path of a file", u.Scheme)
	case u.User != nil:
		return nil, invalidURLError(p, "it contains credentials; remove them, and set GITHUB_TOKEN or GITLAB_ACCESS_TOKEN")
	case u.Host == githubHost:
		return newGitHub(p, segments, o)
	case strings.HasPrefix(u.EscapedPath(), gitlabPrefix):
		return newGitLab(p, u, o)
	}
	return newWeb(p, u, o)
}

// invalidURLError returns the fault for an invalid URL. It does not repeat the URL, which may contain a token.
func invalidURLError(p provider.Provider, message string, args ...any) error {
	args = append([]any{p.Label()}, args...)
	return fault.New(fault.Invalid, reasonURL, "the url of provider %s is not a valid repository URL: "+message, args...)
}

// notFound returns the fault for a file or version that does not exist.
func notFound(where, version, name string) error {
	return fault.New(fault.Gone, reasonNotFound, "%s has no file %s for version %s; check the version and that its release is complete", where, name, version)
}

// isSegment reports whether s is a single path segment, so that it cannot refer to anything outside of a release.
// [Source.File] calls it for each version and file name, and repositories call it for the parts of their URLs.
func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\?#%\x00 ")
}
