package cluster

import (
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
)

// A version that the host does not have is known before anything is written. Workers run it in node images, of which more is known.
func TestLacksVersion(t *testing.T) {
	used, err := template.FindClass(t.Context(), nil, "default", clusterv1.ClusterClassRef{Name: "local"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		steps []upgrade.Step
		want  string
	}{
		"nothing to do": {nil, ""},
		"included":      {[]upgrade.Step{{ControlPlane: true, Version: buildinfo.Kubernetes()}}, ""},
		"of workers":    {[]upgrade.Step{{Version: "v1.99.0"}}, ""},
		"on the way": {[]upgrade.Step{{ControlPlane: true, Version: "v1.98.0"}, {ControlPlane: true, Version: buildinfo.Kubernetes()}},
			`the control plane of cluster "demo" cannot be upgraded to v1.98.0: this host has Kubernetes`},
	} {
		got := missingVersionMessage(datadir.Dir(t.TempDir()), used, upgrade.Plan{Cluster: "demo", Steps: c.steps})
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
