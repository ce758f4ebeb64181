package clusters

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

const virtual, reasonInUse = "192.0.2.10", "VirtualIPInUse"

func allowed() policy.Configuration {
	p := policy.Default()
	p.Hosts.VirtualIPs = []policy.VirtualIPRange{{Range: netip.MustParsePrefix("192.0.2.0/24"), Namespaces: []string{"team-a", "team-b"}}}
	p.Hosts.Endpoints = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")} // does not concern virtual IP addresses
	return p
}

func withVirtualIP(o *infrav1.SSHCluster) {
	o.Spec.VirtualIP = virtual
}

func held(o *infrav1.SSHCluster) {
	withVirtualIP(o)
	o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: virtual, Port: 6443}
}

func TestVirtualIPIsTheEndpoint(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		object func(*infrav1.SSHCluster)
		change func(*snapshot)
		wait   string
	}{
		"new":     {"the endpoint is known at once", withVirtualIP, nil, reasonEndpoint},
		"set":     {"the endpoint is the address", held, nil, ""},
		"denied":  {"no range is allowed by default", withVirtualIP, func(s *snapshot) { s.Policy = policy.Default() }, reasonDenied},
		"later":   {"the configuration became stricter", held, func(s *snapshot) { s.Policy = policy.Default() }, reasonDenied},
		"invalid": {"an object from before admission", func(o *infrav1.SSHCluster) { o.Spec.VirtualIP = "192.0.2.10; id" }, nil, reasonDenied},
		"hosted":  {"its control plane has an address", withVirtualIP, func(s *snapshot) { hosted(s.Cluster) }, reasonVirtualIPHosted},
		"another": {"the Cluster has an endpoint", withVirtualIP, func(s *snapshot) {
			s.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "192.0.2.11", Port: 6443}
		}, reasonVirtualIPEndpoint},
		"taken":           {"a host has it", withVirtualIP, func(s *snapshot) { s.Taken = "a host" }, reasonVirtualIPTaken},
		"taken, but used": {"the operator adds a host with the address of a running cluster", held, func(s *snapshot) { s.Taken, s.Object.Status.Initialization.Provisioned = "a host", ptr.To(true) }, ""},
	} {
		s := snapshot{Object: sshCluster(tc.object), Cluster: coreCluster(nil), Policy: allowed(), Now: now}
		if tc.change != nil {
			tc.change(&s)
		}
		p := decide(s)
		got := ""
		if len(p.Waits) > 0 {
			got = p.Waits[0].Reason
		}
		if got != tc.wait {
			t.Errorf("%s: wait %q, want %q (%s)", name, got, tc.wait, tc.reason)
		}
		sets := len(p.Actions) > 0
		if want := tc.wait == reasonEndpoint; sets != want {
			t.Errorf("%s: actions %v", name, p.Actions)
		}
		status := report(s, p, reconciler.Outcome{}).Status.(infrav1.SSHClusterStatus)
		if provisioned := tc.wait == ""; ptr.Deref(status.Initialization.Provisioned, false) != provisioned {
			t.Errorf("%s: status %+v", name, status)
		}
	}
}

// site is hosts with keepalived. A host that runs holds the address if it receives advertisements of no other one that does.
type site struct {
	hosts map[string]*siteHost
	// names are the addresses of hosts with a DNS name.
	names map[string]string
	// foreign is set if another machine has the address.
	foreign bool
}

type siteHost struct {
	config      remote.VirtualIP
	running     bool
	unreachable bool
	dead        bool
	holds       bool
	refuses     bool
	calls       int
}

type siteConnector struct{ *site }

func (c siteConnector) Connect(_ context.Context, t remote.Target) (Host, error) {
	if address, ok := c.names[t.Address]; ok {
		t.Address = address
	}
	h := c.hosts[t.Address]
	if h == nil || h.unreachable {
		return nil, fault.New(fault.Unreachable, remote.ReasonUnreachable, "host %s does not respond", t.Address)
	}
	return siteConnection{c.site, t.Address}, nil
}

type siteConnection struct {
	*site
	address string
}

