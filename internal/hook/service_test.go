package hook

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/test/hooktest"
)

// RT-09: an extension behind a Service is looked up by the Service's name in the cluster, must have a certificate for that
// name, and is called at the Service's port, below its path. The name server plays that of a cluster; all else is real.
func TestService(t *testing.T) {
	const host = "my-ext.ext-system.svc"
	asked := nameServer(t, host)
	x := hooktest.Start(t, hooktest.Options{Certificate: hooktest.Certificate{Name: host}, Prefix: "/below/this"})
	var seen *http.Request
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), func(w http.ResponseWriter, r *http.Request) {
		seen = r
		hooktest.Raw(good)(w, r)
	})
	c := x.ExtensionConfig("ext")
	port := int32(x.Listener.Addr().(*net.TCPAddr).Port)
	c.Spec.ClientConfig.URL = ""
	c.Spec.ClientConfig.Service = runtimev1.ServiceReference{Namespace: "ext-system", Name: "my-ext", Port: &port, Path: "/below/this/"}
	w := newWorld(t)
	w.mustDiscover(c)
	call, _ := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
		t.Fatal(err)
	}
	want := "/below/this/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/check"
	if name, _, _ := net.SplitHostPort(seen.Host); name != host || seen.TLS.ServerName != host || seen.URL.Path != want {
		t.Errorf("the extension saw %s (TLS: %s) %s, want %s %s", seen.Host, seen.TLS.ServerName, seen.URL.Path, host, want)
	}
	if got := <-asked; got != host+"." {
		t.Errorf("the name server was asked for %s first", got)
	}

	c.Spec.ClientConfig.Service.Name = "other" // which is not known, and which the certificate is not for
	c.Generation++
	if s := w.discover(c); s.Problem == nil || s.Problem.Message != "the name other.ext-system.svc cannot be resolved" {
		t.Errorf("a Service that does not exist: %v", s.Problem)
	}
}

// nameServer makes a name server on the loopback address, which knows one host, the default one until the test ends. It
// tells the names that were asked for.
func nameServer(t *testing.T, host string) <-chan string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 100)
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if name, answer := resolve(buffer[:n], host+"."); answer != nil {
				asked <- name
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = conn.Close()
	})
	return asked
}

// resolve answers a question of the domain name system: host is at the loopback address, no other name exists.
func resolve(question []byte, host string) (name string, answer []byte) {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return "", nil
	}
	q := m.Questions[0]
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionAvailable: true}
	m.Additionals = nil
	switch {
	case !strings.EqualFold(q.Name.String(), host):
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	answer, err := m.Pack()
	if err != nil {
		return "", nil
	}
	return q.Name.String(), answer
}
