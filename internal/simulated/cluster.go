package simulated

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/simulated/store"
)

// cluster is a running simulated control plane: the HTTPS server in front of the shared api, and the state of its
// faults and etcd. [Server.Start] creates it.
type cluster struct {
	spec   Spec
	since  time.Time
	tenant *tenant
	faults *faults
	cancel context.CancelFunc
	server *http.Server
	leaf   *servingCertificate
	etcd   *store.EtcdCluster // nil if there are no members

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// equal reports whether two specs are the same. [Server.Start] starts a control plane anew if they differ, so every new
// field must be compared here.
func (s Spec) equal(o Spec) bool {
	return s.Cluster == o.Cluster && s.Version == o.Version && s.Address == o.Address &&
		bytes.Equal(s.CACert, o.CACert) && bytes.Equal(s.CAKey, o.CAKey) &&
		bytes.Equal(s.EtcdCert, o.EtcdCert) && bytes.Equal(s.EtcdKey, o.EtcdKey)
}

// status returns the status for [Server.Status].
func (c *cluster) status() Status {
	return Status{Exists: true, Running: true, Ready: !c.faults.down(), Since: c.since, Spec: c.spec}
}

// open prepares a cluster: its certificates, its api, its etcd and its behaviour.
func (s *Server) open(name string, spec Spec, f *faults) (*cluster, error) {
	authority, err := pki.ParsePair(spec.CACert, spec.CAKey)
	if err != nil {
		return nil, fault.New(fault.Invalid, "AuthorityInvalid", "the authority of Cluster %s cannot be used", spec.Cluster).From(err)
	}
	host, _, err := net.SplitHostPort(spec.Address)
	if err != nil {
		return nil, fmt.Errorf("the address %q of a simulated control plane: %w", spec.Address, err)
	}
	l := &servingCertificate{authority: authority, host: host, now: s.cfg.Now}
	if _, err := l.get(nil); err != nil {
		return nil, err
	}
	watching := s.simulator.Changed(name)
	keys, err := s.store.Keyspace(name, spec.Cluster.Namespace, watching)
	if err != nil {
		return nil, err
	}
	c := &cluster{spec: spec, since: s.cfg.Now(), faults: f, leaf: l, conns: map[net.Conn]struct{}{}}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(spec.CACert) // all certificates are trusted; the first one signs
	c.tenant = newTenant(keys, spec.Version, clients, f.delay)
	if err := c.openEtcd(s.cfg.Now); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	c.cancel = cancel
	if err := s.simulator.Join(ctx, name, c.tenant); err != nil {
		cancel()
		return nil, fmt.Errorf("beginning the simulated cluster %s: %w", name, err)
	}
	c.server = &http.Server{
		Handler: failingHandler{newLimitedHandler(quorumHandler{s.api, c}), f}, ErrorLog: log.New(io.Discard, "", 0), ConnState: c.follow,
		ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 3 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return withTenant(ctx, c.tenant) },
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, GetCertificate: l.get, NextProtos: []string{"h2", "http/1.1"},
		},
	}
	context.AfterFunc(ctx, func() { _ = c.server.Close() }) // ctx of the cluster, so that nothing retains a closed one
	return c, nil
}

// openEtcd prepares the etcd members. Connections to a Pod named etcd-NODE lead to the member of that Node.
func (c *cluster) openEtcd(now func() time.Time) error {
	if len(c.spec.EtcdCert) == 0 {
		return nil
	}
	authority, err := pki.ParsePair(c.spec.EtcdCert, c.spec.EtcdKey)
	if err != nil {
		return fault.New(fault.Invalid, "AuthorityInvalid", "the etcd authority of Cluster %s cannot be used", c.spec.Cluster).From(err)
	}
	c.etcd = store.NewEtcd(&Notes{c.tenant.Keys}, authority, now)
	c.tenant.Forward = c.forward
	return nil
}

// apiServerPort is the port of the api server Pods, kubeadm's default.
const apiServerPort = 6443

