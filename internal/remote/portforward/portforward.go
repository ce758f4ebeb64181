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
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fault"
)

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

// Dial connects to a port of a Pod through the API at an address. The context bounds connecting, not the connection. It is a WebSocket,
// or, where something on the way refuses that, the older SPDY, which takes 0.8 MB for as long as it is open.
func Dial(ctx context.Context, t http.RoundTripper, address string, to Target) (net.Conn, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the address of the API cannot be used: %w", err)
	}
	at := base.JoinPath("api", "v1", "namespaces", to.Namespace, "pods", to.Pod, "portforward")
	conn, err := dialWebSocket(ctx, t, at, to)
	if errors.Is(err, errRefused) {
		conn, err = dialSPDY(ctx, t, at, to)
	}
	if err != nil {
		return nil, unreachable(to, err)
	}
	return conn, nil
}

func unreachable(to Target, err error) error {
	return fault.New(fault.Unreachable, "PodUnreachable", "the API server does not connect to port %d of Pod %s", to.Port, to.Pod).From(err)
}

// pipe is a connection of a stream.
type pipe struct {
	io.ReadWriteCloser
	plain
}

// plain is what a connection has that knows no addresses and deadlines: who waits on it closes it.
type plain struct{}

// LocalAddr implements net.Conn.
func (plain) LocalAddr() net.Addr { return name("") }

// RemoteAddr implements net.Conn.
func (plain) RemoteAddr() net.Addr { return name("") }

// SetDeadline implements net.Conn.
func (plain) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (plain) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (plain) SetWriteDeadline(time.Time) error { return nil }

// addr is the address of the port.
func (t Target) addr() net.Addr { return name(t.Namespace + "/" + t.Pod + ":" + strconv.Itoa(t.Port)) }

// name is an address.
type name string

// Network implements net.Addr.
func (name) Network() string { return "portforward" }

// String implements net.Addr.
func (n name) String() string { return string(n) }
