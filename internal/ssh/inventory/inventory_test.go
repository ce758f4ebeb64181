package inventory_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// host is a host that namespace team-a can claim.
func host(name string, change func(*infrav1.SSHHost)) *infrav1.SSHHost {
	h := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: name, Generation: 1, Labels: map[string]string{"size": "large"}}}
	h.Spec.OfferedTo = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	h.Spec.Address, h.Spec.User, h.Spec.CredentialsRef.Name = "192.0.2.1", "root", "key"
	h.Status.State, h.Status.ObservedGeneration, h.Status.Facts.Hostname = infrav1.SSHHostAvailable, 1, name
	if change != nil {
		change(h)
	}
	return h
}

var teamA = inventory.Namespace{Name: "team-a", UID: "uid-a", Labels: map[string]string{"team": "a"}}

func TestIsOffered(t *testing.T) {
	selector := func(s metav1.LabelSelector) func(*infrav1.SSHHost) {
		return func(h *infrav1.SSHHost) { h.Spec.OfferedTo = &s }
	}
	for name, tc := range map[string]struct {
		reason    string
		change    func(*infrav1.SSHHost)
		namespace inventory.Namespace
		want      bool
	}{
		"label":             {"the namespace has it", nil, teamA, true},
		"another label":     {"the namespace has another value", nil, inventory.Namespace{Name: "team-b", Labels: map[string]string{"team": "b"}}, false},
		"no labels":         {"the namespace is unknown", nil, inventory.Namespace{Name: "team-a"}, false},
		"not set":           {"only its own namespace", func(h *infrav1.SSHHost) { h.Spec.OfferedTo = nil }, teamA, false},
		"not set, its own":  {"its own namespace", func(h *infrav1.SSHHost) { h.Spec.OfferedTo = nil }, inventory.Namespace{Name: "hosts"}, true},
		"empty":             {"all namespaces", selector(metav1.LabelSelector{}), inventory.Namespace{Name: "other"}, true},
		"invalid selector":  {"an invalid one selects nothing", selector(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}}}), teamA, false},
		"name of namespace": {"the label that every Namespace has", selector(metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "team-a"}}), teamA, false},
	} {
		if got := inventory.IsOffered(host("h", tc.change), tc.namespace); got != tc.want {
			t.Errorf("%s: %v (%s)", name, got, tc.reason)
		}
	}
}

