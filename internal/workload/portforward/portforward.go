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

// maxProblem limits the size of an error message that is read, in bytes.
const maxProblem = 4 << 10

// Target is a port of a Pod. The KubeadmControlPlane controller and the controller of etcd snapshots fill it in.
type Target struct {
	Namespace, Pod string
	Port           int
}

// Transport returns a transport for [Dial] with the sockets and credentials of an API server connection. It uses
// HTTP/1.1, because its connections can be upgraded.
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

// Dial connects to a port of a Pod through the API server at an address. Package workload calls it for controllers that
// connect to etcd or read a certificate. The context limits the dialing, not the connection. Dial uses a WebSocket, or,
// if a component in between rejects that, the older SPDY, which takes 0.8 MB while it is open.
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

// pipe is a net.Conn on a stream.
type pipe struct {
	io.ReadWriteCloser
	plain
}

// plain provides the methods of net.Conn for addresses and deadlines as no-ops to the two kinds of connections. To end
// a blocked call, close the connection.
type plain struct{}

func (plain) LocalAddr() net.Addr { return name("") }

func (plain) RemoteAddr() net.Addr { return name("") }

func (plain) SetDeadline(time.Time) error { return nil }

func (plain) SetReadDeadline(time.Time) error { return nil }

func (plain) SetWriteDeadline(time.Time) error { return nil }

// addr is the address of the port.
func (t Target) addr() net.Addr { return name(t.Namespace + "/" + t.Pod + ":" + strconv.Itoa(t.Port)) }

// name is a net.Addr.
type name string

func (name) Network() string { return "portforward" }

func (n name) String() string { return string(n) }
