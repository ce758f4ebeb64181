package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxResponseBytes is the maximum size of a response body, in bytes. The proxy and the replay in package
	// extensiontools have limits that must match it.
	maxResponseBytes = 20 << 20
	// connectWithin limits a connection attempt that continues in the background after its caller gave up.
	connectWithin = 10 * time.Second
	// maxIdle is the maximum number of idle connections to one extension.
	maxIdle = 2 * callsAtOnce
	// idleTimeout is how long an unused connection stays open.
	idleTimeout = 90 * time.Second
)

// Conn is a connection pool for one extension. The registry has one for each ExtensionConfig; it is replaced when the
// endpoint changes. It uses HTTPS with TLS 1.2 or newer, the CA bundle of the extension and a client certificate, does
// not follow redirects, and limits the size of a response. It is safe for concurrent use.
type Conn struct {
	endpoint  Endpoint
	client    *http.Client
	transport *http.Transport
	certs     *ClientCertificates

	mu    sync.Mutex
	shown *tls.Certificate
}

// NewConn returns a connection pool for an endpoint. The first request opens the first connection. The registry calls
// it when an extension is announced and when its endpoint changes.
func NewConn(e Endpoint, certs *ClientCertificates) (*Conn, error) {
	roots, err := e.roots()
	if err != nil {
		return nil, err
	}
	c := &Conn{endpoint: e, certs: certs, shown: certs.generation()}
	dialer := &net.Dialer{Timeout: connectWithin, KeepAlive: 30 * time.Second}
	security := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, GetClientCertificate: certs.forHandshake}
	c.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, DialTLSContext: dialTLS(dialer.DialContext, security),
		TLSClientConfig:     security,
		TLSHandshakeTimeout: connectWithin, MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
	c.client = &http.Client{
		Transport:     c.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// handshakeError is a failure of the TLS handshake, before any request was sent.
type handshakeError struct{ error }

func (e handshakeError) Unwrap() error { return e.error }

// unconnectedError is a failure before a connection was established.
type unconnectedError struct{ error }

func (e unconnectedError) Unwrap() error { return e.error }

// dialTLS returns a function that dials and completes the TLS handshake, so that its errors can be distinguished from
// later ones.
func dialTLS(dial dialFunc, security *tls.Config) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		own := security.Clone()
		own.ServerName, _, _ = net.SplitHostPort(address)
		conn := tls.Client(plain, own)
		ctx, cancel := context.WithTimeout(ctx, connectWithin)
		defer cancel()
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = plain.Close()
			return nil, handshakeError{err}
		}
		return conn, nil
	}
}

// Endpoint returns the endpoint of the connections.
func (c *Conn) Endpoint() Endpoint { return c.endpoint }

// Close closes idle connections.
func (c *Conn) Close() { c.transport.CloseIdleConnections() }

// WireRequest is a request to an extension. Calls and discoveries of the registry fill it in.
type WireRequest struct {
	// Path below the endpoint.
	Path string
	// Body is a JSON document.
	Body []byte
	// Header is sent in addition to Content-Type and Accept.
	Header http.Header
	// Timeout limits the exchange, and is sent to the extension: ?timeout=10s. If 0, only the context limits it.
	Timeout time.Duration
}

// Post sends a JSON document and returns the body of a response with HTTP status 200. Errors are faults of kind
// Unreachable with one of the reasons in classify.go and a stable message, without local ports or times, or the
// context's error if the caller gave up.
//
// The request is sent again if a reused connection is closed before the first byte of the response, because the server
// may have been replaced; handlers must tolerate being called twice. Over a new connection it is sent once. The
// registry calls it for each call and each discovery.
func (c *Conn) Post(ctx context.Context, r WireRequest) ([]byte, error) {
	c.followCertificate()
	target := c.endpoint.URL + r.Path
	if r.Timeout > 0 {
		target += "?timeout=" + r.Timeout.String()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, target, bytes.NewReader(r.Body))
	if err != nil {
		return nil, c.classify(ctx, err)
	}
	for key, values := range r.Header {
		req.Header[key] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header["Idempotency-Key"] = []string{} // makes net/http retry as documented for Post; an empty list is not sent
	resp, err := c.client.Do(req)
	if err != nil && !connected.Load() {
		err = unconnectedError{err}
	}
	if err != nil {
		return nil, c.classify(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // read a short body, so that the connection can be reused
		return nil, c.refusal(resp.StatusCode)
	}
	return c.read(ctx, resp)
}

func (c *Conn) read(ctx context.Context, resp *http.Response) ([]byte, error) {
	if resp.ContentLength > maxResponseBytes {
		return nil, c.tooLarge()
	}
	var buffer bytes.Buffer
	if resp.ContentLength > 0 {
		buffer.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	n, err := buffer.ReadFrom(io.LimitReader(resp.Body, maxResponseBytes+1))
	if err == nil {
		// A server that notices the cancellation may end its response regularly before the connection is closed.
		err = ctx.Err()
	}
	if err != nil {
		return nil, c.classify(ctx, err)
	}
	if n > maxResponseBytes {
		return nil, c.tooLarge()
	}
	return buffer.Bytes(), nil
}

// followCertificate closes idle connections that use a client certificate that has been rotated.
func (c *Conn) followCertificate() {
	current := c.certs.generation()
	c.mu.Lock()
	changed := current != c.shown
	c.shown = current
	c.mu.Unlock()
	if changed {
		c.transport.CloseIdleConnections()
	}
}
