package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/manager"
)

func TestPreflightFlag(t *testing.T) { // MS-17
	cfg := manager.Config{}
	p := preflightFlags{checks: []string{"KubeadmVersionSkew", "ControlPlaneIsStable"}}
	if err := p.complete(&cfg); err != nil {
		t.Fatal(err)
	}
	want := []clusterv1.MachineSetPreflightCheck{"KubeadmVersionSkew", "ControlPlaneIsStable"}
	if diff := cmp.Diff(want, cfg.MachineSets.Preflight); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p = preflightFlags{checks: []string{"KubeadmVersion"}}
	if err := p.complete(&cfg); err == nil {
		t.Error("a check that there is not was accepted")
	}
}
