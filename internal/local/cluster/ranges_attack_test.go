package cluster

import (
	"fmt"
	"net/netip"
	"testing"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// hostileCluster is a Cluster as somebody with edit writes it, in both versions of the API. The variable subnet of the class becomes
// spec.backend.container.network.subnet of the LocalCluster.
const hostileCluster = `
apiVersion: cluster.x-k8s.io/%s
kind: Cluster
metadata: {namespace: ns, name: c, uid: c-uid}
spec:
  clusterNetwork:
    pods: {cidrBlocks: ["%s"]}
    services: {cidrBlocks: ["%s"]}
    serviceDomain: x
  topology: {%s, version: v1.36.3}
`

func hostile(t *testing.T, convert *conversion.Converter, version, pods, services string) *clusterv1.Cluster {
	t.Helper()
	out := &clusterv1.Cluster{}
	if version == "v1beta2" {
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, hostileCluster, version, pods, services, "classRef: {name: local}"), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	old := &clusterv1beta1.Cluster{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, hostileCluster, version, pods, services, "class: local"), old); err != nil {
		t.Fatal(err)
	}
	converted, err := convert.Convert(old, clusterv1.GroupVersion.Version)
	if err != nil {
		t.Fatal(err)
	}
	return converted.(*clusterv1.Cluster)
}

// networkOf is the range of the network that would be created for the Cluster, invalid if none would be.
func networkOf(s snapshot) netip.Prefix {
	for _, a := range decide(s).Actions {
		if a, ok := a.(ensureNetwork); ok {
			chosen, why := backend.ChooseRange(backend.NetworkSpec{
				Owner: backend.Owner{Object: client.ObjectKeyFromObject(s.Object)}, Subnet: a.Subnet, Ranges: backend.ClusterRanges(s.Cluster), Policy: s.Policy,
			}, *s.UsedRanges, nil)
			if why == "" {
				return chosen
			}
		}
	}
	return netip.Prefix{}
}

// Whatever a Cluster and the variables of its class name, its network takes nothing that the host reaches by its default route, and not the
// address space of everybody: security S3.
func TestRangesOfAHostileCluster(t *testing.T) {
	named := netip.MustParsePrefix("172.20.0.0/16") // with a name server in it
	taken := []backend.UsedRange{{Range: named, By: "a name server of this host"}}
	targets := []string{
		"10.40.128.0/17", "10.255.128.0/17", "10.0.0.0/8", "10.64.0.0/18", "192.168.128.0/17", "192.168.0.0/16", "172.20.128.0/17", "172.20.64.0/18",
		"172.20.5.53/32", "172.16.0.0/12", "172.16.128.0/13", "8.8.0.0/16", "169.254.0.0/16", "127.0.0.0/8", "0.0.0.0/0", "224.0.0.0/4",
		"100.64.0.0/10", "192.0.2.0/24", "::ffff:10.40.0.0/112", "fd00::/64", "banana", "",
	}
	mine := netip.MustParsePrefix("172.16.0.0/12")
	check := func(what string, s snapshot) {
		t.Helper()
		s.Policy, s.UsedRanges = policy.Default(), &taken
		got := networkOf(s)
		if !got.IsValid() {
			return
		}
		if got.Overlaps(named) || !mine.Contains(got.Addr()) || got.Bits() < 15 {
			t.Errorf("%s: the network is %s", what, got)
		}
	}
	convert, err := conversion.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1beta1", "v1beta2"} {
		for _, pods := range targets {
			for _, services := range append([]string{"10.96.0.0/16"}, targets...) {
				check(version+" "+pods+" "+services, snapshot{Cluster: hostile(t, convert, version, pods, services), Object: localCluster(nil)})
			}
			cluster := hostile(t, convert, version, "10.244.0.0/16", "10.96.0.0/16")
			check(version+" variable "+pods, snapshot{Cluster: cluster, Object: localCluster(func(o *infrav1.LocalCluster) {
				o.Spec.Backend.Container = &infrav1.ContainerCluster{Network: infrav1.ContainerNetwork{Subnet: pods}}
			})})
			check(version+" status "+pods, snapshot{Cluster: cluster, Object: localCluster(func(o *infrav1.LocalCluster) { o.Status.Network.Subnet = pods })})
		}
	}
}

// Clusters of one namespace together leave the others half of the addresses, however wide each is.
func TestOneNamespaceLeavesAddresses(t *testing.T) {
	var taken []backend.UsedRange
	for n := range 100 {
		o := localCluster(func(o *infrav1.LocalCluster) {
			o.Name = fmt.Sprint("lc-", n)
			o.Spec.Backend.Container = &infrav1.ContainerCluster{Network: infrav1.ContainerNetwork{Subnet: fmt.Sprintf("172.%d.0.0/15", 16+n%8*2)}}
		})
		s := snapshot{Cluster: coreCluster(nil), Object: o, Policy: policy.Default(), UsedRanges: &taken}
		if got := networkOf(s); got.IsValid() {
			taken = append(taken, backend.UsedRange{Range: got, Owner: backend.Owner{Object: client.ObjectKeyFromObject(o)}})
		}
	}
	if len(taken) != 4 {
		t.Errorf("got %d networks of /15, want 4 of 8", len(taken))
	}
	other := snapshot{Cluster: coreCluster(nil), Object: localCluster(func(o *infrav1.LocalCluster) { o.Namespace = "other" }), Policy: policy.Default(), UsedRanges: &taken}
	if got := networkOf(other); !got.IsValid() {
		t.Error("another namespace gets no network")
	}
}
