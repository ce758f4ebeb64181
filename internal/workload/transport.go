package workload

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// newTransport returns the transport of one connection only, so that closing it closes all its sockets. client-go's own
// transports are in a process-wide cache. [Clusters] calls it when it connects to a cluster.
func newTransport(cfg *rest.Config) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("the TLS data of the kubeconfig cannot be used: %w", err)
	}
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    10 * time.Second,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2:      true,
		// Pings detect a peer that has vanished, so that watches do not hang.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	if cfg.Proxy != nil {
		t.Proxy = cfg.Proxy
	}
	if cfg.Dial != nil {
		t.DialContext = cfg.Dial
	}
	return t, nil
}

// root returns the root URL of the API server.
func root(cfg *rest.Config) (string, error) {
	base, _, err := rest.DefaultServerURL(cfg.Host, "", schema.GroupVersion{}, true)
	if err != nil {
		return "", fmt.Errorf("the server address of the kubeconfig cannot be used: %w", err)
	}
	return base.JoinPath("/").String(), nil
}

// noRedirect rejects redirects: an API server has no reason to send one, and a malicious server could redirect this
// process to any other server, with the credentials in the Secret. All HTTP clients of a connection use it.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
