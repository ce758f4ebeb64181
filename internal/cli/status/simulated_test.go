package status_test

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
)

// Simulated clusters are counted where the API answers; where it does not, all else is said.
func TestSimulatedClusters(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t)})
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client(t, scheme)
	for name, backend := range map[string]infrav1.LocalClusterBackend{"a": {Simulated: &infrav1.SimulatedCluster{}}, "b": {Simulated: &infrav1.SimulatedCluster{}}, "c": {}} {
		if err := client.Create(t.Context(), &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: infrav1.LocalClusterSpec{Backend: backend}}); err != nil {
			t.Fatal(err)
		}
	}
	h := used(t)
	defer func() { _ = h.Close() }()
	if err := h.WriteRun(datadir.Run{PID: os.Getpid(), Ready: true, Server: "https://127.0.0.1:6440"}); err != nil {
		t.Fatal(err)
	}
	if text := run(t, h.Dir); strings.Contains(text, "Simulated clusters") || !strings.Contains(text, "Running") {
		t.Errorf("without an answer of the API:\n%s", text)
	}
	kubeconfig, err := os.ReadFile(server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.Kubeconfig(), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := run(t, h.Dir); !strings.Contains(text, "Simulated clusters, which need no process: 2;") {
		t.Errorf("with two:\n%s", text)
	}
}
