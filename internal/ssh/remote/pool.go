package remote

import (
	"context"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	defaultHosts       = 20
	defaultDialTimeout = 15 * time.Second
	defaultIdle        = time.Minute
	defaultKeepalive   = 15 * time.Second
	defaultStall       = 2 * time.Minute
	// maxSessions limits the sessions of a connection. OpenSSH allows 10 by default, and one belongs to file transfers.
	maxSessions = 4
)

// Limits of a pool. Zero values have defaults.
type Limits struct {
	// Hosts is the number of hosts at which something runs at the same time. Default: 20.
	Hosts int
	// Dial is the time for a connection with its handshake. Default: 15 s.
	Dial time.Duration
	// Idle is the time after which an unused connection is closed. Default: 1 min.
	Idle time.Duration
	// Keepalive is the interval of probes; a connection that misses one is closed. Default: 15 s.
	Keepalive time.Duration
	// Stall is the time without progress after which a file transfer ends. Default: 2 min.
	Stall time.Duration
}

func (l Limits) complete() Limits {
	if l.Hosts <= 0 {
		l.Hosts = defaultHosts
	}
	if l.Dial <= 0 {
		l.Dial = defaultDialTimeout
	}
	if l.Idle <= 0 {
		l.Idle = defaultIdle
	}
	if l.Keepalive <= 0 {
		l.Keepalive = defaultKeepalive
	}
	if l.Stall <= 0 {
		l.Stall = defaultStall
	}
	return l
}

// Pool opens and shares connections to hosts. Create it with [NewPool].
type Pool struct {
	limits Limits
	// slots limits the calls that run at the same time.
	slots   *slots
	damages damages

	mu     sync.Mutex
	links  map[string]*link
	closed bool
}

// link is a connection in the pool.
type link struct {
	key      string
	client   *ssh.Client
	sessions chan struct{}
	// jump is the connection through which this one goes.
	jump *link

	// users, idle and ended are guarded by the mutex of the pool.
	users int
	idle  *time.Timer
	ended bool

	// locked has one slot, which guards files, the connection for file transfers, and privileged. Unlike for a mutex, a
	// context can end the wait for it.
	locked chan struct{}
	files  *sftp.Client

	// dialing is closed when the connection attempt has ended with err.
	dialing chan struct{}
	err     error
	// privileged is set once the user was found to be root or to become root with sudo.
	privileged bool
}

func (l *link) lock(ctx context.Context) error {
	select {
	case l.locked <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) unlock() { <-l.locked }

// NewPool returns a pool without connections. The provider has one, and each command for hosts creates one.
func NewPool(l Limits) *Pool {
	l = l.complete()
	return &Pool{limits: l, slots: newSlots(l.Hosts), links: map[string]*link{}}
}

// Connect returns a host after a connection with the pinned key and the right user was established; a connection that
// is open is reused. Errors are faults with one of the reasons of this package. The host can be used until the pool is
// closed: a connection that was lost or closed as idle is opened again by the next call.
// Package ssh calls it for the controllers, and so do the commands under `slipway hosts`.
func (p *Pool) Connect(ctx context.Context, t Target) (*Host, error) {
	h := &Host{pool: p, target: t}
	return h, h.use(ctx, func(context.Context, *link) error { return nil })
}

// Close closes all connections. Later calls fail.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	var all []*link
	for _, l := range p.links {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		<-l.dialing
		p.end(l)
	}
}

// connect returns an open connection and marks it as used; the caller must release it.
func (p *Pool) connect(ctx context.Context, t Target) (*link, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, fault.New(fault.Unreachable, ReasonUnreachable, "the connections to hosts are closed because the program is stopping")
	}
	key := t.key()
	l := p.links[key]
	if l == nil {
		l = &link{key: key, sessions: make(chan struct{}, maxSessions), locked: make(chan struct{}, 1), dialing: make(chan struct{})}
		p.links[key] = l
		go p.dial(context.WithoutCancel(ctx), t, l)
	}
	l.users++
	if l.idle != nil {
		l.idle.Stop()
	}
	p.mu.Unlock()
	select {
	case <-l.dialing:
	case <-ctx.Done():
		p.release(l)
		return nil, unreachable(t, ctx.Err())
	}
	if l.err != nil {
		p.release(l)
		return nil, l.err
	}
	return l, nil
}

// dial opens the connection of a link. It is independent of the caller's context, because other callers wait for it.
func (p *Pool) dial(ctx context.Context, t Target, l *link) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.Dial)
	defer cancel()
	l.client, l.jump, l.err = p.open(ctx, t)
	if l.err != nil {
		p.forget(l)
		close(l.dialing)
		return
	}
	close(l.dialing)
	go p.watch(l)
}

func (p *Pool) open(ctx context.Context, t Target) (*ssh.Client, *link, error) {
	h, err := newHandshake(t)
	if err != nil {
		return nil, nil, err
	}
	if t.Jump == nil {
		client, err := h.dial(ctx, directly)
		return client, nil, err
	}
	jump, err := p.connect(ctx, *t.Jump)
	if err != nil {
		return nil, nil, err
	}
	client, err := h.dial(ctx, through(jump.client))
	if err != nil {
		p.release(jump)
		return nil, nil, err
	}
	return client, jump, nil
}

// watch sends probes until the connection has ended, and then forgets it.
func (p *Pool) watch(l *link) {
	ended := make(chan struct{})
	go func() {
		_ = l.client.Wait()
		close(ended)
	}()
	ticker := time.NewTicker(p.limits.Keepalive)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			p.end(l)
			return
		case <-ticker.C:
			if !probe(l.client, p.limits.Keepalive) {
				p.end(l)
				return
			}
		}
	}
}

// probe reports whether the server responds in time.
func probe(client *ssh.Client, timeout time.Duration) bool {
	response := make(chan error, 1)
	go func() {
		_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
		response <- err
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-response:
		return err == nil
	case <-timer.C:
		return false
	}
}

// release ends the use of a link. The last user starts the timer that closes it.
func (p *Pool) release(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.users--
	if l.users > 0 || l.ended {
		return
	}
	l.idle = time.AfterFunc(p.limits.Idle, func() {
		p.mu.Lock()
		unused := l.users == 0
		if unused { // no new user finds it from here on
			p.remove(l)
		}
		p.mu.Unlock()
		if unused {
			p.end(l)
		}
	})
}

// forget removes a link, so that the next call connects again.
func (p *Pool) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(l)
}

// remove is forget for callers that hold the mutex.
func (p *Pool) remove(l *link) {
	l.ended = true
	if p.links[l.key] == l {
		delete(p.links, l.key)
	}
}

// abandon forgets a link at once and closes its connection in the background, because closing may wait for a host that
// does not respond.
func (p *Pool) abandon(l *link) {
	p.forget(l)
	go p.end(l)
}

// end closes the connection of a link once, and releases its jump host.
func (p *Pool) end(l *link) {
	p.forget(l)
	if l.client == nil {
		return
	}
	_ = l.client.Close()
	p.mu.Lock()
	jump := l.jump
	l.jump = nil
	p.mu.Unlock()
	if jump != nil {
		p.release(jump)
	}
}
