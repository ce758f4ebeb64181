package machinepool

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func localPool(change func(*infrav1.LocalMachinePool)) *infrav1.LocalMachinePool {
	o := &infrav1.LocalMachinePool{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "lmp", UID: "lmp-uid", Finalizers: []string{infrav1.LocalMachinePoolFinalizer},
		Labels:          map[string]string{clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "mp", UID: "mp-uid"}},
	}}
	o.Spec.ProviderID = "slipway:///ns/lmp"
	if change != nil {
		change(o)
	}
	return o
}

func corePool(replicas int32, change func(*clusterv1.MachinePool)) *clusterv1.MachinePool {
	secret := "boot"
	p := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mp", UID: "mp-uid"}}
	p.Spec.ClusterName, p.Spec.Replicas = "c", &replicas
	p.Spec.Template.Spec.Version, p.Spec.Template.Spec.Bootstrap.DataSecretName = "v1.36.3", &secret
	if change != nil {
		change(p)
	}
	return p
}

func coreCluster() *clusterv1.Cluster {
	yes := true
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	c.Status.Initialization.InfrastructureProvisioned = &yes
	return c
}

// a member, described by a word for each thing that is special about it: ready, new (neither ready nor provisioned),
// lost, outdated, marked, doomed, owned (by a Machine), machine-doomed, machine-marked.
func member(name string, age int, words string) poolMember {
	m := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(age) * time.Minute)),
		Labels:          map[string]string{clusterv1.ClusterNameLabel: "c"},
		Annotations:     map[string]string{backend.PoolAnnotation: "lmp"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: infrav1.GroupVersion.String(), Kind: "LocalMachinePool", Name: "lmp", UID: "lmp-uid"}},
	}}
	yes := true
	out := poolMember{Local: m}
	owned := func() *clusterv1.Machine {
		if out.Machine == nil {
			out.Machine = &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{}}}
		}
		return out.Machine
	}
	provisioned := func(ready, container metav1.Condition) {
		m.Spec.ProviderID, m.Status.InstanceID = backend.ProviderID(name), "id-"+name
		m.Status.Initialization.Provisioned = &yes
		m.Status.NodeVersion = "v1.36.3"
		m.Status.Conditions = []metav1.Condition{ready, container}
	}
	condition := func(t string, s metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: t, Status: s, Reason: reason, Message: message}
	}
	for _, w := range strings.Fields(words) {
		switch w {
		case "ready":
			provisioned(condition("Ready", "True", "Ready", ""), condition(infrav1.MachineProvisionedCondition, "True", "MachineRunning", ""))
		case "down":
			provisioned(condition("Ready", "Unknown", "ReadyUnknown", "Docker does not respond"), condition(infrav1.MachineProvisionedCondition, "Unknown", "DockerUnreachable", ""))
		case "lost":
			provisioned(condition("Ready", "False", "NotReady", "removed by hand"), condition(infrav1.MachineProvisionedCondition, "False", backend.ReasonMachineRemoved, ""))
		case "new":
			m.Status.Conditions = []metav1.Condition{condition("Ready", "False", "NotReady", "still booting")}
		case "outdated":
			m.Annotations[hashAnnotation] = "old"
		case "marked":
			m.Annotations[clusterv1.DeleteMachineAnnotation] = ""
		case "doomed":
			m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: now}, []string{"x"}
		case "owned":
			owned()
		case "machine-doomed":
			owned().DeletionTimestamp = &metav1.Time{Time: now}
		case "sick", "to-be-replaced":
			owned().Status.Conditions = append(owned().Status.Conditions, condition("HealthCheckSucceeded", "False", "UnhealthyNode", "NotReady"))
			if w == "to-be-replaced" {
				owned().Status.Conditions = append(owned().Status.Conditions, condition("OwnerRemediated", "False", "WaitingForRemediation", ""))
			}
		case "machine-marked":
			owned().Annotations[clusterv1.DeleteMachineAnnotation] = ""
		}
	}
	return out
}

func newSnapshot(replicas int32, members ...poolMember) snapshot {
	s := snapshot{Object: localPool(nil), Pool: corePool(replicas, nil), Cluster: coreCluster(), Members: members, Live: true, Now: now}
	s.Object.Spec.ProviderIDList, s.Object.Status.Replicas = s.providerIDs(), &replicas
	return s
}

