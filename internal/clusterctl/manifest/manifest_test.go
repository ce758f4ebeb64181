package manifest_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/manifest"
	"github.com/slipwayhq/slipway/internal/testkit/golden"
)

func TestManifest(t *testing.T) {
	objects, err := manifest.Cluster{
		Namespace: "team-a", Name: "demo", Version: "v1.36.3", Workers: 3,
		Subnet: netip.MustParsePrefix("172.16.64.0/18"),
	}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.YAML(objects)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/demo.yaml", string(got))
	for _, field := range []string{"status:", "creationTimestamp", "null"} {
		if strings.Contains(string(got), field) {
			t.Errorf("nobody would write %q by hand", field)
		}
	}
}

func TestManifestRefusesSubnet(t *testing.T) {
	cases := map[string]struct{ reason, subnet, want string }{
		"small":     {"Pods of several nodes do not fit", "172.16.0.0/24", "not between /8 and /20"},
		"host bits": {"the mistake is named together with its correction", "172.16.1.0/18", "use 172.16.0.0/18"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Cluster{Name: "a", Version: "v1.36.3", Subnet: netip.MustParsePrefix(tc.subnet)}.Objects()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestTaken(t *testing.T) {
	asked, chosen, odd := localv1.LocalCluster{}, localv1.LocalCluster{}, localv1.LocalCluster{}
	asked.Spec.Backend.Container = &localv1.ContainerCluster{Network: localv1.ContainerNetwork{Subnet: "172.31.0.0/16"}}
	chosen.Status.Network.Subnet = "172.16.0.0/18"
	odd.Status.Network.Subnet = "nonsense"
	want := []string{"172.31.0.0/16", "172.16.0.0/18"}
	var got []string
	for _, p := range manifest.Taken([]localv1.LocalCluster{asked, chosen, odd}) {
		got = append(got, p.String())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what a spec asks for and what a status reports is taken (-want +got):\n%s", d)
	}
}