func TestChoose(t *testing.T) {
	claimed := func(h *infrav1.SSHHost) { h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-b", Name: "m"} }
	state := func(s infrav1.SSHHostState) func(*infrav1.SSHHost) {
		return func(h *infrav1.SSHHost) { h.Status.State = s }
	}
	used := func(reuse infrav1.SSHReuse) func(*infrav1.SSHHost) {
		return func(h *infrav1.SSHHost) {
			h.Annotations, h.Spec.Reuse = map[string]string{infrav1.LastNamespaceAnnotation: "team-b"}, reuse
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		change  func(*infrav1.SSHHost)
		request func(*inventory.Request)
		message string // empty: the host is chosen
	}{
		"available": {reason: "it is free"},
		"selected": {reason: "it has the label", request: func(r *inventory.Request) {
			r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"size": "large"}}
		}},
		"other labels": {"it lacks the label", nil, func(r *inventory.Request) {
			r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"size": "small"}}
		}, `(hostSelector "size=small"): none of the 1`},
		"other domain":   {"the Machine must be in its domain", nil, func(r *inventory.Request) { r.FailureDomain = "rack-2" }, "1 in another failure domain"},
		"not offered":    {"nothing is disclosed", func(h *infrav1.SSHHost) { h.Spec.OfferedTo = nil }, nil, "No SSHHost is offered to namespace team-a"},
		"claimed":        {"another has it", claimed, nil, "1 in use"},
		"released":       {"it is not clean yet", func(h *infrav1.SSHHost) { claimed(h); h.Status.Claim.Released = ptr.To(true) }, nil, "1 being cleaned"},
		"cleaning":       {"it is not clean yet", state(infrav1.SSHHostCleaning), nil, "1 being cleaned"},
		"unreachable":    {"it does not respond", state(infrav1.SSHHostUnreachable), nil, "1 unreachable"},
		"quarantined":    {"the operator has to act", state(infrav1.SSHHostQuarantined), nil, "1 quarantined"},
		"never checked":  {"nothing is known", state(""), nil, "1 not checked yet"},
		"spec changed":   {"the status is about another address", func(h *infrav1.SSHHost) { h.Generation = 2 }, nil, "1 not checked yet"},
		"maintenance":    {"the operator wants it", func(h *infrav1.SSHHost) { h.Spec.Maintenance = ptr.To(true) }, nil, "1 in maintenance"},
		"deleting":       {"it goes", func(h *infrav1.SSHHost) { h.DeletionTimestamp = ptr.To(metav1.Now()) }, nil, "1 in maintenance"},
		"used by others": {"root of another namespace may have left something", used(infrav1.SSHReuseSameNamespace), nil, "1 used by another namespace before"},
		"reuse by any":   {reason: "the operator trusts all", change: used(infrav1.SSHReuseAny)},
		"used by same":   {reason: "the same users", change: func(h *infrav1.SSHHost) { h.Annotations = map[string]string{infrav1.LastNamespaceAnnotation: "team-a"} }},
		"recreated": {"other users may own a namespace of the same name", func(h *infrav1.SSHHost) {
			h.Annotations, h.Status.LastNamespaceUID = map[string]string{infrav1.LastNamespaceAnnotation: "team-a"}, "old"
		}, nil, "1 used by another namespace before"},
		"used by same, recorded": {reason: "the namespace is the same object", change: func(h *infrav1.SSHHost) {
			h.Annotations, h.Status.LastNamespaceUID = map[string]string{infrav1.LastNamespaceAnnotation: "team-a"}, "uid-a"
		}},
		"containerd":    {"a bundle cannot be installed beside it", func(h *infrav1.SSHHost) { h.Status.Facts.ContainerRuntime = "containerd,docker" }, nil, "1 with a container runtime that prevents the installation of a bundle (SSHHost hosts/h)"},
		"docker alone":  {reason: "it can stay", change: func(h *infrav1.SSHHost) { h.Status.Facts.ContainerRuntime = "docker" }},
		"installed":     {reason: "the machine uses it", change: func(h *infrav1.SSHHost) { h.Status.Facts.ContainerRuntime = "containerd" }, request: func(r *inventory.Request) { r.Installed = true }},
		"not installed": {"the machine brings no programs", nil, func(r *inventory.Request) { r.Installed = true }, "1 without containerd"},
		"small":         {"etcd and the API server need more", func(h *infrav1.SSHHost) { h.Status.Facts.MemoryMiB = 1024 }, func(r *inventory.Request) { r.ControlPlane = true }, "1 too small for a control plane"},
		"one CPU":       {"kubeadm refuses it", func(h *infrav1.SSHHost) { h.Status.Facts.CPUs = 1 }, func(r *inventory.Request) { r.ControlPlane = true }, "1 too small for a control plane"},
		"small worker":  {reason: "a worker needs less", change: func(h *infrav1.SSHHost) { h.Status.Facts.MemoryMiB, h.Status.Facts.CPUs = 1024, 1 }},
		"large enough":  {reason: "it suffices", change: func(h *infrav1.SSHHost) { h.Status.Facts.MemoryMiB, h.Status.Facts.CPUs = 2048, 2 }, request: func(r *inventory.Request) { r.ControlPlane = true }},
		"unsuitable": {"its checks have failed", nil, func(r *inventory.Request) { r.Unsuitable = []infrav1.SSHHostReference{{Namespace: "hosts", Name: "h"}} },
			"1 that failed the preflight checks of this machine (SSHHost hosts/h)"},
		"same hostname": {"a Node has the name of its host", nil, func(r *inventory.Request) { r.Peers = []*infrav1.SSHHost{host("h", nil)} }, "1 with the hostname, machine ID or product UUID"},
		"same hardware": {"a cloned virtual machine", func(h *infrav1.SSHHost) { h.Status.Facts.ProductUUIDHash = "x" }, func(r *inventory.Request) {
			r.Peers = []*infrav1.SSHHost{host("i", func(h *infrav1.SSHHost) { h.Status.Facts.ProductUUIDHash = "x" })}
		}, "1 with the hostname, machine ID or product UUID"},
	} {
		r := inventory.Request{Namespace: teamA}
		if tc.request != nil {
			tc.request(&r)
		}
		got := r.Choose([]*infrav1.SSHHost{host("h", tc.change)})
		switch {
		case tc.message == "" && got.Host == nil:
			t.Errorf("%s: not chosen, %s (%s)", name, got.Message(r), tc.reason)
		case tc.message != "" && got.Host != nil:
			t.Errorf("%s: chosen (%s)", name, tc.reason)
		case tc.message != "" && !strings.Contains(got.Message(r), tc.message):
			t.Errorf("%s: message %q, want %q (%s)", name, got.Message(r), tc.message, tc.reason)
		}
	}
}

