package main

import (
	"io"
	"net"
	"sync"
)

// gate passes connections on to an extension, until it is shut: then it takes them and says nothing, which is the worst
// that an extension can do.
type gate struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func newGate(to string) (*gate, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{listener: listener, to: to}
	go g.accept()
	return g, nil
}

func (g *gate) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		g.conns = append(g.conns, conn)
		shut := g.shut
		g.mu.Unlock()
		if !shut {
			go g.pass(conn)
		}
	}
}

func (g *gate) pass(conn net.Conn) {
	other, err := net.Dial("tcp", g.to)
	if err != nil {
		_ = conn.Close()
		return
	}
	go func() {
		_, _ = io.Copy(other, conn)
		_ = other.Close()
	}()
	_, _ = io.Copy(conn, other)
	_ = conn.Close()
}

// set opens or shuts the gate. The connections there are end.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for _, conn := range g.conns {
		_ = conn.Close()
	}
	g.conns = nil
}
