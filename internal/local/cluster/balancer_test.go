package cluster

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// atGateway is a Cluster whose endpoint is the host's address in the network 172.16.0.0/18.
func atGateway(port int32) *clusterv1.Cluster {
	return coreCluster(func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "172.16.0.1", Port: port}
	})
}

func member(name string, last byte, leaving bool) backend.BalancerMember {
	return backend.BalancerMember{Name: name, Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 16, 0, last}), 6443), Leaving: leaving}
}

func TestDecideBalancer(t *testing.T) {
	listen := netip.MustParseAddrPort("172.16.0.1:6443")
	one := []backend.BalancerMember{member("cp-1", 5, false)}
	running := func(members ...backend.BalancerMember) *backend.Balancer {
		return &backend.Balancer{Running: true, Listen: listen, Members: members}
	}
	cases := map[string]struct {
		reason  string
		s       snapshot
		want    []string
		waits   []string
		recheck bool
	}{
		"first machine": {"its kubeadm init asks for the endpoint", snapshot{Members: one},
			[]string{"forward connections for 172.16.0.1:6443 to cp-1: there is no load balancer yet"}, nil, true},
		"no machine":         {"there is nothing to lead to", snapshot{}, nil, nil, false},
		"no address yet":     {"an event of the machine may be missed", snapshot{AddressesPending: true}, nil, nil, true},
		"in place":           {"it is looked at again: nothing tells of the end of one that was taken over", snapshot{Members: one, Balancer: running(one...)}, nil, nil, true},
		"it died":            {"it is started again", snapshot{Members: one, Balancer: &backend.Balancer{Listen: listen, Members: one}}, []string{"forward connections for 172.16.0.1:6443 to cp-1: the load balancer does not run"}, nil, true},
		"one leaves":         {"it gets no new connections", snapshot{Members: []backend.BalancerMember{member("cp-1", 5, true)}, Balancer: running(one...)}, []string{"forward connections for 172.16.0.1:6443 to cp-1 (leaving): it forwarded to cp-1"}, nil, true},
		"the last is gone":   {"its connections end", snapshot{Balancer: running(one...)}, []string{"forward connections for 172.16.0.1:6443 to no machine: it forwarded to cp-1"}, nil, true},
		"the user's own":     {"the endpoint is elsewhere", snapshot{Members: one, Cluster: endpointSet(nil)}, nil, nil, false},
		"moved elsewhere":    {"what ran here ends", snapshot{Members: one, Cluster: endpointSet(nil), Balancer: running(one...)}, []string{"stop the load balancer: the control plane endpoint is elsewhere"}, nil, false},
		"hosted":             {"the hosted control plane listens there", snapshot{Members: one, Cluster: func() *clusterv1.Cluster { c := atGateway(6443); withPlane(c); return c }()}, nil, nil, false},
		"nothing balances":   {"a manager without a data directory", snapshot{Members: one, HasBalancers: false, Name: "unbalanced"}, nil, nil, false},
		"management cluster": {"its own port", snapshot{Members: one, Cluster: atGateway(6440)}, nil, []string{"EndpointNotAllowed"}, false},
		"low port":           {"the host's services", snapshot{Members: one, Cluster: atGateway(22)}, nil, []string{"EndpointNotAllowed"}, false},
		"https":              {"usual for APIs", snapshot{Members: one, Cluster: atGateway(443)}, []string{"forward connections for 172.16.0.1:443 to cp-1: there is no load balancer yet"}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.s
			s.Object, s.Network, s.Policy, s.Now, s.ReservedPorts = localCluster(nil), network("172.16.0.0/18"), policy.Default(), now, []uint16{6440}
			s.HasBalancers = s.Name != "unbalanced"
			if s.Cluster == nil {
				s.Cluster = atGateway(6443)
			}
			p := decide(s)
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
			if (p.Recheck > 0) != tc.recheck && len(tc.waits) == 0 {
				t.Errorf("%s: looked at again after %s", tc.reason, p.Recheck)
			}
			if status := report(s, p, reconciler.Outcome{}).Status.(infrav1.LocalClusterStatus); len(tc.waits) == 0 &&
				(status.Initialization.Provisioned == nil || !condition.Set(status.Conditions).IsTrue(clusterv1.ReadyCondition)) {
				t.Errorf("the infrastructure waits for what waits for it: %+v", status)
			}
		})
	}
}