func (c siteConnection) ConfigureVirtualIP(_ context.Context, v remote.VirtualIP, only remote.VirtualIPConditions) error {
	h := c.hosts[c.address]
	h.calls++
	if h.refuses {
		return fault.New(fault.Invalid, "NoInterface", "no interface has the address of the node")
	}
	if only.Unused && (c.foreign || c.held() > 0) {
		return fault.New(fault.Invalid, reasonInUse, "in use")
	}
	for _, a := range only.Silent {
		if !h.running && !c.hosts[a.String()].dead {
			return fault.New(fault.Invalid, "VirtualIPMemberUnreachable", "it responds in the network")
		}
	}
	h.config, h.running = v, true
	c.advertise()
	return nil
}

func (c siteConnection) VirtualIPState(context.Context, string, netip.Addr) (remote.VirtualIPState, error) {
	h := c.hosts[c.address]
	if !h.running {
		return remote.VirtualIPState{}, nil
	}
	d, err := h.config.Digest()
	return remote.VirtualIPState{Digest: d, Running: true, Holds: h.holds}, err
}

func (s *site) held() (n int) {
	for _, h := range s.hosts {
		if h.holds {
			n++
		}
	}
	return n
}

// advertise lets each host that receives no advertisement take the address.
func (s *site) advertise() {
	for address, h := range s.hosts {
		if !h.running {
			h.holds = false
		} else if !h.holds {
			h.holds = !s.hears(address)
		}
	}
}

// hears reports whether a holder sends to the host, and the host accepts it.
func (s *site) hears(address string) bool {
	for other, h := range s.hosts {
		if h.holds && slices.Contains(h.config.Peers, netip.MustParseAddr(address)) && slices.Contains(s.hosts[address].config.Peers, netip.MustParseAddr(other)) {
			return true
		}
	}
	return false
}

// cluster is a management cluster with an SSHCluster on a site.
type cluster struct {
	client.Client
	t    *testing.T
	site *site
	now  time.Time
	ctrl *controller
	r    *reconciler.Reconciler[*infrav1.SSHCluster, snapshot]
	key  client.ObjectKey
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	owned := coreCluster(func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: "c"}
	})
	o := sshCluster(withVirtualIP)
	o.CreationTimestamp = metav1.NewTime(now)
	objects = append(objects, o, owned, teamA(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "key"}, Data: map[string][]byte{"ssh-privatekey": []byte("k")}})
	cl := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(&infrav1.SSHCluster{}, &infrav1.SSHMachine{}, &infrav1.SSHHost{}, &clusterv1.Cluster{}).
		WithReturnManagedFields().WithObjects(objects...).Build()
	c := &cluster{Client: cl, t: t, site: &site{hosts: map[string]*siteHost{}}, now: now, key: client.ObjectKeyFromObject(o)}
	clock := func() time.Time { return c.now }
	c.ctrl = &controller{client: cl, secrets: cl, writer: kube.NewWriter(cl, Name), states: newStates(), now: clock, noHosted: true,
		Config: Config{Policy: allowed(), Connector: siteConnector{c.site}}}
	c.r = &reconciler.Reconciler[*infrav1.SSHCluster, snapshot]{Controller: c.ctrl.definition(), Client: cl, Writer: c.ctrl.writer, Now: clock}
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// add adds a control plane machine on a prepared host.
func (c *cluster) add(n int) {
	c.t.Helper()
	ctx, name, address, claim := c.t.Context(), fmt.Sprintf("m-%d", n), fmt.Sprintf("192.0.2.%d", 100+n), strings.Repeat(string(rune('a'+n)), 26)
	h := sshHost(fmt.Sprintf("h-%d", n), "", nil)
	h.Spec.Address, h.Spec.CredentialsRef.Name = address, "key"
	h.Status.Claim, h.Status.ConfirmedClaimID = &infrav1.SSHHostClaim{Namespace: "team-a", Name: name, ClaimID: claim}, claim
	c.must(c.Create(ctx, h))
	labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(now.Add(time.Duration(n) * time.Second)), Finalizers: []string{"x/y"}}}
	m.Spec.Bootstrap.DataSecretName = ptr.To("data")
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: machineKind, Name: name}
	c.must(c.Create(ctx, m))
	o := &infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Labels: labels, Finalizers: []string{"x/y"}}}
	o.Spec.ClaimID = claim
	o.Status.HostRef = &infrav1.SSHHostReference{Namespace: "hosts", Name: h.Name}
	o.Status.Conditions = []metav1.Condition{{Type: infrav1.HostPreparedCondition, Status: metav1.ConditionTrue, Reason: "x"}}
	c.must(c.Create(ctx, o))
	c.must(c.Status().Update(ctx, o))
	h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-a", Name: name, ClaimID: claim}
	c.must(c.Status().Update(ctx, h))
	c.site.hosts[address] = &siteHost{}
}

