package simulated

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Loopback returns a client configuration that calls the api in this process, with full access. The context of each
// call selects the cluster. The simulator and the backend of simulated Machines write with it.
func (a *api) Loopback() *rest.Config {
	return &rest.Config{
		Host: "http://simulated", Transport: loopback{a}, QPS: -1, Burst: -1,
		ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
	}
}

// LoopbackOf returns a client configuration that calls the api of one cluster in this process, with full access, until
// ctx is done. It is for libraries that do not pass on the context.
func (a *api) LoopbackOf(ctx context.Context, t *tenant) *rest.Config {
	config := a.Loopback()
	config.Transport = clusterTransport{loopback{a}, ctx, t}
	return config
}

// clusterTransport is a loopback transport to one cluster.
type clusterTransport struct {
	loopback
	ctx    context.Context
	tenant *tenant
}

func (b clusterTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := b.ctx.Err(); err != nil {
		return nil, err
	}
	return b.loopback.RoundTrip(r.WithContext(withTenant(r.Context(), b.tenant)))
}

// loopback is a transport that calls the handler directly.
type loopback struct{ api *api }

func (l loopback) RoundTrip(r *http.Request) (*http.Response, error) {
	if tenantFrom(r.Context()) == nil {
		return nil, errNoCluster
	}
	inner := r.Clone(withFullAccess(r.Context()))
	inner.RequestURI, inner.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	if q := r.URL.RawQuery; strings.Contains(q, "watch=true") || strings.Contains(q, "watch=1") {
		return l.stream(r, inner)
	}
	w := &recorder{header: http.Header{}}
	l.api.handler.ServeHTTP(w, inner)
	return w.response(r, io.NopCloser(&w.body)), nil
}

// stream serves a watch until it ends.
func (l loopback) stream(r, inner *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(inner.Context())
	reader, writer := io.Pipe()
	w := &recorder{header: http.Header{}, out: writer, began: make(chan struct{})}
	go func() {
		defer cancel()
		l.api.handler.ServeHTTP(w, inner.WithContext(ctx))
		w.begin(http.StatusOK)
		_ = writer.Close() // never fails
	}()
	<-w.began
	return w.response(r, cancelingReader{reader, cancel}), nil
}

// cancelingReader cancels a watch when its reader is closed.
type cancelingReader struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (s cancelingReader) Close() error {
	s.cancel()
	return s.ReadCloser.Close()
}

// recorder receives the response of the handler: in body, or forwarded to out.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	out    io.Writer
	began  chan struct{}
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) { w.begin(status) }

func (w *recorder) Write(data []byte) (int, error) {
	w.begin(http.StatusOK)
	if w.out != nil {
		return w.out.Write(data)
	}
	return w.body.Write(data)
}

func (w *recorder) Flush() { w.begin(http.StatusOK) }

// CloseNotify implements http.CloseNotifier, which k8s.io/apiserver requires together with http.Flusher. The context of
// a call signals its end instead.
func (w *recorder) CloseNotify() <-chan bool { return nil }

func (w *recorder) begin(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.began != nil {
		close(w.began)
	}
}

func (w *recorder) response(r *http.Request, body io.ReadCloser) *http.Response {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: body, ContentLength: -1, Request: r,
	}
}