// An endpoint is offered to a control plane on simulated machines alone: a hosted one chooses its own, and a Cluster of a class
// has no controlPlaneRef for a moment.
func TestOfferedEndpoint(t *testing.T) {
	for kind, asked := range map[string]bool{"": false, "HostedControlPlane": false, "KubeadmControlPlane": true} {
		group := "controlplane.cluster.x-k8s.io"
		if kind == "HostedControlPlane" {
			group = "controlplane.slipway.dev"
		}
		s := snapshot{Object: simulatedCluster(nil), Capabilities: backend.NetworkCapabilities{NoNetwork: true}, HasBalancers: true, Policy: policy.Default(), Now: now, Cluster: coreCluster(func(c *clusterv1.Cluster) {
			if kind != "" {
				c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: kind, APIGroup: group, Name: "p"}
			}
		})}
		if p := decide(s); (len(p.Reads) == 1) != asked {
			t.Errorf("control plane %q: asks %v", kind, p.Reads)
		}
		s.ReservedEndpoint = netip.MustParseAddrPort("127.0.0.1:24000")
		if p := decide(s); (len(p.Actions) == 1) != asked {
			t.Errorf("control plane %q: does %v", kind, p.Actions)
		}
		s.Cluster.Spec.Topology.ClassRef.Name = "c"
		if p := decide(s); (len(p.Waits) == 1 && len(p.Actions) == 0) != (kind == "") {
			t.Errorf("control plane %q of a topology: waits for %v, does %v", kind, p.Waits, p.Actions)
		}
	}
}

