package loadbalancer_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/local/loadbalancer"
)

// asProcess makes this test binary run a load balancer.
const asProcess = "play-load-balancer"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asProcess {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := loadbalancer.RunInFolder(ctx, loadbalancer.Folder(os.Args[2]), time.Now); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// apiServer plays the API server of a member: it says its name, and is ready or not.
type apiServer struct {
	*httptest.Server
	name  string
	ready atomic.Bool
	asked atomic.Int64
	// expired is what it shows in the place of its certificate.
	expired atomic.Pointer[tls.Certificate]
}

func newAPIServer(t *testing.T, name string) *apiServer {
	t.Helper()
	s := &apiServer{name: name}
	s.ready.Store(true)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			if !s.ready.Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
		case "/stream": // a watch
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			s.asked.Add(1)
			_, _ = io.WriteString(w, name)
		}
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if cert := s.expired.Load(); cert != nil {
			return &tls.Config{Certificates: []tls.Certificate{*cert}, NextProtos: []string{"h2", "http/1.1"}}, nil //nolint:gosec // a test
		}
		return nil, nil
	}}
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *apiServer) member(leaving bool) loadbalancer.Member {
	return loadbalancer.Member{Name: s.name, Address: netip.MustParseAddrPort(s.Listener.Addr().String()), Leaving: leaving}
}

// client asks through the load balancer, on a connection of its own each time where fresh.
func client(servers []*apiServer, fresh bool) *http.Client {
	pool := x509.NewCertPool()
	for _, s := range servers {
		pool.AddCert(s.Certificate())
	}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}, ForceAttemptHTTP2: true, DisableKeepAlives: fresh,
	}}
}

func get(c *http.Client, url string) (string, error) {
	r, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	return string(body), err
}

// serve runs a load balancer in this process.
func serve(t *testing.T, members ...loadbalancer.Member) (*loadbalancer.Balancer, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := loadbalancer.New(time.Now)
	b.Set(members)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("it ended with: %v", err)
		}
	})
	return b, "https://" + l.Addr().String()
}

// until waits for something that happens by itself.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it did not happen within 30 s: %s", what)
		}
	}
}

func answering(b *loadbalancer.Balancer, names ...string) func() bool {
	return func() bool { return slices.Equal(b.State().Healthy, names) }
}

// Connections go to all members, and none to one that is not ready or leaves.
func TestChoice(t *testing.T) {
	servers := []*apiServer{newAPIServer(t, "cp-1"), newAPIServer(t, "cp-2"), newAPIServer(t, "cp-3")}
	b, url := serve(t, servers[0].member(false), servers[1].member(false), servers[2].member(false))
	until(t, "all answer", answering(b, "cp-1", "cp-2", "cp-3"))
	streams := client(servers, true)
	var bodies []io.Closer
	for range 6 { // each stays open, so that the next goes elsewhere
		r, err := streams.Get(url + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, r.Body)
	}
	for _, c := range bodies {
		defer func() { _ = c.Close() }()
	}
	servers[0].ready.Store(false)
	until(t, "one is not ready", answering(b, "cp-2", "cp-3"))
	if problem := b.State().Problems["cp-1"]; !strings.Contains(problem, "status 500") {
		t.Errorf("why cp-1 does not answer: %q", problem)
	}
	b.Set([]loadbalancer.Member{servers[0].member(false), servers[1].member(true), servers[2].member(false)})
	for range 10 {
		if got, err := get(client(servers, true), url); err != nil || got != "cp-3" {
			t.Errorf("answered by %q, %v; want cp-3", got, err)
		}
	}
	b.Set([]loadbalancer.Member{servers[0].member(false)})
	if got, err := get(client(servers, true), url); err != nil || got != "cp-1" {
		t.Errorf("with no other member, one that is not ready is tried: %q, %v", got, err)
	}
}

