package hidden_test

import (
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/hidden"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

// What the host cannot run is refused before anything is written, where it is known what the host has.
func TestLacks(t *testing.T) {
	find := func(name string) template.Class {
		c, err := template.FindClass(t.Context(), nil, "default", clusterv1.ClusterClassRef{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, tc := range map[string]struct {
		dir            string
		class, version string
		want           string
	}{
		"included":               {t.TempDir(), "local", buildinfo.Kubernetes(), ""},
		"not on this host":       {t.TempDir(), "local", "v1.33.99", "this host has Kubernetes " + buildinfo.Kubernetes() + " and not v1.33.99; `slipway versions add v1.33.99` adds it"},
		"cannot be added":        {t.TempDir(), "local", "v1.99.0", "this host has Kubernetes " + buildinfo.Kubernetes() + " and not v1.99.0; this release of slipway can run Kubernetes v1.33 to v1."},
		"without a patch":        {t.TempDir(), "local", "v1.36", "Kubernetes 1.36 is not a complete version: add the patch version, as in " + buildinfo.Kubernetes() + "; this host has " + buildinfo.Kubernetes()},
		"without a v":            {t.TempDir(), "local", "1.36.3", "Kubernetes 1.36.3 is not a complete version: begin with v, as in " + buildinfo.Kubernetes() + "; this host has " + buildinfo.Kubernetes()},
		"of another host":        {"", "local", "v1.99.0", ""},
		"nothing behind it":      {t.TempDir(), "simulated", "v1.99.0", ""},
		"it runs in node images": {t.TempDir(), "kubeadm", "v1.99.0", ""},
	} {
		if got := hidden.UnsupportedVersion(datadir.Dir(tc.dir), find(tc.class), tc.version); !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
