package mirror

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonRefused is the reason of the fault for a request that is not allowed; Invalid.
const reasonRefused = "RequestRefused"

// readOnly returns a copy of the configuration whose requests can only read, and never Secrets or ConfigMaps. The rule is
// in the transport, so that no code above it can violate it. [New] calls it.
func readOnly(cfg *rest.Config, userAgent string) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.UserAgent = userAgent
	out.QPS = -1
	out.WarningHandlerWithContext = rest.NoWarnings{}
	prefix := ""
	if base, err := url.Parse(cfg.Host); err == nil && strings.Contains(cfg.Host, "://") {
		prefix = strings.TrimSuffix(base.Path, "/")
	}
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return &readOnlyTransport{next: next, prefix: prefix} })
	return out
}

// observedTransport reports failed connections.
type observedTransport struct {
	next http.RoundTripper
	// report is called with the path of the request and the error of the connection.
	report func(path string, err error)
}

// RoundTrip implements http.RoundTripper.
func (t *observedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil && r.Context().Err() == nil {
		t.report(r.URL.Path, err)
	}
	return response, err
}

type readOnlyTransport struct {
	next http.RoundTripper
	// prefix is the path of the API server, for example behind a proxy.
	prefix string
}

// RoundTrip implements http.RoundTripper.
func (t *readOnlyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := checkRequest(r, t.prefix); err != nil {
		return nil, err
	}
	return t.next.RoundTrip(r)
}

// checkRequest returns an error unless the request only reads and its resource may be read.
func checkRequest(r *http.Request, prefix string) error {
	refuse := func(why string) error {
		return fault.New(fault.Invalid, reasonRefused, "%s %s is refused: %s", r.Method, r.URL.Path, why)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return refuse("only reads are allowed")
	}
	path, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok || strings.Contains(path, "//") || slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." }) {
		return refuse("the path is not an API path")
	}
	factory := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(&http.Request{Method: r.Method, URL: &url.URL{Path: path, RawQuery: r.URL.RawQuery}})
	if err != nil {
		return fmt.Errorf("parsing the path %s: %w", r.URL.Path, err)
	}
	if info.IsResourceRequest && info.APIGroup == "" && slices.Contains([]string{"secrets", "configmaps"}, info.Resource) {
		return refuse("Secrets and ConfigMaps are never read")
	}
	if info.IsResourceRequest && info.Subresource != "" && slices.Contains([]string{"proxy", "exec", "attach", "portforward", "log"}, info.Subresource) {
		return refuse("this subresource is never used")
	}
	return nil
}
