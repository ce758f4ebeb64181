package cluster

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func localCluster(change func(*infrav1.LocalCluster)) *infrav1.LocalCluster {
	o := &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "lc", UID: "lc-uid", Finalizers: []string{infrav1.LocalClusterFinalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "c-uid"}},
	}}
	if change != nil {
		change(o)
	}
	return o
}

func coreCluster(change func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid"}}
	if change != nil {
		change(c)
	}
	return c
}

func withPlane(c *clusterv1.Cluster) {
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: "HostedControlPlane", APIGroup: "controlplane.slipway.dev", Name: "p"}
}

// wayOut is a cluster that asks for a way out of the host.
func wayOut(allowed bool, n *backend.Network) snapshot {
	s := snapshot{Cluster: coreCluster(nil), Network: n, UsedRanges: &[]backend.UsedRange{}, Policy: policy.Default(), Object: localCluster(func(o *infrav1.LocalCluster) {
		o.Spec.Backend.Container = &infrav1.ContainerCluster{Network: infrav1.ContainerNetwork{Internet: true}}
	})}
	s.Policy.Networks.Internet.Allowed = allowed
	return s
}

func network(subnet string) *backend.Network {
	p := netip.MustParsePrefix(subnet)
	return &backend.Network{Name: "n", ID: "1", Subnet: p, Gateway: p.Addr().Next()}
}

func ranges(pods, services string) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) {
		c.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{pods}
		c.Spec.ClusterNetwork.Services.CIDRBlocks = []string{services}
	}
}

