package machine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// startWorkload runs the control plane of a workload cluster, with everything that has to do with PodDisruptionBudgets,
// and returns a client of an administrator. Nodes are never given up: nothing sends heartbeats.
func startWorkload(t *testing.T) client.Client {
	t.Helper()
	const name = "ns.c"
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "slipway-test-") // not t.TempDir: sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	s := supervisor.New(context.Background(), supervisor.Config{
		Root: root, Command: []string{binary, "control-plane", "run", "--config"}, Versions: func() []string { return []string{"v1.36.3"} }, Now: time.Now,
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Remove(ctx, name); err != nil {
			t.Errorf("remove the control plane: %v", err)
		}
		s.Close()
		_ = os.RemoveAll(root)
	})
	admin := authorities(t, s.Folder(name).PKI())
	config := processconfig.Config{
		Cluster: "c", Version: "v1.36.3", Endpoint: "198.51.100.1:6443", ServiceCIDRs: []string{"198.51.100.64/26"}, PodCIDRs: []string{"198.51.100.128/25"},
		ControllerManager: []string{"--node-monitor-grace-period=1h"},
	}
	if _, err := s.Ensure(t.Context(), name, config); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		status, _, err := s.Status(name)
		if err == nil && status.Ready {
			c, err := client.New(&rest.Config{Host: "https://" + status.Local, TLSClientConfig: rest.TLSClientConfig{
				CertData: admin.CertPEM, KeyData: admin.KeyPEM, CAFile: filepath.Join(s.Folder(name).PKI(), "ca.crt"),
			}}, client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("control plane: %+v, %v", status, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// authorities makes what a HostedControlPlane's controller would, and the certificate of an administrator.
func authorities(t *testing.T, path string) pki.Pair {
	t.Helper()
	folder := pki.Folder{Path: path, Now: time.Now}
	var admin pki.Pair
	for _, name := range []string{processconfig.CA, processconfig.EtcdCA, processconfig.ProxyCA} {
		ca, err := folder.Authority(name, pki.Authority{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if name == processconfig.CA {
			if admin, err = ca.Issue(pki.Leaf{User: "test", Groups: []string{"system:masters"}, Client: true}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := folder.SigningKey(processconfig.SigningSA, ""); err != nil {
		t.Fatal(err)
	}
	return admin
}