func (c *cluster) host(n int) *siteHost { return c.site.hosts[fmt.Sprintf("192.0.2.%d", 100+n)] }

// initialize marks the control plane as initialized.
func (c *cluster) initialize() {
	c.t.Helper()
	o := &clusterv1.Cluster{}
	c.must(c.Get(c.t.Context(), c.key, o))
	o.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	c.must(c.Status().Update(c.t.Context(), o))
}

// leave begins the deletion of a Machine; remove ends it, after its host was cleaned.
func (c *cluster) leave(n int) {
	c.t.Helper()
	c.must(c.Delete(c.t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprintf("m-%d", n)}}))
}

func (c *cluster) remove(n int) {
	c.t.Helper()
	ctx, name := c.t.Context(), fmt.Sprintf("m-%d", n)
	for _, o := range []client.Object{&clusterv1.Machine{}, &infrav1.SSHMachine{}} {
		c.must(c.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: name}, o))
		o.SetFinalizers(nil)
		c.must(c.Update(ctx, o))
		c.must(client.IgnoreNotFound(c.Delete(ctx, o)))
	}
	h := c.host(n)
	h.running = false
	c.site.advertise()
}

// reconcile reconciles n times, and lets time pass in between.
func (c *cluster) reconcile(n int) *infrav1.SSHCluster {
	c.t.Helper()
	for range n {
		if _, err := c.r.Reconcile(c.t.Context(), ctrl.Request{NamespacedName: c.key}); err != nil && fault.KindOf(err) != fault.Unreachable {
			c.t.Fatal(err)
		}
		if held := c.site.held(); held > 1 {
			c.t.Fatalf("%d hosts hold the address", held)
		}
		c.now = c.now.Add(steadyInterval/3 + time.Second)
	}
	o := &infrav1.SSHCluster{}
	c.must(c.Get(c.t.Context(), c.key, o))
	return o
}

func heldReason(o *infrav1.SSHCluster) string {
	if c := condition.Set(o.Status.Conditions).Get(infrav1.VirtualIPHeldCondition); c != nil {
		return c.Reason
	}
	return ""
}

func TestLifeOfVirtualIP(t *testing.T) {
	c := newCluster(t)
	o := c.reconcile(4)
	if e := o.Spec.ControlPlaneEndpoint; e.Host != virtual || e.Port != 6443 || !ptr.Deref(o.Status.Initialization.Provisioned, false) {
		t.Fatalf("the endpoint is known at once: %+v", o)
	}
	if got := heldReason(o); got != "" {
		t.Errorf("without hosts: %s", got)
	}
	c.add(0)
	o = c.reconcile(3)
	if h := c.host(0); !h.config.Initial || !h.holds || len(h.config.Peers) > 0 {
		t.Fatalf("the first host holds the address before there is an API server: %+v", h)
	}
	if m := o.Status.VirtualIP.Members; heldReason(o) != reasonHeld || len(m) != 1 || m[0].Machine != "m-0" || !ptr.Deref(m[0].Holder, false) {
		t.Errorf("%+v", o.Status)
	}
	c.add(1)
	c.reconcile(3)
	if h := c.host(1); h.running {
		t.Error("another host starts before the cluster is created")
	}
	c.initialize()
	c.add(2)
	c.reconcile(4)
	for n := range 3 {
		if h := c.host(n); !h.running || h.config.Initial || len(h.config.Peers) != 2 || h.holds != (n == 0) {
			t.Errorf("host %d: %+v", n, h)
		}
	}
	calls := c.host(0).calls
	c.reconcile(5)
	if c.host(0).calls != calls {
		t.Error("nothing changes, and the hosts are configured again")
	}
	c.leave(0)
	c.reconcile(2)
	if h := c.host(0); !h.config.Leaving || len(c.host(1).config.Peers) != 2 {
		t.Errorf("a machine that is being deleted stays a member with a low priority: %+v", h)
	}
	c.remove(0)
	o = c.reconcile(3)
	if len(c.host(1).config.Peers) != 1 || len(o.Status.VirtualIP.Members) != 2 || c.site.held() != 1 {
		t.Errorf("after the release: %+v", o.Status)
	}
}