// Machines prefer hosts with their bundle. Machines that are created together take different hosts, and together the same ones
// in every run: the plan of a change relies on it, which cannot know their names.
func TestPreference(t *testing.T) {
	var hosts []*infrav1.SSHHost
	for _, name := range []string{"c", "a", "e", "b", "d"} {
		hosts = append(hosts, host(name, nil))
	}
	slices.SortFunc(hosts, func(a, b *infrav1.SSHHost) int { return strings.Compare(a.Name, b.Name) })
	for turn, want := range []string{"a", "b", "c", "d", "e", "a"} {
		if got := (inventory.Request{Namespace: teamA, Version: "v1.36.3", Turn: turn}).Choose(hosts).Host; got.Name != want {
			t.Errorf("turn %d: host %s, want %s", turn, got.Name, want)
		}
	}
	hosts[3].Status.Bundles = []infrav1.SSHHostBundle{{Digest: "x", Version: "v1.36.3"}}
	r := inventory.Request{Namespace: teamA, Version: "v1.36.3"}
	if got := r.Choose(hosts).Host; got.Name != "d" {
		t.Errorf("host %s instead of the one with the bundle", got.Name)
	}
}

// In whatever order machines claim hosts, they take the same hosts.
func TestMachinesTakeTheSameHosts(t *testing.T) {
	machine := func(name string) infrav1.SSHMachine {
		m := infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
		m.Spec.ClaimID = strings.Repeat(name[:1], 26)
		return m
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		machines := []infrav1.SSHMachine{machine("x-1"), machine("y-2"), machine("z-3")}
		var hosts []*infrav1.SSHHost
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			hosts = append(hosts, host(name, nil))
		}
		for _, n := range order {
			m := &machines[n]
			_, turn := inventory.AmongPeers(m, machines, hosts)
			h := inventory.Request{Namespace: teamA, Turn: turn}.Choose(hosts).Host
			h.Status.Claim = &infrav1.SSHHostClaim{Namespace: m.Namespace, Name: m.Name, ClaimID: m.Spec.ClaimID}
		}
		for n, h := range hosts {
			if isTaken := h.Status.Claim != nil; isTaken != (n < 3) {
				t.Errorf("order %v: host %s is taken: %t", order, h.Name, isTaken)
			}
		}
	}
}