func TestDecide(t *testing.T) {
	newOne := regexp.MustCompile(`LocalMachine lmp-[a-z0-9]{5}:`)
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
		waits  []string
	}{
		"from nothing": {"one LocalMachine per replica (IP2-03)", newSnapshot(2),
			[]string{"create LocalMachine NEW there are fewer than desired", "create LocalMachine NEW there are fewer than desired"}, nil},
		"as asked": {"nothing to do", newSnapshot(2, member("a", 1, "ready"), member("b", 1, "ready")), nil, nil},
		"no infrastructure": {"machines have nowhere to be", func() snapshot {
			s := newSnapshot(1)
			s.Cluster.Status.Initialization.InfrastructureProvisioned = nil
			return s
		}(), nil, []string{"WaitingForClusterInfrastructureReady"}},
		"no bootstrap data": {"nor anything to run", func() snapshot {
			s := newSnapshot(1)
			s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil
			return s
		}(), nil, []string{"WaitingForBootstrapData"}},
		"no bootstrap data yet": {"machines boot while it is made (IM-11)", func() snapshot {
			s := newSnapshot(1)
			s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName, s.NodeCapacity.Scripted = nil, true
			return s
		}(), []string{"create LocalMachine NEW there are fewer than desired"}, nil},
		"no owner": {"nobody says how many", func() snapshot { s := newSnapshot(1); s.Pool = nil; return s }(), nil, []string{"WaitingForMachinePool"}},
		"scale up": {"the missing ones are made", newSnapshot(3, member("a", 1, "ready"), member("b", 1, "new")),
			[]string{"create LocalMachine NEW there are fewer than desired"}, nil},
		"scale down, marked": {"the annotation on the Machine comes first (MP-08)",
			newSnapshot(2, member("a", 3, "ready owned"), member("b", 2, "new owned"), member("c", 1, "ready machine-marked")),
			[]string{"delete Machine c: there are more than desired; it is marked with the delete-machine annotation"}, nil},
		"scale down, marked here": {"the annotation on the LocalMachine counts too",
			newSnapshot(1, member("a", 3, "ready"), member("b", 2, "ready marked")),
			[]string{"delete LocalMachine b: there are more than desired; it is marked with the delete-machine annotation"}, nil},
		"scale down, not ready": {"then those that do not serve",
			newSnapshot(2, member("a", 3, "ready owned"), member("b", 2, "new owned"), member("c", 1, "ready owned")),
			[]string{"delete Machine b: there are more than desired; it is not Ready"}, nil},
		"scale down, oldest": {"then the oldest", newSnapshot(1, member("a", 3, "ready owned"), member("b", 4, "ready owned"), member("c", 1, "ready owned")),
			[]string{"delete Machine b: there are more than desired; it is the oldest", "delete Machine a: there are more than desired; it is the oldest"}, nil},
		"marked, not scaled down": {"the annotation alone removes nothing", newSnapshot(1, member("a", 1, "ready machine-marked")), nil, nil},
		"scale to zero":           {"all go", newSnapshot(0, member("a", 1, "ready owned")), []string{"delete Machine a: there are more than desired; it is the oldest"}, nil},
		"lost": {"removed by hand: its Machine goes, a new one comes", newSnapshot(1, member("a", 1, "lost owned")),
			[]string{"delete Machine a: its machine was removed from the host", "create LocalMachine NEW there are fewer than desired"}, nil},
		"unhealthy": {"a health check asks for its replacement: its Machine goes, a new one comes (MP-16)", newSnapshot(2, member("a", 1, "ready to-be-replaced"), member("b", 1, "ready owned")),
			[]string{"delete Machine a: a health check found it unhealthy", "create LocalMachine NEW there are fewer than desired"}, nil},
		"unhealthy, restricted": {"a health check that does not ask changes nothing (HC-05)", newSnapshot(1, member("a", 1, "ready sick")), nil, nil},
		"doomed": {"deleted by a user: replaced (MP-08)", newSnapshot(2, member("a", 1, "ready machine-doomed"), member("b", 1, "ready")),
			[]string{"create LocalMachine NEW there are fewer than desired"}, nil},
		"going": {"what is going is not deleted again", newSnapshot(1, member("a", 1, "ready doomed"), member("b", 1, "ready")), nil, nil},
		"outdated": {"one more is made first", newSnapshot(2, member("a", 2, "ready outdated owned"), member("b", 1, "ready outdated owned")),
			[]string{"create LocalMachine NEW it replaces an outdated one"}, nil},
		"outdated, surge not ready": {"nobody goes before it is Ready",
			newSnapshot(2, member("a", 2, "ready outdated owned"), member("b", 1, "ready outdated owned"), member("c", 0, "new owned")), nil, nil},
		"outdated, surge ready": {"then the oldest outdated one goes",
			newSnapshot(2, member("a", 2, "ready outdated owned"), member("b", 3, "ready outdated owned"), member("c", 0, "ready owned")),
			[]string{"delete Machine b: it is outdated"}, nil},
		"outdated, broken": {"one that does not serve need not wait",
			newSnapshot(2, member("a", 2, "ready outdated owned"), member("b", 1, "new outdated owned"), member("c", 0, "new owned")),
			[]string{"delete Machine b: it is outdated"}, nil},
		"outdated, almost done": {"the last one", newSnapshot(2, member("a", 2, "ready outdated owned"), member("b", 0, "ready owned"), member("c", 0, "ready owned")),
			[]string{"delete Machine a: it is outdated"}, nil},
		"outdated and scaled down": {"more than the surge goes at once",
			newSnapshot(1, member("a", 2, "ready outdated owned"), member("b", 3, "ready outdated owned"), member("c", 0, "new owned")),
			[]string{"delete Machine b: it is outdated"}, nil},
		"deleting": {"all go, through their Machines", func() snapshot {
			s := newSnapshot(2, member("a", 1, "ready owned"), member("b", 1, "new"), member("c", 1, "ready doomed"))
			s.Object.DeletionTimestamp = &metav1.Time{Time: now}
			return s
		}(), []string{"delete Machine a: the pool is being deleted", "delete LocalMachine b: the pool is being deleted"}, []string{"WaitingForMachines"}},
		"deleted": {"the finalizer goes", func() snapshot {
			s := newSnapshot(2)
			s.Object.DeletionTimestamp = &metav1.Time{Time: now}
			return s
		}(), nil, nil},
		"a member joined": {"IP2-05: the list follows", func() snapshot {
			s := newSnapshot(1, member("a", 1, "ready"))
			s.Object.Spec.ProviderIDList = nil
			return s
		}(), []string{"set providerIDList to [slipway:///a]: these machines exist"}, nil},
		"pool ID": {"IP2-04", func() snapshot { s := newSnapshot(0); s.Object.Spec.ProviderID = ""; return s }(), []string{"set providerIDList to []: these machines exist"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			var did, waits []string
			for _, a := range p.Actions {
				did = append(did, newOne.ReplaceAllString(a.String(), "LocalMachine NEW"))
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
			tc.s.Live = false
			changes := len(tc.want) > 0 && !strings.HasPrefix(tc.want[0], "set providerIDList") || !tc.s.Object.DeletionTimestamp.IsZero()
			if p := decide(tc.s); changes != (len(p.Reads) == 1) {
				t.Errorf("nothing is made or removed on the word of a cache; asks %v", p.Reads)
			}
		})
	}
}

