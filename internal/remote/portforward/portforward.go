package portforward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/slipwayhq/slipway/internal/fault"
)

// protocol is that of port-forwarding inside the upgraded connection.
const protocol = "portforward.k8s.io"

// maxProblem bounds what is read of an error, in bytes.
const maxProblem = 4 << 10

// Target is a port of a Pod.
type Target struct {
	Namespace, Pod string
	Port           int
}

// Transport returns a transport for [Dial] with the sockets and the credentials of an API. It speaks HTTP/1.1, whose connections can be
// upgraded.
func Transport(cfg *rest.Config, sockets *http.Transport) (http.RoundTripper, error) {
	t := sockets.Clone()
	t.ForceAttemptHTTP2, t.DisableKeepAlives = false, true
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	t.Protocols = protocols
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = slices.DeleteFunc(slices.Clone(t.TLSClientConfig.NextProtos), func(p string) bool { return p == "h2" })
	}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, t)
	if err != nil {
		return nil, fmt.Errorf("the credentials of the kubeconfig cannot be used: %w", err)
	}
	return wrapped, nil
}

// Dial connects to a port of a Pod through the API at an address. The context bounds connecting, not the connection.
func Dial(ctx context.Context, t http.RoundTripper, address string, to Target) (net.Conn, error) {
	socket, err := upgrade(ctx, t, address, to)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	conn, err := spdy.NewClientConnection(pipe{ReadWriteCloser: socket})
	if err != nil {
		return nil, unreachable(to, err)
	}
	out, err := open(conn, to)
	if err != nil {
		return nil, errors.Join(unreachable(to, err), conn.Close())
	}
	if !stop() {
		return nil, errors.Join(unreachable(to, ctx.Err()), conn.Close())
	}
	return out, nil
}

func unreachable(to Target, err error) error {
	return fault.New(fault.Unreachable, "PodUnreachable", "the API server does not connect to port %d of Pod %s", to.Port, to.Pod).From(err)
}

// upgrade makes a socket of a request to the API.
func upgrade(ctx context.Context, t http.RoundTripper, address string, to Target) (io.ReadWriteCloser, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the address of the API cannot be used: %w", err)
	}
	at := base.JoinPath("api", "v1", "namespaces", to.Namespace, "pods", to.Pod, "portforward")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	req.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	req.Header.Set(httpstream.HeaderProtocolVersion, protocol)
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, unreachable(to, err)
	}
	socket, is := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !is {
		problem, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
		return nil, errors.Join(unreachable(to, fmt.Errorf("HTTP status %d: %s", resp.StatusCode, problem)), resp.Body.Close())
	}
	return socket, nil
}

// open opens the two streams of a forwarded connection: that of the data, and that on which the other side says what went wrong.
func open(conn httpstream.Connection, to Target) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(to.Port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	problems, err := conn.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	if err := problems.Close(); err != nil { // nothing is sent on it
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	out := &forwarded{pipe: pipe{ReadWriteCloser: data}, conn: conn, to: to}
	go out.listen(problems)
	return out, nil
}

// forwarded is a connection to a port of a Pod.
type forwarded struct {
	pipe
	conn httpstream.Connection
	to   Target
	once sync.Once
	err  error
}

// listen closes the connection when the other side says that something went wrong.
func (f *forwarded) listen(problems io.Reader) {
	if text, _ := io.ReadAll(io.LimitReader(problems, maxProblem)); len(text) > 0 {
		_ = f.Close()
	}
}

// Close implements net.Conn.
func (f *forwarded) Close() error {
	f.once.Do(func() { f.err = f.conn.Close() })
	return f.err
}

// RemoteAddr implements net.Conn.
func (f *forwarded) RemoteAddr() net.Addr {
	return name(f.to.Namespace + "/" + f.to.Pod + ":" + strconv.Itoa(f.to.Port))
}

// pipe is a connection without addresses and deadlines: who waits on it closes it.
type pipe struct{ io.ReadWriteCloser }

// LocalAddr implements net.Conn.
func (pipe) LocalAddr() net.Addr { return name("") }

// RemoteAddr implements net.Conn.
func (pipe) RemoteAddr() net.Addr { return name("") }

// SetDeadline implements net.Conn.
func (pipe) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (pipe) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (pipe) SetWriteDeadline(time.Time) error { return nil }

// name is an address.
type name string

// Network implements net.Addr.
func (name) Network() string { return "portforward" }

// String implements net.Addr.
func (n name) String() string { return string(n) }
