package balancer

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
)

// Times of a load balancer.
const (
	// dialTimeout is how long a member may take to accept a connection before the next one is tried.
	dialTimeout = 2 * time.Second
	// quiet is how long a connection to a member that leaves must have been quiet to be closed.
	quiet = 2 * time.Second
	// sweepEvery is how often connections are looked through.
	sweepEvery = 500 * time.Millisecond
)

// maxConnections bounds what one load balancer holds open; more are refused.
const maxConnections = 8192

// Balancer hands connections to members.
type Balancer struct {
	now func() time.Time

	mu      sync.Mutex
	members map[string]*member // by name, those that are gone included while they have connections
	held    int
}

// member is one API server with what is known of it.
type member struct {
	Member
	// gone tells that the configuration does not have it any more.
	gone        bool
	health      health
	connections map[*connection]struct{}
}

// connection is a client with its member.
type connection struct {
	client, server net.Conn
	last           atomic.Int64 // when something went through, in nanoseconds
}

func (c *connection) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// New returns a load balancer without members.
func New(now func() time.Time) *Balancer {
	return &Balancer{now: now, members: map[string]*member{}}
}

// Set makes these the members.
func (b *Balancer) Set(members []Member) {
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
	b.forget()
}

// forget drops members that are gone and have no connection left. It is called with mu held.
func (b *Balancer) forget() {
	for name, m := range b.members {
		if m.gone && len(m.connections) == 0 {
			delete(b.members, name)
		}
	}
}

// Serve accepts connections until the context ends; then all are closed.
func (b *Balancer) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { b.look(ctx) })
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // no descriptors left, for example
			if !pause(ctx, 10*time.Millisecond) {
				return nil
			}
			continue
		}
		wait.Go(func() { b.handle(ctx, c) })
	}
}

// look checks members and looks through connections until the context ends.
func (b *Balancer) look(ctx context.Context) {
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { b.check(ctx) })
	for pause(ctx, sweepEvery) {
		b.sweep()
	}
}

// sweep closes connections that keep a member from leaving, or a client waiting.
func (b *Balancer) sweep() {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.members {
		for c := range m.connections {
			idle := now.Sub(time.Unix(0, c.last.Load()))
			if m.health.lost() || (m.Leaving || m.gone) && idle >= quiet && b.other(m) {
				c.close()
			}
		}
	}
	b.forget()
}

// other reports whether there is a member besides this one that a client could go to. It is called with mu held.
func (b *Balancer) other(than *member) bool {
	for _, m := range b.members {
		if m != than && !m.gone && !m.Leaving && m.health.answers {
			return true
		}
	}
	return false
}

// handle finds a member for the client and copies until either side ends.
func (b *Balancer) handle(ctx context.Context, client net.Conn) {
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
		b.keep(m, c, true)
		b.copy(c)
		b.keep(m, c, false)
		return
	}
	_ = client.Close()
}

func (b *Balancer) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held >= maxConnections {
		return false
	}
	b.held++
	return true
}

func (b *Balancer) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held--
}

func (b *Balancer) keep(m *member, c *connection, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if open {
		m.connections[c] = struct{}{}
		return
	}
	delete(m.connections, c)
}

// candidates are the members to try: those that answer before those that are not known to, those that stay before those
// that leave, then those with fewer connections.
func (b *Balancer) candidates() []*member {
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
		if !m.health.answers {
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

// copy copies both ways until both sides have ended, or one has broken.
func (b *Balancer) copy(c *connection) {
	var wait sync.WaitGroup
	for _, way := range [][2]net.Conn{{c.client, c.server}, {c.server, c.client}} {
		from, to := way[0], way[1]
		wait.Go(func() {
			_, err := io.Copy(noting{to, func() { c.last.Store(b.now().UnixNano()) }}, from)
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

// noting tells of everything that is written.
type noting struct {
	io.Writer
	note func()
}

func (n noting) Write(p []byte) (int, error) {
	n.note()
	return n.Writer.Write(p)
}

func closeAll(m *member) {
	for c := range m.connections {
		c.close()
	}
}

// pause returns false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
