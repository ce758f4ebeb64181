package template

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults when reading a template.
const (
	// reasonNotFound is the reason when there is no template at the address; Gone.
	reasonNotFound = "ClusterTemplateNotFound"
	// reasonUnreachable is the reason when a server is unreachable, or does not return a template; Unreachable.
	reasonUnreachable = "ClusterTemplateUnreachable"
)

// maxTemplate is the maximum size of a template in bytes.
const maxTemplate = 32 << 20

// DefaultKey is the default key of a template in a ConfigMap.
const DefaultKey = "template"

// Source reads templates from files and URLs, for "slipway generate cluster --from", "generate yaml" and "convert".
type Source struct {
	// In is the standard input for "-".
	In io.Reader
	// Variable looks up GITHUB_TOKEN.
	Variable repository.Lookup
	// Client sends HTTP requests; nil means [http.DefaultClient].
	Client *http.Client
}

// Read returns the template at an address: "-" for the standard input, an https URL, including the page of a file on
// GitHub, or the path of a file. `slipway generate` and `slipway convert` call it.
func (s Source) Read(ctx context.Context, from string) ([]byte, error) {
	if from == "-" {
		return readLimited(s.In, "the standard input")
	}
	u, err := url.Parse(from)
	if err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		return s.download(ctx, u)
	}
	path := from
	if err == nil && u.Scheme == "file" {
		path = u.Path
	}
	f, err := os.Open(path) // #nosec G304 -- the user chooses the path
	if err != nil {
		return nil, fault.New(fault.Gone, reasonNotFound, "the template %s cannot be read: %v", path, pathCause(err)).From(err)
	}
	defer func() { _ = f.Close() }()
	return readLimited(f, path)
}

// pathCause returns the error of the operating system without the path.
func pathCause(err error) error {
	if e := (*os.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

func readLimited(r io.Reader, what string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxTemplate+1))
	if err != nil {
		return nil, fault.New(fault.Unreachable, reasonUnreachable, "the template at %s cannot be read completely (%v); run the command again", what, pathCause(err)).From(err)
	}
	if len(data) > maxTemplate {
		return nil, fault.New(fault.Invalid, reasonTemplate, "the template at %s is larger than %d MiB; check its location", what, maxTemplate>>20)
	}
	return data, nil
}

const githubHost = "github.com"

// rawURL returns the download URL for the page of a file on GitHub.
func rawURL(u *url.URL) *url.URL {
	// /OWNER/REPOSITORY/blob/REF/PATH
	segments := strings.SplitN(strings.Trim(u.EscapedPath(), "/"), "/", 4)
	if u.Host != githubHost || len(segments) < 4 || segments[2] != "blob" && segments[2] != "tree" && segments[2] != "raw" {
		return u
	}
	return &url.URL{Scheme: "https", Host: "raw.githubusercontent.com", Path: "/" + segments[0] + "/" + segments[1] + "/" + segments[3]}
}

// isLoopback reports whether a host is the loopback interface, where TLS is not required.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s Source) download(ctx context.Context, page *url.URL) ([]byte, error) {
	if page.Scheme != "https" && !isLoopback(page.Hostname()) {
		return nil, invalid("the URL of the template at %s does not use TLS; use an https URL", page.Host)
	}
	u := rawURL(page)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, invalid("the URL of the template is invalid; correct it")
	}
	// Only for a page on GitHub does rawURL return another URL. No other host may receive the token.
	if token, _ := s.Variable("GITHUB_TOKEN"); token != "" && u != page {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{}
	if s.Client != nil {
		client = *s.Client
	}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) >= 10 || r.URL.Scheme != "https" && !isLoopback(r.URL.Hostname()) {
			return invalid("the URL of the template at %s redirects to a URL without TLS, or too many times; use the final URL", page.Host)
		}
		return nil
	}
	response, err := client.Do(request)
	if known := fault.As(err); known != nil {
		return nil, known
	}
	if err != nil {
		return nil, fault.New(fault.Unreachable, reasonUnreachable, "%s, the host of the template, does not respond; check the network and the URL", u.Host).From(err)
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, fault.New(fault.Gone, reasonNotFound, "%s has no template at %s; check the URL, and GITHUB_TOKEN if it is private", u.Host, u.Path)
	case response.StatusCode != http.StatusOK:
		return nil, fault.New(fault.Unreachable, reasonUnreachable, "%s responded with %s to the request for the template; check the URL, or run the command again", u.Host, response.Status)
	}
	return readLimited(response.Body, u.Host+u.Path)
}

// FromConfigMap reads the template in a key of a ConfigMap. `slipway generate cluster --from-config-map` calls it.
func FromConfigMap(ctx context.Context, r client.Reader, key client.ObjectKey, dataKey string) ([]byte, error) {
	found := &corev1.ConfigMap{}
	err := r.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, fault.New(fault.Gone, reasonNotFound, "ConfigMap %s does not exist in namespace %s; specify another with --from-config-map and --from-config-map-namespace", key.Name, key.Namespace).From(err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	text, ok := found.Data[dataKey]
	if !ok {
		return nil, fault.New(fault.Gone, reasonNotFound, "ConfigMap %s has no key %q; specify another with --from-config-map-key", key, dataKey)
	}
	return []byte(text), nil
}