func TestVirtualIPOfAnother(t *testing.T) {
	c := newCluster(t)
	c.site.foreign = true
	c.add(0)
	o := c.reconcile(5)
	if got := heldReason(o); got != reasonInUse || c.host(0).running {
		t.Errorf("an address that responds: %s, %+v", got, c.host(0))
	}
	c.site.foreign = false
	if o = c.reconcile(4); heldReason(o) != reasonHeld {
		t.Errorf("after it is free: %+v", o.Status.Conditions)
	}
}

// An unreachable host may hold the address although no other one can be told about it.
func TestUnreachableHolder(t *testing.T) {
	c := newCluster(t)
	c.add(0)
	c.reconcile(5)
	c.initialize()
	c.reconcile(2)
	c.host(0).unreachable = true
	c.add(1)
	o := c.reconcile(6)
	if c.host(1).running {
		t.Error("the new host starts beside a holder that does not know it")
	}
	if heldReason(o) != reasonInUse && heldReason(o) != reasonHostUnreachable {
		t.Errorf("%+v", o.Status.Conditions)
	}
	c.host(0).running, c.host(0).dead = false, true
	c.site.advertise()
	if o = c.reconcile(6); !c.host(1).holds {
		t.Errorf("the address of a dead host is free: %+v", o.Status.Conditions)
	}
}

// A host that holds the address and refuses the configuration with a new host would not send it advertisements.
func TestRefusingHolder(t *testing.T) {
	c := newCluster(t)
	c.add(0)
	c.reconcile(5)
	c.initialize()
	c.reconcile(2)
	c.host(0).refuses = true
	c.add(1)
	o := c.reconcile(6)
	if c.host(1).running {
		t.Error("the new host starts beside a holder that does not know it")
	}
	ready := condition.Set(o.Status.Conditions).Get(clusterv1.ReadyCondition)
	if heldReason(o) != reasonHeld || ready == nil {
		t.Errorf("%+v", o.Status.Conditions)
	}
	c.host(0).refuses = false
	if c.reconcile(6); !c.host(1).running || !c.host(0).holds {
		t.Errorf("%+v, %+v", c.host(0), c.host(1))
	}
}

// However machines come and go and hosts are lost, no two hosts hold the address, and in the end one does.
func TestNeverTwoHolders(t *testing.T) {
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t)
		c.add(0)
		c.reconcile(4)
		c.initialize()
		alive, next := []int{0}, 1
		for range 25 {
			switch n := random.IntN(6); {
			case n < 2 && len(alive) < 4 && next < 20:
				c.add(next)
				alive = append(alive, next)
				next++
			case n == 2 && len(alive) > 1:
				i := random.IntN(len(alive))
				c.leave(alive[i])
				c.reconcile(random.IntN(3))
				c.host(alive[i]).unreachable = false
				c.remove(alive[i])
				alive = slices.Delete(alive, i, i+1)
			case n == 3:
				h := c.host(alive[random.IntN(len(alive))])
				h.unreachable = !h.unreachable
			case n == 4:
				h := c.host(alive[random.IntN(len(alive))])
				h.refuses = !h.refuses
			}
			c.reconcile(random.IntN(3))
		}
		for _, n := range alive {
			c.host(n).unreachable, c.host(n).refuses = false, false
		}
		if o := c.reconcile(8); c.site.held() != 1 || heldReason(o) != reasonHeld {
			t.Fatalf("seed %d: %d holders: %+v", seed, c.site.held(), o.Status.Conditions)
		}
	}
}

