package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

const hostedName = "default.demo"

// hosted is a supervisor of real control planes below root.
func hosted(t *testing.T, root string) *supervisor.Supervisor {
	t.Helper()
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	return supervisor.New(t.Context(), supervisor.Config{
		Root: root, Command: []string{binary, "control-plane", "run", "--config"}, Now: time.Now, SeparateUsers: true,
		Versions: func() []string { return []string{"v1.36.3"} },
	})
}

// authorities makes what a HostedControlPlane's controller would, and a client certificate.
func authorities(t *testing.T, s *supervisor.Supervisor) pki.Pair {
	t.Helper()
	folder := pki.Folder{Path: s.Folder(hostedName).PKI(), Now: time.Now}
	var client pki.Pair
	for _, name := range []string{processconfig.CA, processconfig.EtcdCA, processconfig.ProxyCA} {
		ca, err := folder.Authority(name, pki.Authority{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if name == processconfig.CA {
			if client, err = ca.Issue(pki.Leaf{User: "test", Groups: []string{"system:masters"}, Client: true}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := folder.SigningKey(processconfig.SigningSA, ""); err != nil {
		t.Fatal(err)
	}
	return client
}

// hostedConfig has an endpoint whose address is on no machine, as before a cluster's network is there: the control plane
// runs all the same and is reached beside it.
func hostedConfig() processconfig.Config {
	return processconfig.Config{
		Cluster: "demo", Version: "v1.36.3", Endpoint: "198.51.100.1:6443",
		ServiceCIDRs: []string{"198.51.100.64/26"}, PodCIDRs: []string{"198.51.100.128/25"},
	}
}

func untilHosted(t *testing.T, s *supervisor.Supervisor, what string, is func(supervisor.Status) bool) supervisor.Status {
	t.Helper()
	var last supervisor.Status
	eventually(t, short, what, func() error {
		st, _, err := s.Status(hostedName)
		last = st
		if err == nil && !is(st) {
			err = os.ErrDeadlineExceeded
		}
		return err
	})
	return last
}

// A control plane killed is back with its data; one whose slipway was killed is taken over, not started twice.
func TestPlaneHostedKilledAndTakenOver(t *testing.T) {
	root, err := os.MkdirTemp("", "slipway-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	s := hosted(t, root)
	client := authorities(t, s)
	config := hostedConfig()
	ensure := func(s *supervisor.Supervisor) {
		t.Helper()
		if _, err := s.Ensure(t.Context(), hostedName, config); err != nil {
			t.Fatal(err)
		}
	}
	ensure(s)
	first := untilHosted(t, s, "a ready control plane", func(st supervisor.Status) bool { return st.Ready && st.EtcdReady })
	api := kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://" + first.Local, TLSClientConfig: rest.TLSClientConfig{
		CertData: client.CertPEM, KeyData: client.KeyPEM, CAFile: filepath.Join(s.Folder(hostedName).PKI(), "ca.crt"),
	}})
	announced(t, api)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := api.CoreV1().ConfigMaps("default").Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	killed := time.Now()
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := untilHosted(t, s, "a ready control plane again", func(st supervisor.Status) bool { return st.Ready && st.PID != first.PID })
	t.Logf("back after %s", time.Since(killed).Round(time.Millisecond))
	if second.Restarts != 1 || second.LastExit != "signal: killed" {
		t.Errorf("status: %+v", second)
	}
	if _, err := api.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("its data: %v", err)
	}

	s.Close() // what is left when slipway is killed: the process alone
	s = hosted(t, root)
	ensure(s)
	third := untilHosted(t, s, "the control plane under a new supervisor", func(st supervisor.Status) bool { return st.Ready })
	if third.PID != second.PID {
		t.Errorf("process %d was started beside %d", third.PID, second.PID)
	}
	hostedIsClosed(t, third)
	privateFiles(t, root)
	if err := s.Remove(t.Context(), hostedName); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, hostedName)); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
	if lives(third.PID) {
		t.Errorf("its process %d is still there", third.PID)
	}
	s.Close()
}

// announced: Pods are sent to the endpoint.
func announced(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	eventually(t, short, "the endpoint of the Service kubernetes", func() error {
		slice, err := api.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if slice.Endpoints[0].Addresses[0] != "198.51.100.1" || *slice.Ports[0].Port != 6443 {
			t.Fatalf("Pods are sent to %s port %d", slice.Endpoints[0].Addresses[0], *slice.Ports[0].Port)
		}
		return nil
	})
}

// hostedIsClosed: keys are private, and nothing listens but the API server, here and on loopback.
func hostedIsClosed(t *testing.T, st supervisor.Status) {
	t.Helper()
	for _, address := range listeners(t, st.PID) {
		if address != st.Endpoint && address != st.Local {
			t.Errorf("it listens on %s too", address)
		}
	}
}
