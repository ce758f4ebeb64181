package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Certificates are checked every hour; an error does not end that.
func TestKeepFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		looked := 0
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			renewPeriodically(ctx, func() error { looked++; return errors.New("disk full") })
		}()
		time.Sleep(3*checkEvery + time.Minute)
		synctest.Wait()
		if looked != 3 {
			t.Errorf("looked %d times in a little more than three hours", looked)
		}
		cancel()
		<-ended
	})
}

// A certificate that is renewed while the cluster runs is served without a restart, and what an administrator had
// before goes on working.
func TestRenewedCertificateIsServed(t *testing.T) {
	var age atomic.Int64
	age.Store(int64(300 * 24 * time.Hour))
	clock := func() time.Time { return time.Now().Add(-time.Duration(age.Load())) }
	folder, err := os.MkdirTemp("", "slipway-plane-") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	dir := datadir.Dir(filepath.Join(folder, "data"))
	m, err := StartManagement(t.Context(), ManagementConfig{Dir: dir, Listen: "127.0.0.1:0", Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}()
	if err := m.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(m.Server)
	if err != nil {
		t.Fatal(err)
	}
	served := func() *x509.Certificate {
		t.Helper()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(before.CAData)
		conn, err := tls.Dial("tcp", address.Host, &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0]
	}
	old := served()
	age.Store(0)
	tcp, err := net.ResolveTCPAddr("tcp", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	if err := newManagementPKI(ManagementConfig{Dir: dir, Now: clock}, tcp).ensure(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); served().Equal(old); {
		if time.Now().After(deadline) {
			t.Fatal("the old certificate is still served")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := kubernetes.NewForConfigOrDie(before).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("with the kubeconfig of before: %v", err)
	}
}

// M7: with data that relies on it, an authority or signing key that is lost is not recreated.
func TestLostAuthority(t *testing.T) {
	for _, lost := range []string{"ca.crt", "ca.key", "sa.key"} {
		t.Run(lost, func(t *testing.T) {
			dir := datadir.Dir(t.TempDir())
			m := newManagementPKI(ManagementConfig{Dir: dir, Now: time.Now}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6440})
			if err := m.ensure(); err != nil {
				t.Fatal(err)
			}
			path := dir.Path("pki", lost)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(dir.Path("etcd", "member"), 0o700); err != nil {
				t.Fatal(err)
			}
			err := m.ensure()
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), path) || !strings.Contains(fault.UserMessage(err), "backup") {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("%s was made anew: %v", path, err)
			}
		})
	}
}