// No request is lost while members come and leave, and when the process of one ends as kube-apiserver's does.
func TestNoRequestIsLost(t *testing.T) {
	servers := []*apiServer{newAPIServer(t, "cp-1"), newAPIServer(t, "cp-2"), newAPIServer(t, "cp-3")}
	b, url := serve(t, servers[0].member(false), servers[1].member(false))
	until(t, "both answer", answering(b, "cp-1", "cp-2"))
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var asked atomic.Int64
	for i := range 8 {
		c := client(servers, i%2 == 0)
		wait.Go(func() {
			for ctx.Err() == nil {
				if _, err := get(c, url); err != nil && ctx.Err() == nil {
					t.Errorf("a request was lost: %v", err)
				}
				asked.Add(1)
			}
		})
	}
	b.Set([]loadbalancer.Member{servers[0].member(true), servers[1].member(false), servers[2].member(false)})
	until(t, "the third answers", answering(b, "cp-1", "cp-2", "cp-3"))
	servers[0].Config.SetKeepAlivesEnabled(false) // kube-apiserver ends what it has begun, and says goodbye
	until(t, "the third is used", func() bool { return servers[2].asked.Load() > 100 })
	b.Set([]loadbalancer.Member{servers[1].member(false), servers[2].member(false)})
	before := servers[0].asked.Load()
	until(t, "the others go on", func() bool { return servers[2].asked.Load() > 1000 })
	stop()
	wait.Wait()
	t.Logf("%d requests, %d of them to the one that left after it was not a member any more", asked.Load(), servers[0].asked.Load()-before)
}

// However many clients connect in that moment, and keep their connections: a load balancer that is to end does.
func TestEndsWhileClientsConnect(t *testing.T) {
	server := newAPIServer(t, "cp-1")
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		b := loadbalancer.New(time.Now)
		b.Set([]loadbalancer.Member{server.member(false)})
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- b.Serve(ctx, l) }()
		var clients sync.WaitGroup
		connections := make(chan net.Conn, 1000) // more than there will be
		for range 4 {
			clients.Go(func() {
				for range 100 {
					c, err := net.Dial("tcp", l.Addr().String())
					if err != nil {
						return
					}
					connections <- c // it stays open
				}
			})
		}
		for range 20 {
			defer func(c net.Conn) { _ = c.Close() }(<-connections)
		}
		stop()
		deadline := time.NewTimer(20 * time.Second)
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-deadline.C:
			t.Fatal("it does not end")
		}
		clients.Wait()
		close(connections)
		for c := range connections {
			_ = c.Close()
		}
	}
}

