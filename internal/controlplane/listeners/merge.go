package listeners

import (
	"errors"
	"net"
	"sync"
)

// mergedListener implements [Merge].
type mergedListener struct {
	first, second net.Listener
	conns         chan net.Conn
	errs          chan error
	done          chan struct{}
	close         sync.Once
}

// Merge returns a listener that accepts connections of both. Its address is the address of the first. API servers
// listen with it at several addresses, for example on loopback and at the endpoint of their cluster. This file is also
// compiled into programs of other Kubernetes versions, so it imports nothing of Slipway.
func Merge(first, second net.Listener) net.Listener {
	j := &mergedListener{first: first, second: second, conns: make(chan net.Conn), errs: make(chan error), done: make(chan struct{})}
	go j.accept(first)
	go j.accept(second)
	return j
}

func (j *mergedListener) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			select {
			case j.errs <- err: // the server waits before it accepts again, for example if there are too many open files
			case <-j.done:
				return
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		select {
		case j.conns <- c:
		case <-j.done:
			_ = c.Close()
			return
		}
	}
}

// Accept implements net.Listener.
func (j *mergedListener) Accept() (net.Conn, error) {
	select {
	case c := <-j.conns:
		return c, nil
	case err := <-j.errs:
		return nil, err
	case <-j.done:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (j *mergedListener) Addr() net.Addr { return j.first.Addr() }

// Close implements net.Listener.
func (j *mergedListener) Close() error {
	var err error
	j.close.Do(func() {
		close(j.done)
		err = errors.Join(j.first.Close(), j.second.Close())
	})
	return err
}
