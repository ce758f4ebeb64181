package loadbalancer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipwayhq/slipway/internal/pause"
)

// Timeouts and intervals of a load balancer.
const (
	// dialTimeout is the time for a member to accept a connection before the next member is tried.
	dialTimeout = 2 * time.Second
	// leavingIdleTimeout is the idle time after which a connection to a leaving member is closed.
	leavingIdleTimeout = 2 * time.Second
	// sweepEvery is the interval of the sweeps of connections.
	sweepEvery = 500 * time.Millisecond
)

// maxConnections limits the open connections of one load balancer; further connections are refused.
const maxConnections = 8192

// balancer distributes connections to members. The load balancer process ([RunInFolder]) has one. mu protects the other
// fields, including the health and the connections of members.
type balancer struct {
	now func() time.Time

	mu      sync.Mutex
	members map[string]*member // by name; removed members are included while they have connections
	open    int
}

// member is one API server with its health and connections.
type member struct {
	Member
	// gone is set if the configuration does not contain the member any more.
	gone        bool
	health      health
	connections map[*connection]struct{}
}

// connection connects a client to a member.
type connection struct {
	client, server net.Conn
	last           atomic.Int64 // time of the last transfer, in nanoseconds
}

func (c *connection) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// newBalancer returns a load balancer without members. [RunInFolder] calls it.
func newBalancer(now func() time.Time) *balancer {
	return &balancer{now: now, members: map[string]*member{}}
}

// Set replaces the members. It is called at the start, and whenever the file with the configuration has changed
// ([balancer.follow]).
func (b *balancer) Set(members []Member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.members {
		m.gone = true
	}
	for _, want := range members {
		m := b.members[want.Name]
		if m == nil || m.Address != want.Address {
			if m != nil { // another machine of this name
				closeAll(m)
			}
			m = &member{connections: map[*connection]struct{}{}}
			b.members[want.Name] = m
		}
		m.Member, m.gone = want, false
	}
	b.deleteUnused()
}

// deleteUnused deletes removed members without connections. mu must be held.
func (b *balancer) deleteUnused() {
	for name, m := range b.members {
		if m.gone && len(m.connections) == 0 {
			delete(b.members, name)
		}
	}
}

// Serve accepts connections until the context ends, and then closes all of them. [RunInFolder] calls it.
func (b *balancer) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { b.maintain(ctx) })
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // for example, no file descriptors are left
			if pause.Sleep(ctx, 10*time.Millisecond) != nil {
				return nil
			}
			continue
		}
		wait.Go(func() { b.handle(ctx, c) })
	}
}

// maintain checks members and sweeps connections until the context ends.
func (b *balancer) maintain(ctx context.Context) {
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { b.check(ctx) })
	for pause.Sleep(ctx, sweepEvery) == nil {
		b.sweep()
	}
}

// sweep closes connections to lost members, and idle connections to leaving members if another member can accept them.
func (b *balancer) sweep() {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.members {
		for c := range m.connections {
			idle := now.Sub(time.Unix(0, c.last.Load()))
			if m.health.isLost() || (m.Leaving || m.gone) && idle >= leavingIdleTimeout && b.hasAlternative(m) {
				c.close()
			}
		}
	}
	b.deleteUnused()
}

// hasAlternative reports whether another member can accept the clients of this one. mu must be held.
func (b *balancer) hasAlternative(than *member) bool {
	for _, m := range b.members {
		if m != than && !m.gone && !m.Leaving && m.health.ready {
			return true
		}
	}
	return false
}

// handle selects a member for the client and copies data until either side ends.
func (b *balancer) handle(ctx context.Context, client net.Conn) {
	if !b.enter() {
		_ = client.Close()
		return
	}
	defer b.leave()
	for _, m := range b.candidates() {
		server, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", m.Address.String())
		if err != nil {
			continue
		}
		c := &connection{client: client, server: server}
		c.last.Store(b.now().UnixNano())
		stop := context.AfterFunc(ctx, c.close)
		defer stop()
		b.trackConnection(m, c, true)
		b.copy(c)
		b.trackConnection(m, c, false)
		return
	}
	_ = client.Close()
}

func (b *balancer) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= maxConnections {
		return false
	}
	b.open++
	return true
}

func (b *balancer) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
}

func (b *balancer) trackConnection(m *member, c *connection, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if open {
		m.connections[c] = struct{}{}
		return
	}
	delete(m.connections, c)
}

// candidates returns the members in the order in which they are tried: healthy ones first, then those that are not
// leaving, then those with fewer connections.
func (b *balancer) candidates() []*member {
	b.mu.Lock()
	defer b.mu.Unlock()
	type ranked struct {
		m           *member
		rank, count int
	}
	var list []ranked
	for _, m := range b.members {
		if m.gone {
			continue
		}
		r := ranked{m: m, count: len(m.connections)}
		if !m.health.ready {
			r.rank += 2
		}
		if m.Leaving {
			r.rank++
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.count, b.count), cmp.Compare(a.m.Name, b.m.Name))
	})
	out := make([]*member, len(list))
	for i, r := range list {
		out[i] = r.m
	}
	return out
}

// copy copies data in both directions until both sides have ended, or one has failed.
func (b *balancer) copy(c *connection) {
	var wait sync.WaitGroup
	for _, way := range [][2]net.Conn{{c.client, c.server}, {c.server, c.client}} {
		from, to := way[0], way[1]
		wait.Go(func() {
			_, err := io.Copy(activityWriter{to, func() { c.last.Store(b.now().UnixNano()) }}, from)
			if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
				_ = half.CloseWrite()
				return
			}
			c.close()
		})
	}
	wait.Wait()
	c.close()
}

// activityWriter calls note for every write.
type activityWriter struct {
	io.Writer
	note func()
}

func (n activityWriter) Write(p []byte) (int, error) {
	n.note()
	return n.Writer.Write(p)
}

func closeAll(m *member) {
	for c := range m.connections {
		c.close()
	}
}