func TestTakenBy(t *testing.T) {
	other := func(change func(*infrav1.SSHCluster)) *infrav1.SSHCluster {
		o := sshCluster(change)
		o.Namespace = "team-b"
		return o
	}
	for name, tc := range map[string]struct {
		reason string
		object client.Object
		owner  bool // its Cluster exists and refers to it
		want   string
	}{
		"host":          {"the address of a host", sshHost("x", "", func(h *infrav1.SSHHost) { h.Spec.Address = virtual }), false, "a host"},
		"node":          {"the address of a node", sshHost("x", "", func(h *infrav1.SSHHost) { h.Spec.NodeAddress = virtual }), false, "a host"},
		"jump host":     {"the address of a jump host", sshHost("x", "", func(h *infrav1.SSHHost) { h.Spec.Jump = &infrav1.SSHServer{Address: "::ffff:" + virtual} }), false, "a host"},
		"older cluster": {"first come, first served", other(withVirtualIP), true, "another cluster"},
		"not owned":     {"it will never hold the address", other(withVirtualIP), false, ""},
		"not allowed": {"another namespace gets the range", func() client.Object {
			o := other(withVirtualIP)
			o.Namespace = "team-c"
			return o
		}(), true, ""},
		"endpoint, not allowed": {"the namespace does not get the range", func() client.Object {
			o := other(func(o *infrav1.SSHCluster) {
				o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: virtual, Port: 1}
			})
			o.Namespace, o.Status.Initialization.Provisioned = "team-c", ptr.To(true)
			return o
		}(), true, ""},
		"endpoint": {"somebody else's load balancer", other(func(o *infrav1.SSHCluster) {
			o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: virtual, Port: 1}
		}), true, "another cluster"},
		"younger cluster": {"first come, first served", other(func(o *infrav1.SSHCluster) {
			withVirtualIP(o)
			o.CreationTimestamp = metav1.NewTime(now.Add(time.Hour))
		}), true, ""},
		"used": {"a cluster that runs has it", other(func(o *infrav1.SSHCluster) {
			held(o)
			o.CreationTimestamp, o.Status.Initialization.Provisioned = metav1.NewTime(now.Add(time.Hour)), ptr.To(true)
		}), false, "another cluster"},
		"another": {"an address of its own", other(func(o *infrav1.SSHCluster) { o.Spec.VirtualIP = "192.0.2.99" }), true, ""},
	} {
		objects := []client.Object{tc.object}
		if tc.owner {
			objects = append(objects, coreCluster(func(c *clusterv1.Cluster) {
				c.Namespace = tc.object.GetNamespace()
				c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: tc.object.GetName()}
			}))
		}
		c := newCluster(t, objects...)
		s, err := c.ctrl.observe(t.Context(), func() *infrav1.SSHCluster {
			o := &infrav1.SSHCluster{}
			c.must(c.Get(t.Context(), c.key, o))
			return o
		}())
		if err != nil || s.Taken != tc.want {
			t.Errorf("%s: %q, %v, want %q (%s)", name, s.Taken, err, tc.want, tc.reason)
		}
	}
}

// Users write the status of an SSHMachine, and get no other host configured than the one that is theirs.
func TestForgedHostIsIgnored(t *testing.T) {
	c := newCluster(t)
	c.add(0)
	h := sshHost("victim", "", nil)
	h.Spec.Address, h.Spec.CredentialsRef.Name = "192.0.2.200", "key"
	h.Status.Claim, h.Status.ConfirmedClaimID = &infrav1.SSHHostClaim{Namespace: "team-b", Name: "x", ClaimID: strings.Repeat("z", 26)}, strings.Repeat("z", 26)
	c.must(c.Create(t.Context(), h))
	c.site.hosts["192.0.2.200"] = &siteHost{}
	o := &infrav1.SSHMachine{}
	c.must(c.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "m-0"}, o))
	o.Status.HostRef = &infrav1.SSHHostReference{Namespace: "hosts", Name: "victim"}
	c.must(c.Status().Update(t.Context(), o))
	c.reconcile(4)
	if c.site.hosts["192.0.2.200"].calls+c.host(0).calls > 0 {
		t.Error("a host was configured")
	}
}