// What is sent to a machine that is gone is not waited for without end.
func TestLostMember(t *testing.T) {
	alive := newAPIServer(t, "cp-2")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers, as a machine that was cut off
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	b, url := serve(t, loadbalancer.Member{Name: "cp-1", Address: netip.MustParseAddrPort(silent.Addr().String())})
	failed := make(chan error, 1)
	go func() {
		_, err := get(client([]*apiServer{alive}, true), url)
		failed <- err
	}()
	until(t, "the problem is known", func() bool { return b.State().Problems["cp-1"] != "" })
	b.Set([]loadbalancer.Member{{Name: "cp-1", Address: netip.MustParseAddrPort(silent.Addr().String())}, alive.member(false)})
	if err := <-failed; err == nil || strings.Contains(err.Error(), "Client.Timeout") {
		t.Errorf("the client of a lost member: %v; its connection should have been closed", err)
	}
	if got, err := get(client([]*apiServer{alive}, true), url); err != nil || got != "cp-2" {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

// A process whose address is taken is not started again and again: a tenant chooses the port.
func TestAddressTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	starts := make(chan string, 100)
	var k *loadbalancer.Supervisor
	cfg := loadbalancer.Config{Listen: netip.MustParseAddrPort(taken.Addr().String())}
	ended := make(chan struct{}, 100)
	k = &loadbalancer.Supervisor{Root: t.TempDir(), Command: []string{os.Args[0], asProcess}, OnExit: func(name string) {
		starts <- name
		_, _ = k.Ensure(name, cfg) // as a controller does that is woken by the end
		ended <- struct{}{}
	}}
	if _, err := k.Ensure("default.demo", cfg); err != nil {
		t.Fatal(err)
	}
	<-ended
	for range 50 {
		s, err := k.Ensure("default.demo", cfg)
		if err != nil || s.Running || !strings.Contains(s.Failure, "cannot listen at "+cfg.Listen.String()) {
			t.Fatalf("got %+v, %v", s, err)
		}
	}
	if n := len(starts); n > 2 {
		t.Errorf("it was started %d times at once", n)
	}
}

// A process outlives who started it, is taken over, follows its members, is started again when it died, and removed.
func TestKeeper(t *testing.T) {
	servers := []*apiServer{newAPIServer(t, "cp-1"), newAPIServer(t, "cp-2")}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := netip.MustParseAddrPort(free.Addr().String())
	_ = free.Close()
	root := t.TempDir()
	ended := make(chan string, 10)
	first := &loadbalancer.Supervisor{Root: root, Command: []string{os.Args[0], asProcess}, OnExit: func(name string) { ended <- name }}
	t.Cleanup(func() { _ = loadbalancer.StopAll(context.Background(), root) })
	cfg := loadbalancer.Config{Listen: listen, Members: []loadbalancer.Member{servers[0].member(false)}}
	ensure := func(k *loadbalancer.Supervisor) loadbalancer.Status {
		t.Helper()
		if _, err := k.Ensure("default.demo", cfg); err != nil {
			t.Fatal(err)
		}
		until(t, "it runs", func() bool {
			s, found, err := k.Status("default.demo")
			return err == nil && found && s.Running && len(s.State.Healthy) == len(cfg.Members)
		})
		s, _, _ := k.Status("default.demo")
		return s
	}
	one := ensure(first)
	if got, err := get(client(servers, true), "https://"+listen.String()); err != nil || got != "cp-1" {
		t.Errorf("through the process: %q, %v", got, err)
	}
	second := &loadbalancer.Supervisor{Root: root, Command: first.Command}
	cfg.Members = []loadbalancer.Member{servers[1].member(false)}
	if two := ensure(second); two.PID != one.PID {
		t.Errorf("process %d was started beside %d", two.PID, one.PID)
	}
	until(t, "it follows", func() bool {
		got, err := get(client(servers, true), "https://"+listen.String())
		return err == nil && got == "cp-2"
	})
	if err := syscall.Kill(one.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if name := <-ended; name != "default.demo" {
		t.Errorf("the end of %q was told", name)
	}
	until(t, "it is started again", func() bool {
		_, err := second.Ensure("default.demo", cfg)
		s, _, _ := second.Status("default.demo")
		return err == nil && s.Running
	})
	if three := ensure(second); three.PID == one.PID {
		t.Error("it is said to run though it was killed")
	}
	if err := second.Remove(t.Context(), "default.demo"); err != nil {
		t.Error(err)
	}
	for range 5 { // removed while it starts, before it has its lock
		for range 3 {
			if _, err := second.Ensure("default.demo", cfg); err != nil {
				t.Error(err)
			}
		}
		if err := second.Remove(t.Context(), "default.demo"); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "default.demo")); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
	if _, err := get(client(servers, true), "https://"+listen.String()); err == nil {
		t.Error("it answers after its removal")
	}
	if _, err := second.Ensure("../elsewhere", cfg); err == nil {
		t.Error("a name led out of the folder")
	}
}

// A load balancer goes to another data directory without noticing: it follows its members there, and ends when its folder is gone.
func TestHandedOver(t *testing.T) {
	servers := []*apiServer{newAPIServer(t, "cp-1"), newAPIServer(t, "cp-2")}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := loadbalancer.Config{Listen: netip.MustParseAddrPort(free.Addr().String()), Members: []loadbalancer.Member{servers[0].member(false)}}
	_ = free.Close()
	ended := make(chan string, 1)
	a := &loadbalancer.Supervisor{Root: t.TempDir(), Command: []string{os.Args[0], asProcess}, OnExit: func(name string) { ended <- name }}
	b := &loadbalancer.Supervisor{Root: filepath.Join(t.TempDir(), "balancers"), Command: a.Command}
	t.Cleanup(func() {
		_ = errors.Join(loadbalancer.StopAll(context.Background(), a.Root), loadbalancer.StopAll(context.Background(), b.Root))
	})
	status := func(k *loadbalancer.Supervisor, answering string) loadbalancer.Status {
		t.Helper()
		if _, err := k.Ensure("default.demo", cfg); err != nil {
			t.Fatal(err)
		}
		until(t, answering+" answers", func() bool {
			s, found, err := k.Status("default.demo")
			return err == nil && found && s.Running && slices.Equal(s.State.Healthy, []string{answering})
		})
		s, _, _ := k.Status("default.demo")
		return s
	}
	first := status(a, "cp-1")
	if err := datadir.Rename(filepath.Join(a.Root, "default.demo"), filepath.Join(b.Root, "default.demo")); err != nil {
		t.Fatal(err)
	}
	cfg.Members = []loadbalancer.Member{servers[1].member(false)}
	if second := status(b, "cp-2"); second.PID != first.PID {
		t.Errorf("process %d was started beside %d", second.PID, first.PID)
	}
	if _, found, err := a.Status("default.demo"); found || err != nil {
		t.Errorf("the first has it still: %v, %v", found, err)
	}
	if err := os.RemoveAll(filepath.Join(b.Root, "default.demo")); err != nil {
		t.Fatal(err)
	}
	<-ended
}
