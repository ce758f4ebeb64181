package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fault"
)

// errUnauthorized says that the API answered and refused the credentials.
var errUnauthorized = errors.New("the API server refuses the credentials of the kubeconfig Secret; renew the Secret")

// newTransport makes a transport that belongs to one connection alone, so that
// closing it closes every socket: client-go's own transports live in a cache
// of the whole process.
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
		// A peer that vanished is noticed by pings, so that watches do not hang.
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

// probeURL is the root of the API server.
func probeURL(cfg *rest.Config) (string, error) {
	base, _, err := rest.DefaultServerURL(cfg.Host, "", schema.GroupVersion{}, true)
	if err != nil {
		return "", fmt.Errorf("the server address of the kubeconfig cannot be used: %w", err)
	}
	return base.JoinPath("/").String(), nil
}

// probe gets the root of the API. Every answer counts as a success
// except a server error and a refusal of the credentials.
func probe(ctx context.Context, c *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return describe(err, address)
	}
	defer func() { _ = resp.Body.Close() }()
	// The body is read so that the socket can be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return errUnauthorized
	case resp.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("the API server at %s answers with HTTP status %d", address, resp.StatusCode)
	case resp.StatusCode >= http.StatusMultipleChoices && resp.StatusCode < http.StatusBadRequest:
		return fault.New(fault.Invalid, "Redirected", "the API server at %s redirects to another address: set server in the kubeconfig Secret to where it is", address)
	}
	return nil
}

// describe says that a call failed, without how: a refused connection, a time limit and a certificate of another server
// read the same, because who may write the Secret may choose the address, and would learn from the difference what is
// there. The cause is for the log.
func describe(err error, address string) error {
	if f := fault.As(err); f != nil && f.Kind == fault.Invalid { // the operator's rules
		return f
	}
	return fault.New(fault.Unreachable, "Unreachable",
		"the API server at %s does not answer as the kubeconfig Secret describes it: check that it runs, and server and certificate-authority-data in the Secret",
		address).From(err)
}

// noRedirect refuses redirects: an API server has no reason to send one, and one that does would choose whom this
// process connects to, with the credentials of the Secret.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
