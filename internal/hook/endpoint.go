package hook

import (
	"crypto/x509"
	"net"
	"net/url"
	"strconv"
	"strings"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// defaultPort is used for a Service without a port, as Cluster API documents it.
const defaultPort = 443

// Endpoint is the URL of a Runtime Extension and the CA bundle that authenticates it.
type Endpoint struct {
	// URL is the base URL of all hooks, without a trailing slash.
	URL string
	// CA is a bundle of PEM certificates. If empty, the system's CAs are used.
	CA string
}

// EndpointOf returns the endpoint of an ExtensionConfig's spec.clientConfig: its url, or the cluster-internal name of
// the Service. The registry calls it whenever it reads an ExtensionConfig, and the page of `slipway ui` shows the host;
// admission validates the same fields before. An endpoint whose CA bundle cannot be parsed is returned with an error.
func EndpointOf(c runtimev1.ClientConfig) (Endpoint, error) {
	e := Endpoint{CA: string(c.CABundle)}
	switch s := c.Service; {
	case s.IsDefined():
		port := int32(defaultPort)
		if s.Port != nil {
			port = *s.Port
		}
		u := url.URL{Scheme: "https", Host: net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(port))),
			Path: strings.TrimSuffix("/"+strings.Trim(s.Path, "/"), "/")}
		e.URL = u.String()
	case c.URL != "":
		u, err := url.Parse(c.URL)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return e, fault.New(fault.Invalid, "InvalidURL", "spec.clientConfig.url is not the URL of an HTTPS server; correct it")
		}
		u.User, u.RawQuery, u.Fragment = nil, "", "" // rejected by admission; they may hold secrets
		e.URL = strings.TrimSuffix(u.String(), "/")
	default:
		return e, fault.New(fault.Invalid, "NoEndpoint", "spec.clientConfig has neither url nor service; set one of them")
	}
	_, err := e.roots()
	return e, err
}

// Host returns the host and port of the endpoint, for messages and metrics.
func (e Endpoint) Host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

func (e Endpoint) roots() (*x509.CertPool, error) {
	if e.CA == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(e.CA)) {
		return nil, fault.New(fault.Invalid, "InvalidCABundle",
			"spec.clientConfig.caBundle holds no certificate in PEM form; correct it or let it be injected")
	}
	return pool, nil
}
