package repository

import (
	"net"
	"net/http"

	"github.com/slipwayhq/slipway/internal/fault"
)

// secureTransport is the HTTP transport of all repositories. It requires TLS except for loopback addresses, and sends
// credentials only to the host they are for.
type secureTransport struct{ next http.RoundTripper }

// transport returns the transport of a repository. fetch.go and oci.go call it.
func (o Options) transport() http.RoundTripper {
	if o.Transport == nil {
		return secureTransport{http.DefaultTransport}
	}
	return secureTransport{o.Transport}
}

// RoundTrip implements http.RoundTripper.
func (g secureTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	first := r
	for first.Response != nil && first.Response.Request != nil { // r follows a redirect
		first = first.Response.Request
	}
	plain := r.URL.Scheme != "https"
	if plain && (first != r || !isLoopback(r.URL.Hostname())) {
		return nil, fault.New(fault.Invalid, reasonInsecure, "the URL at %s does not use TLS; use an https URL", r.URL.Host)
	}
	if first.URL.Host != r.URL.Host && r.Header.Get("Authorization") != "" {
		r = r.Clone(r.Context())
		r.Header.Del("Authorization")
	}
	return g.next.RoundTrip(r)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
