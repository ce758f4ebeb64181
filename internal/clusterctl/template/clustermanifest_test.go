package template_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/manifest"
	"github.com/slipwayhq/slipway/test/testkit"
)

func TestManifest(t *testing.T) {
	objects, err := template.ClusterManifest{
		Namespace: "team-a", Name: "demo", Version: "v1.36.3", Class: clusterv1.ClusterClassRef{Name: "local"},
		Workers:   template.WorkerGroup{Kind: "MachinePool", Class: "default-worker", Replicas: 3},
		Subnet:    netip.MustParsePrefix("172.16.64.0/18"),
		Variables: []clusterv1.ClusterVariable{{Name: "audit", Value: apiextensionsv1.JSON{Raw: []byte("true")}}},
	}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.YAML(objects)
	if err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, "testdata/demo.yaml", string(got))
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
			_, err := template.ClusterManifest{Name: "a", Version: "v1.36.3", Subnet: netip.MustParsePrefix(tc.subnet)}.Objects()
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
	for _, p := range template.UsedSubnets([]localv1.LocalCluster{asked, chosen, odd}) {
		got = append(got, p.String())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what a spec asks for and what a status reports is taken (-want +got):\n%s", d)
	}
}

func TestAsked(t *testing.T) {
	c := clusterv1.Cluster{}
	for name, value := range map[string]string{"subnet": `"172.31.0.0/16"`, "other": `"172.16.0.0/18"`} {
		c.Spec.Topology.Variables = append(c.Spec.Topology.Variables, clusterv1.ClusterVariable{Name: name, Value: apiextensionsv1.JSON{Raw: []byte(value)}})
	}
	if got := template.RequestedSubnets(c); len(got) != 1 || got[0].String() != "172.31.0.0/16" {
		t.Errorf("what the variable subnet says is taken before there is a LocalCluster: %v", got)
	}
	c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "subnet", Value: apiextensionsv1.JSON{Raw: []byte(`{"of": "another class"}`)}}}
	if got := template.RequestedSubnets(c); len(got) != 0 {
		t.Errorf("a variable of another type says nothing: %v", got)
	}
}
