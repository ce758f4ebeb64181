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

	"github.com/coder/websocket"
)

// channels is the WebSocket port-forwarding protocol of kubelets, to which API servers forward: each message starts
// with a channel number, and the first message of a channel starts with its port in two bytes.
const channels = "v4.channel.k8s.io"

// The channels of the only forwarded port, in the order that the protocol defines: data, then errors.
const (
	dataChannel = iota
	problemChannel
	channelCount
)

const (
	// portBytes is the length of the port number at the start of each channel.
	portBytes = 2
	// maxMessage limits the size of a message that is read, in bytes.
	maxMessage = 1 << 20
)

// errRefused means that the API server, or a proxy in front of it, does not upgrade the request to a WebSocket.
var errRefused = errors.New("the server does not accept WebSocket connections")

// dialWebSocket connects with a WebSocket, which [Dial] tries first. It returns errRefused if another protocol may be
// accepted.
func dialWebSocket(ctx context.Context, t http.RoundTripper, at *url.URL, to Target) (net.Conn, error) {
	with := *at
	with.RawQuery = url.Values{"ports": {strconv.Itoa(to.Port)}}.Encode()
	ws, answer, err := websocket.Dial(ctx, with.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Subprotocols: []string{channels},
	})
	switch {
	case err != nil && answer != nil:
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	case err != nil:
		return nil, err
	case ws.Subprotocol() != channels:
		return nil, errors.Join(errRefused, ws.CloseNow())
	}
	ws.SetReadLimit(maxMessage)
	out := &channeled{ws: ws, to: to}
	out.ctx, out.cancel = context.WithCancel(context.Background())
	return out, nil
}

// channeled is a connection to a port of a Pod over a WebSocket. Only one goroutine may read at a time.
type channeled struct {
	plain
	ws     *websocket.Conn
	to     Target
	ctx    context.Context
	cancel context.CancelFunc

	message io.Reader // rest of the current message of the data channel
	got     [channelCount]int

	mu     sync.Mutex
	buffer []byte
}

func (c *channeled) Read(p []byte) (int, error) {
	for {
		if c.message == nil {
			if err := c.next(); err != nil {
				return 0, err
			}
		}
		n, err := c.message.Read(p)
		if errors.Is(err, io.EOF) {
			c.message, err = nil, nil
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// next waits for a message of the data channel. A message in the error channel ends the connection.
func (c *channeled) next() error {
	for {
		_, message, err := c.ws.Reader(c.ctx)
		if err != nil {
			return ended(err)
		}
		var channel [1]byte
		if _, err := io.ReadFull(message, channel[:]); errors.Is(err, io.EOF) {
			return errors.New("a message is empty and names no channel")
		} else if err != nil {
			return ended(err)
		}
		if channel[0] >= channelCount {
			return fmt.Errorf("a message is in channel %d, which was not opened", channel[0])
		}
		skipped, err := io.CopyN(io.Discard, message, int64(portBytes-c.got[channel[0]]))
		if c.got[channel[0]] += int(skipped); err != nil && !errors.Is(err, io.EOF) {
			return ended(err)
		}
		if channel[0] == dataChannel {
			c.message = message
			return nil
		}
		problem, err := io.ReadAll(io.LimitReader(message, maxProblem))
		if len(problem) > 0 {
			return unreachable(c.to, fmt.Errorf("%s", problem))
		}
		if err != nil {
			return ended(err)
		}
	}
}

// ended converts the error of a closed WebSocket to io.EOF.
func ended(err error) error {
	if websocket.CloseStatus(err) >= 0 {
		return io.EOF
	}
	return err
}

// Write implements net.Conn. The data is one WebSocket message, because kubelets do not reassemble fragments.
func (c *channeled) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffer = append(append(c.buffer[:0], dataChannel), p...)
	if err := c.ws.Write(c.ctx, websocket.MessageBinary, c.buffer); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *channeled) Close() error {
	c.cancel()
	return c.ws.CloseNow()
}

func (c *channeled) RemoteAddr() net.Addr { return c.to.addr() }
