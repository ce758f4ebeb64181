package infrastructure_test

import (
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// What a machine waits for is what is missing now, and nothing that was reached.
func TestWaitingForBootstrapData(t *testing.T) {
	cluster := func(initialized bool) *clusterv1.Cluster {
		c := &clusterv1.Cluster{}
		c.Name = "demo"
		c.Status.Initialization.ControlPlaneInitialized = &initialized
		return c
	}
	config := clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "KubeadmConfig", Name: "x"}}
	cases := map[string]struct {
		reason    string
		cluster   *clusterv1.Cluster
		bootstrap clusterv1.Bootstrap
		want, on  string
	}{
		"no cluster":      {"nothing can be said of it", nil, config, "Cluster to exist", "Cluster "},
		"new":             {"nothing is said of the control plane", &clusterv1.Cluster{}, config, "control plane", "Cluster status.initialization.controlPlaneInitialized"},
		"not initialized": {"data needs the control plane", cluster(false), config, "control plane of Cluster demo", "Cluster status.initialization.controlPlaneInitialized"},
		"initialized":     {"now it is the config's turn", cluster(true), config, "KubeadmConfig x", "KubeadmConfig status.dataSecretName"},
		"by hand":         {"a person creates the Secret", cluster(true), clusterv1.Bootstrap{}, "spec.bootstrap.dataSecretName", "MachinePool spec.template.spec.bootstrap.dataSecretName"},
	}
	for name, tc := range cases {
		if got := infrastructure.BootstrapDataMessage(tc.cluster, tc.bootstrap); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q does not name %q: %s", name, got, tc.want, tc.reason)
		}
		on := reconciler.Subject{Kind: "MachinePool", Name: "pool"}
		if tc.cluster == nil {
			on = reconciler.Subject{Kind: "Cluster", Name: "demo"}
		}
		var p reconciler.Plan
		infrastructure.WaitForBootstrapData(&p, on, tc.cluster, tc.bootstrap)
		w := p.Waits[0]
		if got := w.On[0].Kind + " " + w.Field; got != tc.on || w.Until != "change" {
			t.Errorf("%s: waits for %q until %s, want %q: %s", name, got, w.Until, tc.on, tc.reason)
		}
	}
}
