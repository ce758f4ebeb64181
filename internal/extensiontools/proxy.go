package extensiontools

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
	"github.com/slipwayhq/slipway/sdk/extension/servingcert"
)

// Size limits of forwarded calls. The manager's limit is in package hook (conn.go).
const (
	maxRequest  = 64 << 20
	maxResponse = 21 << 20 // one MiB more than a manager accepts, so that it reports the excess
)

// proxyOptions configure a proxy. [RunSession] and [Call] fill them in.
type proxyOptions struct {
	// Listen is host:port, and the certificate is for the host. Port 0 selects a free port.
	Listen string
	// Host is the host name for callers, if it differs from Listen.
	Host string
	// Upstream is the prefix of every forwarded URL, and Client sends the requests, until [proxy.SwitchTo].
	Upstream *url.URL
	Client   *http.Client
	// Observe is called after every call, possibly concurrently.
	Observe func(recording.Call)
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// proxy is a running HTTPS proxy on the developer's machine. In [RunSession] it is between the management cluster and
// the extension, and displays and records the calls; in [Call] it forwards a request through the API server.
type proxy struct {
	// URL is the URL for callers, and CA the PEM-encoded CA of its certificate.
	URL string
	CA  []byte

	o        proxyOptions
	upstream atomic.Pointer[upstream]
	server   *http.Server
}

// upstream is the destination of requests.
type upstream struct {
	url    *url.URL
	client *http.Client
}

// startProxy starts a proxy that listens until Close.
func startProxy(o proxyOptions) (*proxy, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = func(recording.Call) {}
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Listen", "nothing can listen at %s", o.Listen).From(err)
	}
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("reading the own address: %w", err)
	}
	if o.Host != "" {
		host = o.Host
	}
	made, err := servingcert.New(host)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(made.Certificate, made.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the own certificate: %w", err)
	}
	p := &proxy{URL: "https://" + net.JoinHostPort(host, port), CA: made.CA, o: o}
	p.SwitchTo(o.Upstream, o.Client)
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// Close stops listening, and aborts calls in progress.
func (p *proxy) Close() error { return p.server.Close() }

// SwitchTo changes the destination of subsequent requests, when the process of a session was restarted.
func (p *proxy) SwitchTo(to *url.URL, by *http.Client) { p.upstream.Store(&upstream{to, by}) }

// ServeHTTP forwards a request.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := p.o.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "reading the request: "+err.Error(), http.StatusBadRequest)
		return
	}
	call := recording.Call{Time: began.UTC(), Path: r.URL.Path, Query: r.URL.RawQuery, Request: string(body), Object: recording.Object(body)}
	own, hook, handler, isHook := recording.Split(r.URL.Path)
	if isHook {
		call.Path, call.Hook, call.Handler = own, hook, handler
	}
	answer, err := p.forward(r.Context(), r, body)
	call.Seconds = p.o.Now().Sub(began).Seconds()
	if err != nil {
		call.Error = explain(r.Context(), err)
	} else {
		call.Code, call.Response = answer.code, string(answer.body)
	}
	if isHook {
		p.o.Observe(call)
	}
	if err != nil {
		http.Error(w, call.Error, http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", answer.contentType)
	w.WriteHeader(answer.code)
	_, _ = w.Write(answer.body)
}

type proxyResponse struct {
	code        int
	contentType string
	body        []byte
}

func (p *proxy) forward(ctx context.Context, r *http.Request, body []byte) (proxyResponse, error) {
	to := p.upstream.Load()
	target := *to.url
	target.Path = strings.TrimSuffix(target.Path, "/") + r.URL.Path
	target.RawQuery = r.URL.RawQuery
	request, err := http.NewRequestWithContext(ctx, r.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		return proxyResponse{}, err
	}
	for _, name := range []string{"Content-Type", "Accept", "Traceparent", "Tracestate"} {
		if values := r.Header.Values(name); len(values) > 0 {
			request.Header[name] = values
		}
	}
	response, err := to.client.Do(request)
	if err != nil {
		return proxyResponse{}, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	return proxyResponse{response.StatusCode, response.Header.Get("Content-Type"), data}, err
}

// explain describes an error without the address, which differs each time.
func explain(ctx context.Context, err error) string {
	var where *url.Error
	if errors.As(err, &where) {
		err = where.Err
	}
	var op *net.OpError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return "the caller gave up"
	case errors.As(err, &op) && op.Op == "dial":
		return "the extension does not take connections"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the extension closed the connection"
	}
	return err.Error()
}