// After a restore, the hosts of machines are unknown for a moment. The others are not told that they have left.
func TestUnknownHostStaysAPeer(t *testing.T) {
	c := newCluster(t)
	c.add(0)
	c.add(1)
	c.initialize()
	c.reconcile(5)
	m := &clusterv1.Machine{}
	c.must(c.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "m-1"}, m))
	m.Spec.ProviderID = "ssh://x"
	c.must(c.Update(t.Context(), m))
	o := &infrav1.SSHMachine{}
	c.must(c.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "m-1"}, o))
	o.Status = infrav1.SSHMachineStatus{}
	c.must(c.Status().Update(t.Context(), o))
	c.reconcile(3)
	if len(c.host(0).config.Peers) != 1 {
		t.Error("the peer was removed")
	}
}

// A host that joins and cannot be reached for a moment is not prepared any more, by its conditions. Its API server may run: if its
// peers stopped to send their advertisements to it, it would hold the address beside another host.
func TestUnreachableHostStaysAPeer(t *testing.T) {
	c := newCluster(t)
	c.add(0)
	c.add(1)
	c.initialize()
	c.reconcile(5)
	setPrepared := func(n int, status metav1.ConditionStatus) {
		o := &infrav1.SSHMachine{}
		c.must(c.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: fmt.Sprintf("m-%d", n)}, o))
		o.Status.Conditions[0].Status = status
		c.must(c.Status().Update(t.Context(), o))
	}
	c.host(1).unreachable = true
	setPrepared(1, metav1.ConditionFalse)
	o := c.reconcile(3)
	if len(c.host(0).config.Peers) != 1 || len(o.Status.VirtualIP.Members) != 2 {
		t.Errorf("the peer was removed: %+v, %+v", c.host(0), o.Status.VirtualIP)
	}
	// It gets the changes of its peers as soon as it responds, prepared or not, but it is not started.
	c.host(1).unreachable = false
	c.add(2)
	c.reconcile(3)
	if h := c.host(1); len(h.config.Peers) != 2 {
		t.Errorf("%+v", h)
	}
	c.host(1).running = false
	c.reconcile(3)
	if h := c.host(1); h.running {
		t.Error("a host that is not prepared was started")
	}
	setPrepared(1, metav1.ConditionTrue)
	c.reconcile(3)
	if h := c.host(1); !h.running {
		t.Error("the host was not started")
	}
}

// A host whose node address is unknown, because the operator changed the address to a DNS name, does not change the others.
func TestUnknownAddressChangesNothing(t *testing.T) {
	c := newCluster(t)
	c.add(0)
	c.add(1)
	c.initialize()
	c.reconcile(5)
	h := &infrav1.SSHHost{}
	c.must(c.Get(t.Context(), client.ObjectKey{Namespace: "hosts", Name: "h-1"}, h))
	h.Spec.Address = "h1.example"
	c.must(c.Update(t.Context(), h))
	c.site.names = map[string]string{"h1.example": "192.0.2.101"}
	calls := c.host(0).calls + c.host(1).calls
	if o := c.reconcile(4); heldReason(o) != reasonHeld || c.host(0).calls+c.host(1).calls != calls || len(o.Status.VirtualIP.Members) != 2 {
		t.Errorf("%s, %+v, %+v", heldReason(o), c.host(0), c.host(1))
	}
	h.Spec.NodeAddress = "192.0.2.101"
	c.must(c.Update(t.Context(), h))
	c.add(2)
	if o := c.reconcile(4); heldReason(o) != reasonHeld || len(c.host(0).config.Peers) != 2 {
		t.Errorf("%s, %+v", heldReason(o), c.host(0))
	}
}

// brokenConnector fails at one of the calls, as a host does whose connection was lost and cannot be opened again.
type brokenConnector struct {
	siteConnector
	at  string
	err error
}