func TestDecide(t *testing.T) {
	deleted := func(o *infrav1.LocalCluster) { o.DeletionTimestamp = &metav1.Time{Time: now} }
	down := fault.New(fault.Unreachable, "DockerUnreachable", "Docker does not respond")
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
		waits  []string
	}{
		"no cluster": {"the cache has not seen the owner yet (IC-08)", snapshot{Object: localCluster(nil)}, nil, []string{"WaitingForCluster"}},
		"new": {"any free range will do", snapshot{Object: localCluster(nil), Cluster: coreCluster(nil)},
			[]string{"create network n: the cluster has none yet"}, []string{"CreatingNetwork"}},
		"host down": {"nothing can be asked of it", snapshot{Object: localCluster(nil), Cluster: coreCluster(nil), Fault: down}, nil, []string{"DockerUnreachable"}},
		"network there": {"nobody provides the endpoint (IC-02)", snapshot{Object: localCluster(nil), Cluster: coreCluster(nil), Network: network("172.16.0.0/18")},
			[]string{"set the control plane endpoint to 172.16.0.1:6443: nothing else provides one"}, []string{"SettingControlPlaneEndpoint"}},
		"endpoint of the cluster": {"somebody has provided it (IC-02)", snapshot{Object: localCluster(nil), Network: network("172.16.0.0/18"),
			Cluster: coreCluster(func(c *clusterv1.Cluster) {
				c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "h", Port: 1}
			})}, nil, nil},
		"endpoint here": {"the user has set it (IC-02)", snapshot{Cluster: coreCluster(nil), Network: network("172.16.0.0/18"),
			Object: localCluster(func(o *infrav1.LocalCluster) {
				o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "h", Port: 1}
			})}, nil, nil},
		"hosted control plane": {"it listens where the Cluster says", snapshot{Object: localCluster(nil), Network: network("172.16.0.0/18"),
			Cluster: coreCluster(withPlane), HostedControlPlane: &controlplanev1.HostedControlPlane{}},
			[]string{"set the control plane endpoint to 172.16.0.1:6443: nothing else provides one"}, []string{"SettingControlPlaneEndpoint"}},
		"hosted control plane, not there": {"it might bring an endpoint", snapshot{Object: localCluster(nil), Network: network("172.16.0.0/18"),
			Cluster: coreCluster(withPlane)}, nil, []string{"WaitingForControlPlane"}},
		"hosted control plane, endpoint": {"it was told where to listen (IC-02)", snapshot{Object: localCluster(nil), Network: network("172.16.0.0/18"),
			Cluster: coreCluster(withPlane), HostedControlPlane: &controlplanev1.HostedControlPlane{Spec: controlplanev1.HostedControlPlaneSpec{
				ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "h", Port: 1}}}}, nil, nil},
		"overlap": {"Services would take the nodes' addresses", snapshot{Object: localCluster(nil), Network: network("172.31.0.0/16"),
			Cluster: coreCluster(ranges("172.31.128.0/17", "172.31.0.0/20"))}, nil, []string{"RangesOverlap"}},
		"overlap before": {"said before the network is made", snapshot{Cluster: coreCluster(ranges("172.31.128.0/17", "172.31.0.0/20")),
			Object: localCluster(func(o *infrav1.LocalCluster) {
				o.Spec.Backend.Container = &infrav1.ContainerCluster{Network: infrav1.ContainerNetwork{Subnet: "172.31.0.0/16"}}
			})}, nil, []string{"RangesOverlap"}},
		"lost": {"the network is made again with the range it had", snapshot{Cluster: coreCluster(nil),
			Object: localCluster(func(o *infrav1.LocalCluster) { o.Status.Network.Subnet = "172.20.0.0/18" })},
			[]string{"create network n: the network has been removed"}, []string{"CreatingNetwork"}},
		"lost, status forged": {"what the status says is checked as the spec is", snapshot{Cluster: coreCluster(nil),
			Object: localCluster(func(o *infrav1.LocalCluster) { o.Status.Network.Subnet = "8.8.0.0/16" })}, nil, []string{"DeniedByPolicy"}},
		"lost, range taken": {"another has it by now", snapshot{Cluster: coreCluster(nil), UsedRanges: taken("172.16.0.0/12", "x"),
			Object: localCluster(func(o *infrav1.LocalCluster) { o.Status.Network.Subnet = "172.20.0.0/18" })}, nil, []string{"SubnetTaken"}},
		"public":             {"the host's own traffic would go there", explicit("8.8.0.0/16", nil), nil, []string{"DeniedByPolicy"}},
		"link-local":         {"metadata of clouds", explicit("169.254.0.0/16", nil), nil, []string{"DeniedByPolicy"}},
		"too wide":           {"all of a company's network", explicit("10.0.0.0/8", nil), nil, []string{"DeniedByPolicy"}},
		"taken":              {"by the host", explicit("172.20.0.0/16", taken("172.20.7.0/24", "a route of this host through eth0")), nil, []string{"SubnetTaken"}},
		"free":               {"beside what the host uses", explicit("172.20.0.0/20", taken("172.20.64.0/24", "x")), []string{"create network n: the cluster has none yet"}, []string{"CreatingNetwork"}},
		"company":            {"what lies behind the host's default route is not a network of a cluster's", explicit("10.40.0.0/16", nil), nil, []string{"DeniedByPolicy"}},
		"home":               {"as above", explicit("192.168.0.0/20", nil), nil, []string{"DeniedByPolicy"}},
		"too many addresses": {"one namespace does not take the networks of all others", explicit("172.16.0.0/15", wide("172.18.0.0/15", "172.20.0.0/15", "172.22.0.0/15", "172.24.0.0/15")), nil, []string{"DeniedByPolicy"}},
		"many addresses":     {"up to the maximum", explicit("172.16.0.0/15", wide("172.18.0.0/15", "172.20.0.0/15", "172.22.0.0/15")), []string{"create network n: the cluster has none yet"}, []string{"CreatingNetwork"}},
		"too many":           {"as many networks as the namespace may have", snapshot{Object: localCluster(nil), Cluster: coreCluster(nil), UsedRanges: many(30)}, nil, []string{"DeniedByPolicy"}},
		"a way out":          {"where the operator allows it", wayOut(true, nil), []string{"create network n with internet access: the cluster has none yet"}, []string{"CreatingNetwork"}},
		"a way out, denied":  {"not by default", wayOut(false, nil), nil, []string{"DeniedByPolicy"}},
		"a way out, denied later": {"what is there goes on when the policy becomes stricter", wayOut(false, &backend.Network{Name: "n", ID: "1", Subnet: netip.MustParsePrefix("172.16.0.0/18"), Gateway: netip.MustParseAddr("172.16.0.1"), Internet: true}),
			[]string{"set the control plane endpoint to 172.16.0.1:6443: nothing else provides one"}, []string{"SettingControlPlaneEndpoint"}},
		"a way out, but internal": {"an earlier object's network", wayOut(true, network("172.16.0.0/18")), nil, []string{"NetworkDiffers"}},
		"internal, but a way out": {"nothing leaves the host unless it was asked for", snapshot{Object: localCluster(nil), Cluster: coreCluster(nil),
			Network: &backend.Network{Name: "n", ID: "1", Subnet: netip.MustParsePrefix("172.16.0.0/18"), Internet: true}}, nil, []string{"NetworkDiffers"}},
		"denied later": {"what is there goes on when the policy becomes stricter", snapshot{Object: localCluster(nil), Cluster: endpointSet(nil), Network: network("172.16.0.0/18"),
			Policy: policy.Configuration{TypeMeta: metav1.TypeMeta{Kind: "Configuration"}}}, nil, nil},
		"host odd": {"looked at again by itself", snapshot{Object: localCluster(nil), Cluster: coreCluster(nil), Fault: fault.New(fault.Transient, "DockerError", "odd")}, nil, []string{"DockerError"}},
		"deleting with machines": {"machines need the network", snapshot{Object: localCluster(deleted), Machines: []string{"a", "b"}, Network: network("172.16.0.0/18")},
			nil, []string{"WaitingForMachines"}},
		"deleting":       {"the network goes", snapshot{Object: localCluster(deleted), Network: network("172.16.0.0/18")}, []string{"delete network n: the LocalCluster is being deleted"}, []string{"DeletingNetwork"}},
		"deleting, down": {"the finalizer stays until the host answers", snapshot{Object: localCluster(func(o *infrav1.LocalCluster) { deleted(o); o.Status.Network.Name = "n" }), Fault: down}, nil, []string{"DockerUnreachable"}},
		"deleting, down, restored": {"the status was lost, and the endpoint tells that there was a network", snapshot{Object: localCluster(func(o *infrav1.LocalCluster) {
			deleted(o)
			o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "172.16.0.1", Port: 6443}
		}), Fault: down}, nil, []string{"DockerUnreachable"}},
		"deleting, no host":   {"it never had anything here: there may be no Docker at all", snapshot{Object: localCluster(deleted), Fault: down}, nil, nil},
		"deleting, machines":  {"they may have something here", snapshot{Object: localCluster(deleted), Machines: []string{"a"}, Fault: down}, nil, []string{"WaitingForMachines"}},
		"deleting, host odd":  {"it answers, and does not say whether there is a network", snapshot{Object: localCluster(deleted), Fault: fault.New(fault.Transient, "DockerError", "odd")}, nil, []string{"DockerError"}},
		"deleting, was ready": {"a network whose record was lost may be there", snapshot{Object: localCluster(func(o *infrav1.LocalCluster) { deleted(o); yes := true; o.Status.Initialization.Provisioned = &yes }), Fault: down}, nil, []string{"DockerUnreachable"}},
		"deleted":             {"nothing is left: the finalizer goes", snapshot{Object: localCluster(deleted)}, nil, nil},
		"deleted no owner":    {"also when the Cluster is gone", snapshot{Object: localCluster(deleted), Cluster: nil}, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.s.Name, tc.s.Now = "n", now
			if tc.s.Policy.Kind == "" {
				tc.s.Policy = policy.Default()
			}
			if tc.s.UsedRanges == nil {
				tc.s.UsedRanges = &[]backend.UsedRange{}
			}
			p := decide(tc.s)
			var did, waits []string
			for _, a := range p.Actions {
				did = append(did, a.String())
			}
			for _, w := range p.Waits {
				waits = append(waits, w.Reason)
			}
			if diff := cmp.Diff(tc.want, did); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("%s: waits (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func explicit(subnet string, taken *[]backend.UsedRange) snapshot {
	return snapshot{Cluster: coreCluster(nil), UsedRanges: taken, Object: localCluster(func(o *infrav1.LocalCluster) {
		o.Spec.Backend.Container = &infrav1.ContainerCluster{Network: infrav1.ContainerNetwork{Subnet: subnet}}
	})}
}

func taken(p, by string) *[]backend.UsedRange {
	return &[]backend.UsedRange{{Range: netip.MustParsePrefix(p), By: by}}
}

func many(n int) *[]backend.UsedRange {
	var out []backend.UsedRange
	for range n {
		out = append(out, backend.UsedRange{Range: netip.MustParsePrefix("10.0.0.0/24"), Owner: backend.Owner{Object: client.ObjectKey{Namespace: "ns", Name: "x"}}})
	}
	return &out
}

// wide are networks of the namespace.
func wide(ranges ...string) *[]backend.UsedRange {
	var out []backend.UsedRange
	for _, r := range ranges {
		out = append(out, backend.UsedRange{Range: netip.MustParsePrefix(r), Owner: backend.Owner{Object: client.ObjectKey{Namespace: "ns", Name: r}}})
	}
	return &out
}

// The message of a range that is not free names what uses it, and gives no advice that the API refuses: the range cannot
// be changed.
func TestTakenNamesItsOwner(t *testing.T) {
	for by, text := range map[string]string{
		"the network of Cluster default/m6":           "the network of Cluster default/m6 uses 172.20.0.0/18",
		"Docker network shop_default":                 "Docker network shop_default uses",
		"a route of this host through wg0":            "through wg0 uses",
		"address 172.20.1.5 of this host's interface": "address 172.20.1.5",
	} {
		s := explicit("172.20.0.0/16", taken("172.20.0.0/18", by))
		s.Policy = policy.Default()
		p := decide(s)
		if len(p.Waits) != 1 || !strings.Contains(p.Waits[0].Message, text) || strings.Contains(p.Waits[0].Message, "spec.backend") ||
			!strings.Contains(p.Waits[0].Message, "Create the cluster with another range") {
			t.Errorf("%s: got %+v", by, p.Waits)
		}
	}
	if p := decide(snapshot{Object: localCluster(nil), Cluster: coreCluster(nil)}); len(p.Reads) != 1 || len(p.Actions) != 0 {
		t.Errorf("what the host uses is asked before anything is made; got %+v", p)
	}
}

func TestConditions(t *testing.T) { // IC-05
	down := fault.New(fault.Unreachable, "DockerUnreachable", "Docker does not respond")
	cases := map[string]struct {
		reason  string
		s       snapshot
		err     error
		network metav1.Condition
		ready   metav1.ConditionStatus
	}{
		"ready":     {"all is well", snapshot{Object: localCluster(nil), Cluster: endpointSet(nil), Network: network("172.16.0.0/18")}, nil, metav1.Condition{Status: "True", Reason: "Ready"}, "True"},
		"down, new": {"nothing was made yet", snapshot{Object: localCluster(nil), Cluster: coreCluster(nil), Fault: down}, nil, metav1.Condition{Status: "False", Reason: "DockerUnreachable", Message: "Docker does not respond"}, "False"},
		"down": {"what was made may still be there", snapshot{Cluster: coreCluster(nil), Fault: down,
			Object: localCluster(func(o *infrav1.LocalCluster) { o.Status.Network.Name = "n" })}, nil, metav1.Condition{Status: "Unknown", Reason: "DockerUnreachable", Message: "Docker does not respond"}, "Unknown"},
		"refused": {"the message of the fault is for the user", snapshot{Object: localCluster(nil), Cluster: coreCluster(nil)}, fault.New(fault.Invalid, "SubnetTaken", "choose another"),
			metav1.Condition{Status: "False", Reason: "SubnetTaken", Message: "choose another"}, "False"},
		"API error": {"texts of API conflicts are not for users", snapshot{Object: localCluster(nil), Cluster: endpointSet(nil), Network: network("172.16.0.0/18")}, errors.New("conflict"),
			metav1.Condition{Status: "True", Reason: "Ready"}, "True"},
		"outside": {"Pods do not reach each other with the add-on that comes with Slipway", snapshot{Object: localCluster(nil), Cluster: endpointSet(ranges("10.244.0.0/16", "172.16.16.0/20")), Network: network("172.16.0.0/18")}, nil,
			metav1.Condition{Status: "True", Reason: "RangesOutside", Message: "The ranges 10.244.0.0/16 in spec.clusterNetwork of the Cluster are outside of the network 172.16.0.0/18: Pods on different nodes reach each other only with a network add-on that encapsulates packets, which Flannel as installed by Slipway does not. Install such an add-on, or create the cluster with ranges in the network, for example 172.16.32.0/19 for Pods and 172.16.16.0/20 for Services"}, "True"},
		"deleting": {"over the whole life", snapshot{Object: localCluster(func(o *infrav1.LocalCluster) { o.DeletionTimestamp = &metav1.Time{Time: now} }), Machines: []string{"m"}, Network: network("172.16.0.0/18")}, nil,
			metav1.Condition{Status: "True", Reason: "Ready"}, "False"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.s.Name, tc.s.Now = "n", now
			r := report(tc.s, decide(tc.s), reconciler.Outcome{Err: tc.err})
			set := condition.Set(r.Status.(infrav1.LocalClusterStatus).Conditions)
			got := set.Get(infrav1.NetworkReadyCondition)
			if got.Status != tc.network.Status || got.Reason != tc.network.Reason || got.Message != tc.network.Message {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if ready := set.Get(clusterv1.ReadyCondition); ready.Status != tc.ready {
				t.Errorf("%s: Ready is %+v, want %s", tc.reason, ready, tc.ready)
			}
		})
	}
}

// Who deletes the LocalCluster of a Cluster that stays is told what is missing.
func TestDeletedBeforeItsCluster(t *testing.T) { // IC-05
	gone := localCluster(func(o *infrav1.LocalCluster) { o.DeletionTimestamp = &metav1.Time{Time: now} })
	says := func(c *clusterv1.Cluster) string {
		s := snapshot{Object: gone, Cluster: c, Machines: []string{"m"}, Network: network("172.16.0.0/18"), Name: "n", Now: now}
		return condition.Set(report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalClusterStatus).Conditions).Get(clusterv1.DeletingCondition).Message
	}
	const missing = "still exists: delete it as well"
	if got := says(coreCluster(nil)); !strings.Contains(got, missing) || !strings.Contains(got, "LocalMachines m to be deleted") {
		t.Errorf("it says %q", got)
	}
	going := coreCluster(func(c *clusterv1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: now} })
	for _, c := range []*clusterv1.Cluster{going, nil} {
		if got := says(c); strings.Contains(got, missing) {
			t.Errorf("it says %q", got)
		}
	}
}