func TestProviderIDs(t *testing.T) { // IP2-05: what exists, and nothing else
	s := newSnapshot(3, member("c", 1, "ready"), member("a", 1, "down"), member("b", 1, "lost"), member("d", 1, "new"), member("e", 1, "ready doomed"))
	want := []string{"slipway:///a", "slipway:///c", "slipway:///e"}
	if diff := cmp.Diff(want, s.providerIDs()); diff != "" {
		t.Errorf("one that is being drained still has its Node; one that was removed has none (-want +got):\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	s := newSnapshot(2)
	seen := map[string]bool{}
	for i := range 50 {
		n := newName(s, i)
		if n != newName(s, i) {
			t.Error("the same snapshot gives the same names")
		}
		if seen[n] || len(n) > 63 || !strings.HasPrefix(n, "lmp-") {
			t.Errorf("name %q", n)
		}
		seen[n] = true
	}
	later := s
	later.Now = now.Add(time.Second)
	if newName(s, 0) == newName(later, 0) {
		t.Error("a name must not come back: a Node of that name may still be around")
	}
	s.Object.Name = strings.Repeat("x", 56) + ".y"
	if n := newName(s, 0); len(n) > 63 || strings.Contains(n, ".-") {
		t.Errorf("name %q (%d)", n, len(n))
	}
}

func TestFailureDomains(t *testing.T) { // MP-17, FD-01
	s := newSnapshot(4, member("a", 1, "ready"))
	s.Pool.Spec.FailureDomains = []string{"x", "y", "z"}
	s.Members[0].Local.Spec.FailureDomain = "x"
	var got []string
	for _, a := range decide(s).Actions {
		got = append(got, a.(createMachine).FailureDomain)
	}
	if diff := cmp.Diff([]string{"y", "z", "x"}, got); diff != "" {
		t.Errorf("always one with the fewest machines (-want +got):\n%s", diff)
	}
}

func TestNewMachine(t *testing.T) { // IP2-03
	s := newSnapshot(1)
	s.Object.Spec.Template = infrav1.LocalMachinePoolMachineTemplate{
		ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		Backend:    infrav1.LocalMachineBackend{Container: &infrav1.ContainerMachine{Image: "i"}},
	}
	s.Object.Labels[clusterv1.WatchLabel] = "w"
	m := newMachine(s, createMachine{Name: "n", FailureDomain: "x"})
	wantLabels := map[string]string{"a": "b", clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: contract.LabelValue("mp"), clusterv1.WatchLabel: "w"}
	if diff := cmp.Diff(wantLabels, m.Labels); diff != "" {
		t.Errorf("labels, with which the core finds it (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"c": "d", backend.PoolAnnotation: "lmp", hashAnnotation: s.hash()}, m.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if o := m.OwnerReferences; len(o) != 1 || o[0].UID != "lmp-uid" || o[0].Controller != nil {
		t.Errorf("the pool owns it, and leaves the controller's place to the Machine; got %+v", o)
	}
	if m.Spec.Backend.Container.Image != "i" || m.Spec.FailureDomain != "x" {
		t.Errorf("got %+v", m.Spec)
	}
	before := s.hash()
	s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = &s.Object.Name
	s.Object.Spec.Template.ObjectMeta.Labels["a"] = "z"
	if s.hash() != before {
		t.Error("bootstrap data and metadata are for new machines only")
	}
	s.Pool.Spec.Template.Spec.Version = "v1.36.4"
	if s.hash() == before {
		t.Error("another version makes machines outdated")
	}
}

func TestReport(t *testing.T) { // IP2-02, IP2-06, IP2-07, IP2-08
	yes := true
	type want struct {
		ready, message string
		provisioned    bool
		replicas       int32
		instances      int
	}
	cases := map[string]struct {
		reason string
		s      snapshot
		out    reconciler.Outcome
		want   want
	}{
		"new":         {"nothing yet", newSnapshot(2), reconciler.Outcome{}, want{"False/NotReady", "0 of 2 machines are ready", false, 0, 0}},
		"half":        {"what is not ready says why", newSnapshot(2, member("a", 1, "ready"), member("b", 1, "new")), reconciler.Outcome{}, want{"False/NotReady", "1 of 2 machines are ready\n* LocalMachine b: still booting", false, 2, 2}},
		"all":         {"as many as asked for", newSnapshot(2, member("a", 1, "ready"), member("b", 1, "ready")), reconciler.Outcome{}, want{"True/Ready", "", true, 2, 2}},
		"none wanted": {"nothing is enough", newSnapshot(0), reconciler.Outcome{}, want{"True/Ready", "", true, 0, 0}},
		"lost":        {"one that was removed does not count", newSnapshot(2, member("a", 1, "ready"), member("b", 1, "lost")), reconciler.Outcome{}, want{"False/NotReady", "1 of 2 machines are ready\n* LocalMachine b: removed by hand", false, 1, 1}},
		"down":        {"nobody knows", newSnapshot(1, member("a", 1, "down")), reconciler.Outcome{}, want{"Unknown/ReadyUnknown", "0 of 1 machines are ready\n* LocalMachine a: Docker does not respond", true, 1, 1}},
		"sticky": {"provisioned once, provisioned for ever", func() snapshot {
			s := newSnapshot(2, member("a", 1, "ready"))
			s.Object.Status.Initialization.Provisioned, s.Object.Status.Ready = &yes, &yes
			return s
		}(), reconciler.Outcome{}, want{"False/NotReady", "1 of 2 machines are ready", true, 1, 1}},
		"failed": {"a fault is for the user", newSnapshot(1), reconciler.Outcome{Err: fault.New(fault.Invalid, "Bad", "change it")}, want{"False/Bad", "change it", false, 0, 0}},
		"API":    {"what the API server says is not", newSnapshot(1), reconciler.Outcome{Err: fmt.Errorf("conflict")}, want{"False/NotReady", "0 of 1 machines are ready", false, 0, 0}},
		"deleting": {"over the whole life", func() snapshot {
			s := newSnapshot(1, member("a", 1, "ready"))
			s.Object.DeletionTimestamp = &metav1.Time{Time: now}
			return s
		}(), reconciler.Outcome{}, want{"False/Deleting", "Waiting for LocalMachines a to be deleted", true, 1, 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := report(tc.s, decide(tc.s), tc.out).Status.(infrav1.LocalMachinePoolStatus)
			c := condition.Set(status.Conditions).Get(clusterv1.ReadyCondition)
			got := want{ready: string(c.Status) + "/" + c.Reason, message: c.Message, replicas: *status.Replicas, instances: len(status.Instances),
				provisioned: status.Initialization.Provisioned != nil && status.Ready != nil && *status.Ready}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if status.InfrastructureMachineKind != "LocalMachine" {
				t.Errorf("IP2-03: got %q", status.InfrastructureMachineKind)
			}
		})
	}
	s := newSnapshot(1, member("a", 1, "ready"))
	s.Members[0].Local.Status.Addresses = clusterv1.MachineAddresses{{Type: "InternalIP", Address: "172.16.0.2"}}
	got := report(s, reconciler.Plan{}, reconciler.Outcome{}).Status.(infrav1.LocalMachinePoolStatus).Instances
	want2 := []infrav1.LocalMachinePoolInstance{{Name: "a", InstanceID: "id-a", ProviderID: "slipway:///a", Version: "v1.36.3", Ready: &yes,
		Addresses: clusterv1.MachineAddresses{{Type: "InternalIP", Address: "172.16.0.2"}}}}
	if diff := cmp.Diff(want2, got); diff != "" {
		t.Errorf("IP2-02 (-want +got):\n%s", diff)
	}
}

// A plan is bounded whatever number of replicas someone writes, and what is more than the operator allows is refused: H3.
func TestReplicasAreBounded(t *testing.T) {
	cases := map[string]struct {
		reason   string
		replicas int32
		policy   policy.Configuration
		actions  int
		wait     string
	}{
		"many":         {"the rest follows when these are there", 500, policy.Default(), maxCreationsPerPlan, ""},
		"no maximum":   {"the operator sets none; memory is bounded all the same", 2000000000, policy.Configuration{}, maxCreationsPerPlan, ""},
		"beyond":       {"the operator's maximum", 2000000000, policy.Default(), 0, "maxima.replicas"},
		"one too many": {"the operator's maximum", 1001, policy.Default(), 0, "maxima.replicas"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshot{Object: localPool(nil), Pool: corePool(tc.replicas, nil), Cluster: coreCluster(), Live: true, Now: now, Policy: tc.policy}
			p := decide(s)
			if len(p.Actions) != tc.actions || len(p.Waits) > 0 != (tc.wait != "") {
				t.Fatalf("%s: %d actions, waits %v", tc.reason, len(p.Actions), p.Waits)
			}
			if tc.wait == "" {
				return
			}
			ready := condition.Set(report(s, p, reconciler.Outcome{}).Status.(infrav1.LocalMachinePoolStatus).Conditions).Get(clusterv1.ReadyCondition)
			if !strings.Contains(ready.Message, tc.wait) {
				t.Errorf("%s: Ready is %+v", tc.reason, ready)
			}
		})
	}
	few := snapshot{Object: localPool(nil), Pool: corePool(2000, nil), Cluster: coreCluster(), Live: true, Now: now, Policy: policy.Default(),
		Members: []poolMember{member("a", 1, "ready"), member("b", 1, "ready")}}
	for _, a := range decide(few).Actions {
		switch a.(type) {
		case removeMachine, createMachine:
			t.Errorf("machines that are there stay, and no others come: %v", a)
		}
	}
}