func TestDenied(t *testing.T) {
	p := policy.Default()
	p.Hosts.Ranges, p.Hosts.Namespaces = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, []string{"hosts"}
	for name, tc := range map[string]struct {
		change func(*infrav1.SSHHost)
		want   string
	}{
		"allowed":           {nil, ""},
		"mapped":            {func(h *infrav1.SSHHost) { h.Spec.Address = "::ffff:192.0.2.9" }, ""},
		"another range":     {func(h *infrav1.SSHHost) { h.Spec.Address = "169.254.169.254" }, "hosts.ranges"},
		"mapped, outside":   {func(h *infrav1.SSHHost) { h.Spec.Address = "::ffff:10.0.0.1" }, "hosts.ranges"},
		"name":              {func(h *infrav1.SSHHost) { h.Spec.Address = "db.internal" }, "hosts.ranges"},
		"jump host outside": {func(h *infrav1.SSHHost) { h.Spec.Jump = &infrav1.SSHServer{Address: "10.0.0.1"} }, "hosts.ranges"},
		"another namespace": {func(h *infrav1.SSHHost) { h.Namespace = "team-a" }, "hosts.namespaces"},
	} {
		h := host("h", tc.change)
		got := inventory.Denied(h, p)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
		if message := inventory.Denied(h, policy.Default()); message != "" {
			t.Errorf("%s: the default denies it: %s", name, message)
		}
		if _, err := inventory.Target(t.Context(), fake.NewClientBuilder().Build(), h, p); tc.want != "" && (fault.As(err) == nil || fault.As(err).Reason != inventory.ReasonDenied) {
			t.Errorf("%s: a target in spite of the configuration: %v", name, err)
		}
	}
}