func TestDeletionThatWaitsIsAnEventOnce(t *testing.T) {
	gone := localCluster(func(o *infrav1.LocalCluster) { o.DeletionTimestamp = &metav1.Time{Time: now} })
	s := snapshot{Object: gone, Cluster: coreCluster(nil), Machines: []string{"a", "b"}, Network: network("172.16.0.0/18"), Name: "n", Now: now}
	first := report(s, decide(s), reconciler.Outcome{})
	if len(first.Events) != 1 || first.Events[0].Reason != "WaitingForMachines" || !strings.Contains(first.Events[0].Message, "LocalMachines a, b to be deleted") {
		t.Fatalf("got %+v", first.Events)
	}
	s.Object.Status.Conditions, s.Machines = first.Status.(infrav1.LocalClusterStatus).Conditions, s.Machines[:1]
	if again := report(s, decide(s), reconciler.Outcome{}); len(again.Events) != 0 {
		t.Errorf("not on every pass; got %+v", again.Events)
	}
}

func endpointSet(change func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := coreCluster(change)
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "h", Port: 6443}
	return c
}

func TestTroubleIsAnEventOnce(t *testing.T) {
	down := fault.New(fault.Unreachable, "DockerUnreachable", "Docker does not respond")
	s := snapshot{Object: localCluster(nil), Cluster: coreCluster(nil), Fault: down, Now: now}
	first := report(s, decide(s), reconciler.Outcome{})
	if len(first.Events) != 1 || first.Events[0].Reason != "DockerUnreachable" {
		t.Fatalf("got %+v", first.Events)
	}
	s.Object.Status.Conditions = first.Status.(infrav1.LocalClusterStatus).Conditions
	if again := report(s, decide(s), reconciler.Outcome{}); len(again.Events) != 0 {
		t.Errorf("not on every pass; got %+v", again.Events)
	}
}