func (c brokenConnector) Connect(ctx context.Context, t remote.Target) (Host, error) {
	if c.at == "connect" {
		return nil, c.err
	}
	h, err := c.siteConnector.Connect(ctx, t)
	return brokenHost{h, c}, err
}

type brokenHost struct {
	Host
	brokenConnector
}

func (h brokenHost) ConfigureVirtualIP(ctx context.Context, v remote.VirtualIP, only remote.VirtualIPConditions) error {
	if h.at == "configure" {
		return h.err
	}
	return h.Host.ConfigureVirtualIP(ctx, v, only)
}

func (h brokenHost) VirtualIPState(ctx context.Context, claimID string, a netip.Addr) (remote.VirtualIPState, error) {
	if h.at == "state" {
		return remote.VirtualIPState{}, h.err
	}
	return h.Host.VirtualIPState(ctx, claimID, a)
}

// The conditions of an SSHCluster are for its tenant, who may not know the address, the user, the keys and the Secret of the operator.
func TestConditionsDiscloseNothing(t *testing.T) {
	secrets := []string{"192.0.2.100", "gate.internal", "opsuser", "SHA256:", "fleet-secret"}
	for name, err := range map[string]error{
		"another key": fault.New(fault.Invalid, remote.ReasonHostKeyMismatch, "host 192.0.2.100 presented the ssh-ed25519 key SHA256:abc, but pinned are SHA256:def"),
		"login":       fault.New(fault.Invalid, "AuthenticationFailed", "host 192.0.2.100 does not accept the key SHA256:abc for user opsuser"),
		"no response": fault.New(fault.Unreachable, remote.ReasonUnreachable, "host 192.0.2.100 does not respond at 192.0.2.100:22 through jump host gate.internal"),
		"Secret":      fault.New(fault.Invalid, "CredentialsAbsent", "Secret fleet-secret with the SSH key of host 192.0.2.100 does not exist in namespace hosts"),
		"timeout":     context.DeadlineExceeded,
	} {
		for _, at := range []string{"connect", "state", "configure"} {
			if name == "Secret" && at != "connect" {
				continue
			}
			c := newCluster(t)
			c.add(0)
			c.ctrl.Connector = brokenConnector{siteConnector{c.site}, at, err}
			o := c.reconcile(4)
			isReported := false
			for _, got := range o.Status.Conditions {
				isReported = isReported || strings.Contains(got.Message, "SSHHost h-0")
				for _, secret := range secrets {
					if strings.Contains(got.Message, secret) {
						t.Errorf("%s, %s: condition %s discloses %q: %s", name, at, got.Type, secret, got.Message)
					}
				}
			}
			if !isReported {
				t.Errorf("%s, %s: the host is missing: %+v", name, at, o.Status.Conditions)
			}
		}
	}
}

func TestMemberChanged(t *testing.T) {
	machine := func(change func(*clusterv1.Machine)) client.Object {
		m := &clusterv1.Machine{}
		change(m)
		return m
	}
	sshMachine := func(change func(*infrav1.SSHMachine)) client.Object {
		m := &infrav1.SSHMachine{}
		change(m)
		return m
	}
	for name, tc := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"nothing":  {machine(func(*clusterv1.Machine) {}), machine(func(m *clusterv1.Machine) { m.ResourceVersion = "2" }), false},
		"data":     {machine(func(*clusterv1.Machine) {}), machine(func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = ptr.To("x") }), true},
		"deletion": {machine(func(*clusterv1.Machine) {}), machine(func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }), true},
		"host":     {sshMachine(func(*infrav1.SSHMachine) {}), sshMachine(func(m *infrav1.SSHMachine) { m.Status.HostRef = &infrav1.SSHHostReference{Name: "h"} }), true},
		"prepared": {sshMachine(func(*infrav1.SSHMachine) {}), sshMachine(func(m *infrav1.SSHMachine) {
			m.Status.Conditions = []metav1.Condition{{Type: infrav1.HostPreparedCondition, Status: metav1.ConditionTrue}}
		}), true},
	} {
		if got := memberChanged().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
