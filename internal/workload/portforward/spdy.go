package portforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// protocol is the port-forwarding protocol of Kubernetes inside the upgraded connection.
const protocol = "portforward.k8s.io"

// dialSPDY connects with SPDY. [Dial] calls it if the server rejects a WebSocket.
func dialSPDY(ctx context.Context, t http.RoundTripper, at *url.URL, to Target) (net.Conn, error) {
	socket, err := upgrade(ctx, t, at)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	conn, err := spdy.NewClientConnection(pipe{ReadWriteCloser: socket})
	if err != nil {
		return nil, err
	}
	out, err := open(conn, to)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if !stop() {
		return nil, errors.Join(ctx.Err(), conn.Close())
	}
	return out, nil
}

// upgrade upgrades a request to a bidirectional stream.
func upgrade(ctx context.Context, t http.RoundTripper, at *url.URL) (io.ReadWriteCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	req.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	req.Header.Set(httpstream.HeaderProtocolVersion, protocol)
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	socket, is := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !is {
		problem, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
		return nil, errors.Join(fmt.Errorf("HTTP status %d: %s", resp.StatusCode, problem), resp.Body.Close())
	}
	return socket, nil
}

// open opens the two streams of a forwarded connection: one for data, and one on which the server reports errors.
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
	// closed is set when this side has closed the connection, because the underlying connection accepts writes for a
	// moment longer.
	closed atomic.Bool
}

func (f *forwarded) Write(p []byte) (int, error) {
	if f.closed.Load() {
		return 0, net.ErrClosed
	}
	return f.pipe.Write(p)
}

// listen closes the connection when the server reports an error.
func (f *forwarded) listen(problems io.Reader) {
	if text, _ := io.ReadAll(io.LimitReader(problems, maxProblem)); len(text) > 0 {
		_ = f.Close()
	}
}

func (f *forwarded) Close() error {
	f.closed.Store(true)
	f.once.Do(func() { f.err = f.conn.Close() })
	return f.err
}

func (f *forwarded) RemoteAddr() net.Addr { return f.to.addr() }