// forward serves a connection to a Pod of the control plane: to an etcd member, or to the api server, which all Nodes
// share.
func (c *cluster) forward(ctx context.Context, namespace, pod string, port int32, conn net.Conn) error {
	if namespace == metav1.NamespaceSystem {
		if node, ok := strings.CutPrefix(pod, "etcd-"); ok && port == store.EtcdPort {
			return c.etcd.Serve(node, conn)
		}
		if strings.HasPrefix(pod, "kube-apiserver-") && port == apiServerPort {
			return c.serveOne(ctx, conn)
		}
	}
	return fmt.Errorf("connection refused: nothing listens at port %d of Pod %s", port, pod)
}

// serveOne serves a connection until either end closes it or the context is done.
func (c *cluster) serveOne(ctx context.Context, conn net.Conn) error {
	one := &singleConn{Conn: conn, closed: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- c.server.ServeTLS(one, "", "") }()
	select {
	case <-one.closed:
	case <-ctx.Done():
		_ = one.Close()
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// singleConn is a listener for one connection; closing the connection closes the listener.
type singleConn struct {
	net.Conn
	taken  atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (s *singleConn) Accept() (net.Conn, error) {
	if s.taken.CompareAndSwap(false, true) {
		return s, nil
	}
	<-s.closed
	return nil, net.ErrClosed
}

func (s *singleConn) Addr() net.Addr { return s.LocalAddr() }

// Close implements net.Listener and net.Conn.
func (s *singleConn) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// quorumHandler serves the api of a cluster with etcd members. Without a quorum it rejects every request.
type quorumHandler struct {
	http.Handler
	cluster *cluster
}

func (a quorumHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if etcd := a.cluster.etcd; etcd == nil || etcd.HasQuorum() {
		a.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // the client may be gone
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Reason: metav1.StatusReasonInternalError, Message: "The members of etcd have no quorum: the request timed out",
	})
}

// serve handles requests until close is called or the context of the server is done.
func (c *cluster) serve(listener net.Listener) {
	go func() {
		_ = c.server.ServeTLS(faultListener{listener, c.faults}, "", "") // returns when close is called
	}()
}

// close closes the listener and all connections, and stops the behaviour of the cluster.
func (c *cluster) close() {
	c.cancel()
	_ = c.server.Close() // open connections are lost, as when a process is killed
}

// follow tracks the open connections, so that closeConnections can close them.
func (c *cluster) follow(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.conns, conn)
		return
	}
	if _, known := c.conns[conn]; !known && len(c.conns) >= connectionsAtOnce {
		_ = conn.Close() // its client reconnects after others have disconnected
		return
	}
	c.conns[conn] = struct{}{}
}

// closeConnections closes all connections if the cluster is made unreachable.
func (c *cluster) closeConnections() {
	if !c.faults.down() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.Close() // an error changes nothing
	}
}

// faultListener is a listener that closes new connections while the cluster is made unreachable.
type faultListener struct {
	net.Listener
	faults *faults
}

func (g faultListener) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil || !g.faults.down() {
			return conn, err
		}
		_ = conn.Close() // as if no server were listening
	}
}

// servingCertificate is the serving certificate. It is renewed halfway through its lifetime.
type servingCertificate struct {
	authority pki.Pair
	host      string
	now       func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	renew   time.Time
}

func (l *servingCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && l.now().Before(l.renew) {
		return l.current, nil
	}
	names, ips := []string{"localhost", "kubernetes", "kubernetes.default.svc"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	if ip := net.ParseIP(l.host); ip != nil {
		ips = append(ips, ip)
	} else {
		names = append(names, l.host)
	}
	pair, err := l.authority.Issue(pki.Leaf{User: "kube-apiserver", Names: names, IPs: ips}, l.now())
	if err != nil {
		return nil, fmt.Errorf("making a serving certificate: %w", err)
	}
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("making a serving certificate: %w", err)
	}
	l.current, l.renew = &cert, l.now().Add(pair.Cert.NotAfter.Sub(l.now())/2)
	return l.current, nil
}