func TestTarget(t *testing.T) {
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: name}, Data: data}
	}
	c := fake.NewClientBuilder().WithObjects(
		secret("key", map[string][]byte{"ssh-privatekey": []byte("k"), "ssh-certificate": []byte("c")}),
		secret("jump", map[string][]byte{"ssh-privatekey": []byte("j")}), secret("empty", nil),
	).Build()
	h := host("h", func(h *infrav1.SSHHost) {
		h.Spec.Port, h.Spec.User, h.Spec.Sudo, h.Spec.HostKeys = 2222, "admin", infrav1.SSHSudoAlways, []string{"a"}
		h.Spec.Jump = &infrav1.SSHServer{Address: "192.0.2.2", Port: 22, User: "jump", HostKeys: []string{"b"}, CredentialsRef: infrav1.SSHCredentialsReference{Name: "jump"}}
	})
	got, err := inventory.Target(t.Context(), c, h, policy.Default())
	if err != nil {
		t.Fatal(err)
	}
	want := remote.Target{Address: "192.0.2.1", Port: 2222, User: "admin", Sudo: true, Namespace: "hosts", HostKeys: []string{"a"}, PrivateKey: []byte("k"), Certificate: []byte("c"),
		Jump: &remote.Target{Address: "192.0.2.2", Port: 22, User: "jump", HostKeys: []string{"b"}, PrivateKey: []byte("j")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, reason := range map[string]string{"absent": "CredentialsAbsent", "empty": "CredentialsInvalid"} {
		h.Spec.CredentialsRef.Name = name
		if _, err := inventory.Target(t.Context(), c, h, policy.Default()); fault.As(err) == nil || fault.As(err).Reason != reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two machines that read the same host at the same time never both get it.
func TestClaimIsAtomic(t *testing.T) {
	s := runtime.NewScheme()
	if err := infrav1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	h := host("h", nil)
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(h).WithStatusSubresource(h).Build()
	read := func() *infrav1.SSHHost {
		o := &infrav1.SSHHost{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(h), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	machine := func(name, id string) *infrav1.SSHMachine {
		m := &infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
		m.Spec.ClaimID = strings.Repeat(id, 26)
		return m
	}
	first, second := read(), read()
	a, b := machine("a", "a"), machine("b", "b")
	if err := inventory.Claim(t.Context(), kube.NewWriter(c, "one"), first, inventory.NewClaim(a, "u", first)); err != nil {
		t.Fatal(err)
	}
	if err := inventory.Claim(t.Context(), kube.NewWriter(c, "two"), second, inventory.NewClaim(b, "u", second)); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the second claim: %v", err)
	}
	got := read()
	if !inventory.HasClaim(got, a) || inventory.HasClaim(got, b) {
		t.Errorf("claim %+v", got.Status.Claim)
	}
	// A claim ID that another machine copies is worth nothing.
	if thief := machine("c", "a"); inventory.HasClaim(got, thief) {
		t.Error("the claim of another machine with the same ID")
	}
	if err := inventory.Release(t.Context(), kube.NewWriter(c, "one"), got, inventory.NewClaim(a, "other", got)); err != nil || !inventory.IsReleased(read().Status.Claim) || read().Status.Claim.NamespaceUID != "u" {
		t.Errorf("released: %+v, %v", read().Status.Claim, err)
	}
	if err := inventory.Drop(t.Context(), kube.NewWriter(c, "one"), read()); err != nil || read().Status.Claim != nil {
		t.Errorf("dropped: %+v, %v", read().Status.Claim, err)
	}
}

// A fault that names the delay of the next attempt retains it without the address.
func TestNeutralRetainsDelay(t *testing.T) {
	err := inventory.Neutral(host("h", nil), fault.New(fault.Invalid, "DiskSuspected", "bin/kubelet is damaged on host 192.0.2.1").RetryIn(time.Minute))
	if fault.RetryAfter(err) != time.Minute || fault.UserMessage(err) != "bin/kubelet is damaged on SSHHost h" {
		t.Errorf("%v after %v", err, fault.RetryAfter(err))
	}
}

// The node on a claimed host keeps its address, because its cluster knows it, whatever becomes of the address of the SSH server.
func TestNodeAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		reason             string
		before, after      func(*infrav1.SSHHost)
		wanted, wantedFree string
	}{
		"the same":       {"nothing changes", nil, nil, "192.0.2.1", "192.0.2.1"},
		"another one":    {"the network of the operator was changed", nil, func(h *infrav1.SSHHost) { h.Spec.Address = "192.0.2.99" }, "192.0.2.1", "192.0.2.99"},
		"a name":         {"the operator uses names now", nil, func(h *infrav1.SSHHost) { h.Spec.Address = "h1.example" }, "192.0.2.1", ""},
		"corrected":      {"the operator sets what the node has", nil, func(h *infrav1.SSHHost) { h.Spec.NodeAddress = "10.0.0.1" }, "10.0.0.1", "10.0.0.1"},
		"set":            {"the host is behind a NAT", func(h *infrav1.SSHHost) { h.Spec.NodeAddress = "10.0.0.1" }, func(h *infrav1.SSHHost) { h.Spec.Address = "192.0.2.99" }, "10.0.0.1", "10.0.0.1"},
		"set afterwards": {"the machine waits for it", func(h *infrav1.SSHHost) { h.Spec.Address = "h1.example" }, func(h *infrav1.SSHHost) { h.Spec.NodeAddress = "10.0.0.1" }, "10.0.0.1", "10.0.0.1"},
	} {
		h := host("h", tc.before)
		m := &infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
		claim := inventory.NewClaim(m, "u", h)
		if claim.ClusterName != "c" {
			t.Errorf("%s: the claim is for Cluster %q", name, claim.ClusterName)
		}
		h.Status.Claim = &claim
		if tc.after != nil {
			tc.after(h)
		}
		if got := inventory.NodeAddress(h); got != tc.wanted {
			t.Errorf("%s: %q, want %q (%s)", name, got, tc.wanted, tc.reason)
		}
		h.Status.Claim = nil
		if got := inventory.NodeAddress(h); got != tc.wantedFree {
			t.Errorf("%s, free again: %q, want %q", name, got, tc.wantedFree)
		}
	}
}