func TestLoadBalancerReady(t *testing.T) {
	two := []backend.BalancerMember{member("cp-1", 5, false), member("cp-2", 6, false)}
	cases := map[string]struct {
		balancer *backend.Balancer
		want     metav1.Condition
	}{
		"none":       {nil, metav1.Condition{Status: "False", Reason: "WaitingForControlPlaneMachines", Message: "Waiting for a Machine of the control plane to have an address"}},
		"died":       {&backend.Balancer{Members: two}, metav1.Condition{Status: "False", Reason: "StartingLoadBalancer", Message: "The load balancer is being started"}},
		"failed":     {&backend.Balancer{Members: two, Detail: "the load balancer cannot listen"}, metav1.Condition{Status: "False", Reason: "LoadBalancerStopped", Message: "The load balancer does not run and is being restarted: the load balancer cannot listen"}},
		"no answer":  {&backend.Balancer{Running: true, Members: two}, metav1.Condition{Status: "False", Reason: "NoControlPlaneAnswers", Message: "No API server responds on Machines cp-1, cp-2"}},
		"one silent": {&backend.Balancer{Running: true, Members: two, Healthy: []string{"cp-2"}}, metav1.Condition{Status: "True", Reason: "Ready", Message: "The API server does not respond on Machines cp-1"}},
		"expired": {&backend.Balancer{Running: true, Members: two, Healthy: []string{"cp-2"}, Expired: map[string]string{"cp-1": "2026-01-02T03:04:05Z"}}, metav1.Condition{
			Status: "True", Reason: "Ready", Message: "The API server does not respond on Machines cp-1 (the certificate of its API server expired on 2026-01-02T03:04:05Z)"}},
		"all": {&backend.Balancer{Running: true, Members: two, Healthy: []string{"cp-1", "cp-2"}}, metav1.Condition{Status: "True", Reason: "Ready"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshot{Object: localCluster(nil), Cluster: atGateway(6443), Network: network("172.16.0.0/18"), Policy: policy.Default(), HasBalancers: true, Balancer: tc.balancer, Members: two, Now: now}
			got := condition.Set(report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalClusterStatus).Conditions).Get(infrav1.LoadBalancerReadyCondition)
			if got.Status != tc.want.Status || got.Reason != tc.want.Reason || got.Message != tc.want.Message {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
	s := snapshot{Object: localCluster(nil), Cluster: endpointSet(withPlane), Network: network("172.16.0.0/18"), Policy: policy.Default(), HasBalancers: true, Now: now}
	if got := condition.Set(report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalClusterStatus).Conditions).Get(infrav1.LoadBalancerReadyCondition); got != nil {
		t.Errorf("a hosted control plane has no load balancer; got %+v", got)
	}
}

// Members are control plane Machines' machines by what the host says of them; a forged status or ID leads nowhere. It ends with
// the LocalCluster.
func TestMembersAreRead(t *testing.T) {
	machine := func(name string, labels map[string]string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}}
	}
	local := func(name, owner string, change func(*infrav1.LocalMachine)) *infrav1.LocalMachine {
		o := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: owner, UID: "u"}}}}
		if change != nil {
			change(o)
		}
		return o
	}
	controlPlane := map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	w := newWorld(t, atGateway(6443), localCluster(nil), machine("cp-1", controlPlane), machine("cp-2", controlPlane), machine("worker", nil),
		local("l1", "cp-1", nil), local("l3", "worker", nil), local("l4", "gone", nil),
		local("l2", "cp-2", func(o *infrav1.LocalMachine) {
			o.Spec.ProviderID = "slipway:///slipway-ns-neighbour-01234567"
			o.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "169.254.169.254"}}
		}))
	own := client.ObjectKey{Namespace: "ns", Name: "lc"}
	made := network("172.16.0.0/18")
	made.Name = backend.NetworkName("i", own)
	w.host.AddNetwork("i", backend.Owner{Object: own}, *made)
	for i, name := range []string{"l1", "l3"} {
		spec := backend.MachineSpec{Owner: backend.Owner{Object: client.ObjectKey{Namespace: "ns", Name: name}}, Name: backend.MachineName("i", client.ObjectKey{Namespace: "ns", Name: name}), Network: backend.Ref{Object: own, Name: made.Name}}
		if _, err := w.host.Create(t.Context(), spec); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := w.reconcile(3); err != nil {
		t.Fatal(err)
	}
	found, ok, err := w.host.FindBalancer(t.Context(), backend.Ref{Object: own})
	if err != nil || !ok || len(found.Members) != 1 || found.Members[0].Name != "cp-1" {
		t.Fatalf("got %+v, %v, %v", found, ok, err)
	}
	w.host.ChangeBalancer(own, func(b *backend.Balancer) { b.Running = false })
	if err := w.reconcile(1); err != nil {
		t.Fatal(err)
	}
	if found, _, _ := w.host.FindBalancer(t.Context(), backend.Ref{Object: own}); !found.Running {
		t.Error("one that died is started again")
	}
	for _, name := range []string{"l1", "l2", "l3", "l4"} {
		if err := w.client.Delete(t.Context(), local(name, "", nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.client.Delete(t.Context(), w.get(t)); err != nil {
		t.Fatal(err)
	}
	w.host.FailOnce("DeleteBalancer", fault.New(fault.Transient, "boom", "boom"))
	for range 5 {
		_ = w.reconcile(1)
	}
	if _, ok, _ := w.host.FindBalancer(t.Context(), backend.Ref{Object: own}); ok {
		t.Error("the load balancer outlives its cluster")
	}
	if log := w.host.Log(); slices.Index(log, "DeleteBalancer ns/lc") > slices.IndexFunc(log, func(s string) bool { return len(s) > 13 && s[:13] == "DeleteNetwork" }) {
		t.Errorf("it ends before the network is removed; got %v", log)
	}
}

func TestControlPlaneMachinesWake(t *testing.T) {
	with := func(labelled bool, address string) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		if labelled {
			m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		}
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "KubeadmControlPlane", Name: "k", Controller: new(true)}} // another pointer in each event
		if address != "" {
			m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: address}}
		}
		return m
	}
	p := controlPlaneChanged()
	if !p.Update(event.UpdateEvent{ObjectOld: with(true, ""), ObjectNew: with(true, "172.16.0.5")}) {
		t.Error("an address")
	}
	if p.Update(event.UpdateEvent{ObjectOld: with(true, "172.16.0.5"), ObjectNew: with(true, "172.16.0.5")}) || p.Update(event.UpdateEvent{ObjectOld: with(false, ""), ObjectNew: with(false, "172.16.0.5")}) {
		t.Error("what changes nothing, and workers")
	}
	leaving := with(true, "172.16.0.5")
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	if !p.Update(event.UpdateEvent{ObjectOld: with(true, "172.16.0.5"), ObjectNew: leaving}) {
		t.Error("one that is to be deleted")
	}
}
