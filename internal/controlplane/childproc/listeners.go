package childproc

import (
	"errors"
	"net"
	"sync"
)

// joined merges two listeners. Its address is the address of the first.
type joined struct {
	first, second net.Listener
	conns         chan net.Conn
	errs          chan error
	done          chan struct{}
	close         sync.Once
}

// Join returns a listener that accepts connections of both. Its address is the address of the first.
func Join(first, second net.Listener) net.Listener {
	j := &joined{first: first, second: second, conns: make(chan net.Conn), errs: make(chan error, 2), done: make(chan struct{})}
	go j.accept(first)
	go j.accept(second)
	return j
}

func (j *joined) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			j.errs <- err
			return
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
func (j *joined) Accept() (net.Conn, error) {
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
func (j *joined) Addr() net.Addr { return j.first.Addr() }

// Close implements net.Listener.
func (j *joined) Close() error {
	var err error
	j.close.Do(func() {
		close(j.done)
		err = errors.Join(j.first.Close(), j.second.Close())
	})
	return err
}
