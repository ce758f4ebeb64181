package sshtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Call is a script that a client ran.
type Call struct {
	// Script is its name.
	Script string
	// Parameters by name; a name that occurs several times has all values.
	Parameters map[string][]string
	// Input that followed the parameters.
	Input []byte
	// Sudo is set if it ran with sudo.
	Sudo bool
	// received is the standard input.
	received []byte
}

// Result is the result of a script.
type Result struct {
	Output, Errors string
	Code           int
}

// Script answers a script.
type Script func(Call) Result

// Server is a host.
type Server struct {
	// Root is the directory of the host's file system.
	Root string

	t        testing.TB
	listener net.Listener
	client   ssh.Signer
	pem      []byte

	mu          sync.Mutex
	hostKey     ssh.Signer
	scripts     map[string]Script
	calls       []Call
	conns       map[net.Conn]bool
	refuseUsers bool
	cutAfter    int64
	delay       time.Duration
	silent      bool
	logins      int
	lost        int
	frozen      bool
	cutFiles    bool
	// cut is closed by the next Cut.
	cut chan struct{}
}

// Start starts a host on a port of the loopback interface, which ends with the test. The script "privileges" reports
// root; other scripts fail until the test answers them.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, Root: t.TempDir(), scripts: map[string]Script{}, conns: map[net.Conn]bool{}, cut: make(chan struct{})}
	s.hostKey, _ = newKey(t)
	s.client, s.pem = newKey(t)
	s.Answer("privileges", "0\n")
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(s.serve)
	t.Cleanup(func() {
		_ = s.listener.Close()
		s.Cut()
		serving.Wait()
	})
	return s
}

func newKey(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// Target returns the target that reaches the host as root.
func (s *Server) Target() remote.Target {
	address, _ := s.listener.Addr().(*net.TCPAddr)
	return remote.Target{Address: "127.0.0.1", Port: address.Port, User: "root", PrivateKey: s.pem, HostKeys: []string{s.HostKey()}}
}

// HostKey returns the current host key as a line of authorized_keys.
func (s *Server) HostKey() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.hostKey.PublicKey())))
}

// ReplaceHostKey gives the host another key.
func (s *Server) ReplaceHostKey() {
	key, _ := newKey(s.t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hostKey = key
}

// Handle answers a script with a function.
func (s *Server) Handle(script string, f Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[script] = f
}

// Answer answers a script with an output.
func (s *Server) Answer(script, output string) {
	s.Handle(script, func(Call) Result { return Result{Output: output} })
}

// Calls returns the scripts that ran, in order, except for "privileges".
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call{}, s.calls...)
}

// Logins returns the number of connections that authenticated.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// RefuseUsers makes the host reject all keys.
func (s *Server) RefuseUsers(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuseUsers = refuse
}

// CutAfter cuts the connection once, after this number of bytes was written to files.
func (s *Server) CutAfter(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutAfter = bytes
}

// Delay delays the start of every script.
func (s *Server) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Silence makes the host accept connections without responding.
func (s *Server) Silence(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// CutFiles cuts the connections once, when a client starts a file transfer.
func (s *Server) CutFiles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutFiles = true
}

// LoseInput makes connections of scripts end before this number of bytes at the end of their input has arrived.
func (s *Server) LoseInput(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = bytes
}

// Freeze makes the host stop reading from its connections, which stay open until they are cut.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
}

// Cut closes all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
	for c := range s.conns {
		_ = c.Close()
	}
}

// wrote counts bytes that were written to files and cuts the connections when the limit is reached. It reports whether
// it did.
func (s *Server) wrote(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutAfter == 0 {
		return false
	}
	if s.cutAfter -= int64(n); s.cutAfter > 0 {
		return false
	}
	s.cutAfter = 0
	for c := range s.conns {
		_ = c.Close()
	}
	return true
}

func (s *Server) serve() {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		open.Go(func() {
			s.serveConn(conn)
			_ = conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

func (s *Server) serveConn(conn net.Conn) {
	s.mu.Lock()
	config := &ssh.ServerConfig{PublicKeyCallback: s.authenticate}
	config.AddHostKey(s.hostKey)
	silent := s.silent
	s.mu.Unlock()
	if silent {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	_, channels, requests, err := ssh.NewServerConn(freezingConn{conn, s}, config)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.logins++
	s.mu.Unlock()
	var open sync.WaitGroup
	defer open.Wait()
	open.Go(func() { ssh.DiscardRequests(requests) })
	for c := range channels {
		switch c.ChannelType() {
		case "session":
			open.Go(func() { s.serveSession(c) })
		case "direct-tcpip":
			open.Go(func() { forward(c) })
		default:
			_ = c.Reject(ssh.UnknownChannelType, "not supported")
		}
	}
}

func (s *Server) authenticate(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuseUsers || string(key.Marshal()) != string(s.client.PublicKey().Marshal()) {
		return nil, errors.New("unknown key")
	}
	return &ssh.Permissions{}, nil
}

// forward connects a channel to an address, as a jump host does.
func forward(c ssh.NewChannel) {
	var to struct {
		Host       string
		Port       uint32
		Originator string
		OriginPort uint32
	}
	if err := ssh.Unmarshal(c.ExtraData(), &to); err != nil {
		_ = c.Reject(ssh.ConnectionFailed, "invalid address")
		return
	}
	conn, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.ParseIP(to.Host), Port: int(to.Port)})
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer conn.Close()
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	go func() {
		_, _ = io.Copy(channel, conn)
		_ = channel.Close()
	}()
	_, _ = io.Copy(conn, channel)
}

// freezingConn is a connection for [Server.Freeze].
type freezingConn struct {
	net.Conn
	server *Server
}

// Read implements io.Reader.
func (c freezingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.server.mu.Lock()
	frozen, cut := c.server.frozen, c.server.cut
	c.server.mu.Unlock()
	if frozen && err == nil {
		<-cut
	}
	return n, err
}
