package controlplane

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Clients reach a management cluster at the addresses and by the names that its operator has named, and are asked who they are.
func TestManagementElsewhere(t *testing.T) {
	folder, err := os.MkdirTemp("", "slipway-plane-") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	dir := datadir.Dir(filepath.Join(folder, "data"))
	cfg := ManagementConfig{Dir: dir, Addresses: []string{"127.0.0.5", "127.0.0.6"}, Names: []string{"clusters.example.com", "192.0.2.7"}}
	run(t, cfg, func(kubernetes.Interface) {
		admin, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range [][2]string{{"127.0.0.1", ""}, {"127.0.0.5", ""}, {"127.0.0.6", "clusters.example.com"}, {"127.0.0.5", "192.0.2.7"}} {
			host, name := by[0], by[1]
			at := rest.CopyConfig(admin)
			at.Host, at.ServerName = strings.Replace(admin.Host, "127.0.0.1", host, 1), name
			if _, err := kubernetes.NewForConfigOrDie(at).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Errorf("at %s as %q: %v", host, name, err)
			}
			at.CertData, at.KeyData = nil, nil
			if _, err := kubernetes.NewForConfigOrDie(at).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
				t.Errorf("at %s, anyone reads namespaces", host)
			}
		}
		other := rest.CopyConfig(admin)
		other.ServerName = "other.example.com"
		if _, err := kubernetes.NewForConfigOrDie(other).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("it has a name that it was not given")
		}
	})
}

// An address that cannot be opened is named, and nothing stays open.
func TestListenElsewhere(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.8:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // the test ends
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, address := range []string{"192.0.2.1", "127.0.0.8"} {
		own, err := listenLoopback(t.Context(), "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		_, err = listenElsewhere(t.Context(), own, []string{"127.0.0.7", address})
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "cannot be opened at "+address) {
			t.Errorf("%s: %v", address, err)
		}
		for _, at := range []string{"127.0.0.7", "127.0.0.1"} {
			if conn, err := net.DialTimeout("tcp", net.JoinHostPort(at, port), time.Second); err == nil {
				_ = conn.Close()
				t.Errorf("%s: %s is still open", address, at)
			}
		}
	}
}
