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

// Reasons of the faults of this package.
const (
	// ReasonURL says that the URL of a provider is not one of a repository; Invalid.
	ReasonURL = "RepositoryURL"
	// ReasonNotFound says that a repository has no such version or file; Gone.
	ReasonNotFound = "RepositoryFileNotFound"
	// ReasonNoVersion says that no release fits; Invalid.
	ReasonNoVersion = "NoSuitableRelease"
	// ReasonUnreachable says that a server does not answer, or not with what it should; Unreachable.
	ReasonUnreachable = "RepositoryUnreachable"
	// ReasonRateLimited says that a server refuses because of too many requests; Unreachable.
	ReasonRateLimited = "RepositoryRateLimited"
	// ReasonCredentials says that a server wants other credentials; Invalid.
	ReasonCredentials = "RepositoryCredentials"
	// ReasonInsecure says that something would have been read without TLS; Invalid.
	ReasonInsecure = "RepositoryInsecure"
	// ReasonTooLarge says that a file is larger than what a repository may have; Invalid.
	ReasonTooLarge = "RepositoryFileTooLarge"
)

// Latest in the place of a version in a URL is the latest release.
const Latest = "latest"

// maxFile is how many bytes a file of a repository may have. The largest released so far have about 2 MiB.
const maxFile = 32 << 20

// Repository has the releases of one provider.
type Repository interface {
	// DefaultVersion is the version that the URL names; [Latest] means that one is chosen.
	DefaultVersion() string
	// ComponentsFile is the name of the file with the objects to install.
	ComponentsFile() string
	// Versions that the repository can list, in any order.
	Versions(ctx context.Context) ([]string, error)
	// File returns a file of a version. The fault is Gone where the version or the file does not exist.
	File(ctx context.Context, version, name string) ([]byte, error)
}

// Options say how repositories are read.
type Options struct {
	// Variable looks up GITHUB_TOKEN, GITLAB_ACCESS_TOKEN and GOPROXY. Nil: none is set.
	Variable func(name string) (value string, ok bool)
	// Overrides is a folder with LABEL/VERSION/FILE, whose files take the place of those of repositories; empty: there is none.
	Overrides string
	// Transport reaches servers; nil: [http.DefaultTransport].
	Transport http.RoundTripper
	// Pause waits between two tries; nil: real time.
	Pause func(ctx context.Context, d time.Duration) error
	// Keychain has the credentials of registries; nil: that of the user's Docker configuration.
	Keychain authn.Keychain
}

func (o Options) variable(name string) string {
	if o.Variable == nil {
		return ""
	}
	value, _ := o.Variable(name)
	return value
}

// Open returns the repository of a provider, with overrides and a cache in front of it. It reads nothing yet.
func Open(p provider.Provider, o Options) (*Source, error) {
	r, err := open(p, o)
	if err != nil {
		return nil, err
	}
	return New(p, r, o), nil
}

func open(p provider.Provider, o Options) (Repository, error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return nil, malformed(p, "it cannot be read; correct it")
	}
	segments := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	switch {
	case u.Scheme == "file" || u.Scheme == "":
		return newLocal(p, u)
	case u.Scheme == "oci":
		return newOCI(p, o)
	case u.Scheme != "https":
		return nil, malformed(p, "its scheme is %q; use https, oci, or the path of a file", u.Scheme)
	case u.User != nil:
		return nil, malformed(p, "it has credentials in it; remove them, and set GITHUB_TOKEN or GITLAB_ACCESS_TOKEN")
	case u.Host == githubHost:
		return newGitHub(p, segments, o)
	case strings.HasPrefix(u.EscapedPath(), gitlabPrefix):
		return newGitLab(p, u, o)
	}
	return newWeb(p, u, o)
}

// malformed is the fault of a URL; the URL itself is not repeated, it may hold a token.
func malformed(p provider.Provider, message string, args ...any) error {
	args = append([]any{p.Label()}, args...)
	return fault.New(fault.Invalid, ReasonURL, "the url of provider %s is not that of a repository: "+message, args...)
}

// notFound is the fault of a file, or a version, that a repository does not have.
func notFound(where, version, name string) error {
	return fault.New(fault.Gone, ReasonNotFound, "%s has no file %s of version %s; check the version and that its release is complete", where, name, version)
}

// isSegment reports whether s is one segment of a path, so that nothing outside of a release can be named with it.
func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\?#%\x00 ")
}
