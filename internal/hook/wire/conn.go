package wire

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
	// MaxAnswer is the largest answer that is read, in bytes.
	MaxAnswer = 20 << 20
	// connectWithin bounds a connection attempt that continues in the background after its caller gave up.
	connectWithin = 10 * time.Second
	// idle is how long an unused connection is kept.
	idle = 90 * time.Second
)

// Options say how to connect. The zero value is the default.
type Options struct {
	// Certificates, where set, is shown to extensions that ask for a client certificate.
	Certificates *Certificates
	// Keep is how many idle connections are kept. Default 4.
	Keep int
}

// Conn is the connections to one extension. It is safe for concurrent use.
type Conn struct {
	endpoint  Endpoint
	client    *http.Client
	transport *http.Transport
	certs     *Certificates
	dialled   atomic.Int64

	mu    sync.Mutex
	shown *tls.Certificate
}

// Answer is what an extension answered with HTTP status 200.
type Answer struct {
	Body []byte
}

// New returns the connections to an endpoint. None is made before the first exchange.
func New(e Endpoint, o Options) (*Conn, error) {
	roots, err := e.roots()
	if err != nil {
		return nil, err
	}
	keep := o.Keep
	if keep == 0 {
		keep = 4
	}
	c := &Conn{endpoint: e, certs: o.Certificates, shown: o.Certificates.generation()}
	dialer := &net.Dialer{Timeout: connectWithin, KeepAlive: 30 * time.Second}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			c.dialled.Add(1)
		}
		return conn, err
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots,
		GetClientCertificate: o.Certificates.forHandshake}
	c.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, DialTLSContext: secured(dial, security),
		TLSClientConfig:     security,
		TLSHandshakeTimeout: connectWithin, MaxIdleConns: keep, MaxIdleConnsPerHost: keep, IdleConnTimeout: idle,
		MaxResponseHeaderBytes: 64 << 10,
	}
	c.client = &http.Client{
		Transport:     c.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// handshakeError is a failure before any request was sent.
type handshakeError struct{ error }

func (e handshakeError) Unwrap() error { return e.error }

// unconnectedError is a failure before there was a connection.
type unconnectedError struct{ error }

func (e unconnectedError) Unwrap() error { return e.error }

// secured returns a function that dials and makes the TLS handshake, so that its errors can be told from later ones.
func secured(dial dialFunc, security *tls.Config) dialFunc {
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

// Endpoint returns where the connections go.
func (c *Conn) Endpoint() Endpoint { return c.endpoint }

// Dialled returns how many connections were made so far.
func (c *Conn) Dialled() int64 { return c.dialled.Load() }

// Close closes the connections that no one uses.
func (c *Conn) Close() { c.transport.CloseIdleConnections() }

// Request is what is sent.
type Request struct {
	// Path below the endpoint.
	Path string
	// Body is a JSON document.
	Body []byte
	// Header besides those that say that both sides are JSON.
	Header http.Header
	// Timeout bounds the exchange, and is sent to the extension: ?timeout=10s. 0: the context alone bounds it.
	Timeout time.Duration
}

// Post sends a JSON document and returns the answer. Errors are faults of kind Unreachable with one of the reasons of this
// package, or the context's own when the caller gave up.
//
// The document is sent again where a kept connection is closed before a byte of the answer has come: its server may have
// been replaced, and handlers must stand being called twice. Over a new connection it is sent once.
func (c *Conn) Post(ctx context.Context, r Request) (Answer, error) {
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
		return Answer{}, c.classify(ctx, err)
	}
	for key, values := range r.Header {
		req.Header[key] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header["Idempotency-Key"] = []string{} // net/http then sends it again as Post says; an empty list is not sent
	resp, err := c.client.Do(req)
	if err != nil && !connected.Load() {
		err = unconnectedError{err}
	}
	if err != nil {
		return Answer{}, c.classify(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // a short page is read, so that the connection can be kept
		return Answer{}, c.refusal(resp.StatusCode)
	}
	return c.read(ctx, resp)
}

func (c *Conn) read(ctx context.Context, resp *http.Response) (Answer, error) {
	if resp.ContentLength > MaxAnswer {
		return Answer{}, c.tooLarge()
	}
	var buffer bytes.Buffer
	if resp.ContentLength > 0 {
		buffer.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	n, err := buffer.ReadFrom(io.LimitReader(resp.Body, MaxAnswer+1))
	if err == nil {
		// A server that sees us hang up may end its answer in order before the connection is gone.
		err = ctx.Err()
	}
	if err != nil {
		return Answer{}, c.classify(ctx, err)
	}
	if n > MaxAnswer {
		return Answer{}, c.tooLarge()
	}
	return Answer{Body: buffer.Bytes()}, nil
}

// followCertificate drops connections that were made with a client certificate that has been replaced.
func (c *Conn) followCertificate() {
	if c.certs == nil {
		return
	}
	current := c.certs.generation()
	c.mu.Lock()
	changed := current != c.shown
	c.shown = current
	c.mu.Unlock()
	if changed {
		c.transport.CloseIdleConnections()
	}
}
