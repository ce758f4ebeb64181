package hosts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/testkit"
)

// fakeHost is a host in memory.
type fakeHost struct {
	facts    remote.Facts
	findings []remote.Finding
	// withBundle are the findings of the checks for a bundle, if they are other ones.
	withBundle []remote.Finding
	record     *remote.Record
	leftovers  []remote.Leftover
	down       error
	// broken is the error of each script.
	broken error
	// targets are the connections, resets the claims that were cleaned.
	targets []remote.Target
	resets  []string
}

func (h *fakeHost) Connect(_ context.Context, t remote.Target) (Host, error) {
	h.targets = append(h.targets, t)
	return h, h.down
}
func (h *fakeHost) Facts(context.Context) (remote.Facts, error) { return h.facts, h.broken }
func (h *fakeHost) Preflight(_ context.Context, o remote.PreflightOptions) ([]remote.Finding, error) {
	if o.ManagedBundle && h.withBundle != nil {
		return h.withBundle, nil
	}
	return h.findings, nil
}
func (h *fakeHost) ReadRecord(context.Context) (*remote.Record, error) { return h.record, nil }
func (h *fakeHost) WriteRecord(_ context.Context, r remote.Record) error {
	if h.record != nil && h.record.ClaimID != r.ClaimID {
		return fault.New(fault.Conflict, remote.ReasonClaimedByAnother, "another")
	}
	h.record = &r
	return nil
}
func (h *fakeHost) DeleteRecord(_ context.Context, id string) error {
	if h.record != nil && h.record.ClaimID == id {
		h.record = nil
	}
	return nil
}
func (h *fakeHost) Reset(context.Context) ([]remote.Leftover, error) {
	id := "unrecorded"
	if h.record != nil {
		id = h.record.ClaimID
	}
	h.resets, h.facts.KubeletRunning = append(h.resets, id), false
	return h.leftovers, nil
}
func (h *fakeHost) RemoveBundles(context.Context) error {
	h.resets, h.facts.Bundles = append(h.resets, "bundles"), nil
	return nil
}

// world is the controller with a host and an API server in memory.
type world struct {
	*controller
	t    *testing.T
	host *fakeHost
	r    *reconciler.Reconciler[*infrav1.SSHHost, snapshot]
	at   time.Time
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{infrav1.AddToScheme, corev1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func build(t *testing.T, objs ...client.Object) *fake.ClientBuilder {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "key"}, Data: map[string][]byte{"ssh-privatekey": []byte("k")}}
	return fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(append(objs, secret)...).WithStatusSubresource(&infrav1.SSHHost{}, &infrav1.SSHMachine{}).
		WithReturnManagedFields().WithIndex(&infrav1.SSHHost{}, machineIndex, machineOf)
}

func newWorld(t *testing.T, cl client.WithWatch, host *fakeHost) *world {
	w := &world{t: t, host: host, at: now}
	clock := func() time.Time { return w.at }
	w.controller = &controller{client: cl, secrets: cl, writer: kube.NewWriter(cl, Name), checks: newChecks(), now: clock,
		Config: Config{Connector: host, Policy: policy.Default(), Jobs: jobs.NewRunner(t.Context(), clock, jobs.Limits{Total: 9, Namespace: 9}), Instance: "i"}}
	w.r = &reconciler.Reconciler[*infrav1.SSHHost, snapshot]{Controller: w.definition(), Client: cl, Writer: w.writer, Now: clock}
	return w
}

// reconcile reconciles several times, and waits for the jobs that this starts.
func (w *world) reconcile() {
	w.t.Helper()
	for range 8 {
		ended := make(chan string, 8)
		cancel := w.Jobs.Subscribe(func(key string) { ended <- key })
		_, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "hosts", Name: "h"}})
		if err != nil && !errors.Is(err, testkit.ErrInjected) {
			w.t.Fatal(err)
		}
		if w.Jobs.State(jobs.Key(kind, client.ObjectKey{Namespace: "hosts", Name: "h"})).Running {
			<-ended
		}
		cancel()
	}
}

func (w *world) get() *infrav1.SSHHost {
	w.t.Helper()
	o := &infrav1.SSHHost{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "hosts", Name: "h"}, o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

// setClaim writes the claim as the controller of SSHMachines does.
func (w *world) setClaim(claim *infrav1.SSHHostClaim) {
	w.t.Helper()
	if err := kube.NewWriter(w.client, "ssh-machine").PatchStatus(w.t.Context(), w.get(), func(o client.Object) { o.(*infrav1.SSHHost).Status.Claim = claim }); err != nil && !errors.Is(err, testkit.ErrInjected) {
		w.t.Fatal(err)
	}
}

func claim(released bool) *infrav1.SSHHostClaim {
	c := &infrav1.SSHHostClaim{Namespace: "team-a", NamespaceUID: "uid-a", Name: "m", ClaimID: claimA}
	if released {
		c.Released = ptr.To(true)
	}
	return c
}

// The whole life of a host, with every write failing once.
func TestLife(t *testing.T) {
	object := sshHost(func(o *infrav1.SSHHost) { o.Finalizers = nil })
	m := machine(false)
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return build(t, object.DeepCopy(), m.DeepCopy()) }, func(t *testing.T, cl client.WithWatch) {
		host := &fakeHost{facts: remote.Facts{Hostname: "h", CPUs: 2}}
		w := newWorld(t, cl, host)
		w.reconcile()
		if got := w.get(); got.Status.State != infrav1.SSHHostAvailable || got.Status.Facts.CPUs != 2 || len(got.Finalizers) != 1 {
			t.Fatalf("free: %+v", got.Status)
		}
		for w.get().Status.Claim == nil {
			w.setClaim(claim(false))
		}
		w.reconcile()
		got := w.get()
		if got.Status.State != infrav1.SSHHostPreparing || got.Status.ConfirmedClaimID != claimA || got.Status.Claim == nil || host.record == nil || host.record.Cluster != "c" ||
			got.Annotations[infrav1.LastNamespaceAnnotation] != "team-a" || got.Labels[infrastructure.MoveHierarchyLabel] != infrastructure.MoveInUse {
			t.Fatalf("claimed: %+v, record %+v", got, host.record)
		}
		for !ptr.Deref(w.get().Status.Claim.Released, false) {
			w.setClaim(claim(true))
		}
		w.reconcile()
		got = w.get()
		if got.Status.State != infrav1.SSHHostAvailable || got.Status.Claim != nil || got.Status.ConfirmedClaimID != "" || host.record != nil || len(host.resets) == 0 || host.resets[0] != claimA {
			t.Fatalf("released: %+v, record %+v, resets %v", got.Status, host.record, host.resets)
		}
		if _, marked := got.Labels[infrastructure.MoveHierarchyLabel]; marked || got.Status.LastNamespace != "team-a" || got.Status.LastNamespaceUID != "uid-a" {
			t.Errorf("it was used by %q (%q), labels %v", got.Status.LastNamespace, got.Status.LastNamespaceUID, got.Labels)
		}
	})
}

// A crash between the record and the status loses nothing, and the host of another management cluster is left alone.
func TestOtherRecords(t *testing.T) {
	host := &fakeHost{record: &remote.Record{ClaimID: claimA, Namespace: "team-a", Name: "m"}}
	w := newWorld(t, build(t, sshHost(claimed), machine(false)).Build(), host)
	w.reconcile()
	if got := w.get(); got.Status.ConfirmedClaimID != claimA || got.Status.State != infrav1.SSHHostPreparing {
		t.Errorf("its own record: %+v", got.Status)
	}
	host = &fakeHost{record: &remote.Record{ClaimID: claimB, Namespace: "x", Name: "y"}}
	w = newWorld(t, build(t, sshHost(claimed), machine(false)).Build(), host)
	w.reconcile()
	if got := w.get(); got.Status.ConfirmedClaimID != "" || got.Status.State != infrav1.SSHHostQuarantined || got.Status.Record.ClaimID != claimB || host.record.ClaimID != claimB {
		t.Errorf("another's record: %+v", got.Status)
	}
	// The record appears after the check: the write of the own record fails, and the next check finds it.
	host = &fakeHost{}
	w = newWorld(t, build(t, sshHost(claimed), machine(false)).Build(), host)
	w.checks.put(client.ObjectKey{Namespace: "hosts", Name: "h"}, *free())
	host.record = &remote.Record{ClaimID: claimB}
	w.reconcile()
	if got := w.get(); got.Status.State != infrav1.SSHHostQuarantined || host.record.ClaimID != claimB {
		t.Errorf("lost the race: %+v", got.Status)
	}
}

// After a move or a restore, the host waits for the SSHMachine in its record, and is not cleaned even if that is requested. A
// record that names an SSHMachine with another claim ID is not believed.
func TestAdoption(t *testing.T) {
	for name, tc := range map[string]struct {
		record string
		state  infrav1.SSHHostState
	}{
		"its own":   {claimA, infrav1.SSHHostPreparing},
		"a forgery": {claimB, infrav1.SSHHostQuarantined},
	} {
		host := &fakeHost{record: &remote.Record{ClaimID: tc.record, Namespace: "team-a", Name: "m"}}
		o := sshHost(func(o *infrav1.SSHHost) { o.Annotations = map[string]string{infrav1.LastNamespaceAnnotation: "team-a"} })
		w := newWorld(t, build(t, o, machine(true)).Build(), host)
		w.reconcile()
		if got := w.get(); got.Status.State != tc.state || len(host.resets) > 0 || got.Status.Record.ClaimID != tc.record {
			t.Errorf("%s: %+v", name, got.Status)
		}
		w.setClaim(claim(false))
		w.reconcile()
		if got := w.get(); tc.record == claimA && (got.Status.State != infrav1.SSHHostInUse || got.Status.ConfirmedClaimID != claimA || got.Labels[infrastructure.MoveHierarchyLabel] != infrastructure.MoveInUse) {
			t.Errorf("%s, claimed: %+v", name, got)
		}
	}
}

// The operator's request cleans exactly what it names, and is removed afterwards.
func TestRequestedCleaning(t *testing.T) {
	for name, tc := range map[string]struct {
		request string
		host    fakeHost
		resets  int
		state   infrav1.SSHHostState
	}{
		"the record":         {claimB, fakeHost{record: &remote.Record{ClaimID: claimB}}, 1, infrav1.SSHHostAvailable},
		"another":            {claimA, fakeHost{record: &remote.Record{ClaimID: claimB}}, 0, infrav1.SSHHostQuarantined},
		"unrecorded":         {infrav1.CleanUnrecorded, fakeHost{facts: remote.Facts{KubeletRunning: true}}, 1, infrav1.SSHHostAvailable},
		"there is a record":  {infrav1.CleanUnrecorded, fakeHost{record: &remote.Record{ClaimID: claimB}, facts: remote.Facts{KubeletRunning: true}}, 0, infrav1.SSHHostQuarantined},
		"there is no record": {claimB, fakeHost{facts: remote.Facts{KubeletRunning: true}}, 0, infrav1.SSHHostQuarantined},
	} {
		host := &tc.host
		o := sshHost(func(o *infrav1.SSHHost) { o.Annotations = map[string]string{infrav1.CleanHostAnnotation: tc.request} })
		w := newWorld(t, build(t, o).Build(), host)
		w.reconcile()
		got := w.get()
		if len(host.resets) != tc.resets || got.Status.State != tc.state || got.Annotations[infrav1.CleanHostAnnotation] != "" {
			t.Errorf("%s: resets %v, state %s, annotations %v", name, host.resets, got.Status.State, got.Annotations)
		}
	}
}

func TestUncleanAndUnreachable(t *testing.T) {
	host := &fakeHost{record: &remote.Record{ClaimID: claimA}, leftovers: []remote.Leftover{{Kind: "mount", Item: "/var/lib/kubelet"}}}
	w := newWorld(t, build(t, sshHost(released)).Build(), host)
	w.reconcile()
	if got := w.get(); got.Status.State != infrav1.SSHHostQuarantined || got.Status.Claim == nil || host.record == nil || len(host.resets) != 1 {
		t.Errorf("leftovers: %+v, resets %v", got.Status, host.resets)
	}
	host.leftovers, w.at = nil, w.at.Add(uncleanInterval)
	w.reconcile()
	if got := w.get(); got.Status.State != infrav1.SSHHostAvailable || got.Status.Claim != nil {
		t.Errorf("removed by hand: %+v", got.Status)
	}
	host.down, w.at = fault.New(fault.Unreachable, remote.ReasonUnreachable, "host h does not respond"), w.at.Add(checkInterval)
	w.reconcile()
	if got := w.get(); got.Status.State != infrav1.SSHHostUnreachable {
		t.Errorf("down: %+v", got.Status)
	}
	host.down, host.broken = nil, fault.New(fault.Transient, remote.ReasonScriptFailed, "script facts failed on host h: Input/output error")
	w.at = w.at.Add(longestInterval)
	w.reconcile()
	if c := condition.Set(w.get().Status.Conditions).Get(infrav1.ReachableCondition); w.get().Status.State != infrav1.SSHHostUnreachable || c.Reason != remote.ReasonScriptFailed || !strings.Contains(c.Message, "Input/output error") {
		t.Errorf("a defective disk: %+v", w.get().Status)
	}
	host.down, host.broken = fault.New(fault.Unreachable, remote.ReasonUnreachable, "host h does not respond"), nil
	for failures, want := range map[int]time.Duration{0: unreachableInterval, 1: unreachableInterval, 2: 2 * unreachableInterval, 9: longestInterval} {
		if got := (hostCheck{Fault: fault.New(fault.Unreachable, "X", "no"), Failures: failures}).interval(); got != want {
			t.Errorf("after %d failures the host is checked again after %v, want %v", failures, got, want)
		}
	}
	for range 2 {
		w.at = w.at.Add(longestInterval)
		w.reconcile()
	}
	if k := w.checks.get(client.ObjectKeyFromObject(w.get())); k == nil || k.Failures != 4 {
		t.Errorf("the last check is %+v", k)
	}
}

// A host with a container runtime of its own shows which machines can claim it, and what is to be done for the others.
func TestContainerRuntime(t *testing.T) {
	noKubelet := remote.Finding{Check: remote.CheckPrograms, Problem: "the host has no kubelet", Remedy: "install it", Fatal: true}
	noMemory := remote.Finding{Check: "Memory", Problem: "the host has less than 128 MiB", Remedy: "add memory", Fatal: true}
	socket := remote.Finding{Check: "ContainerRuntime", Problem: "a container runtime that Slipway did not install listens on /run/containerd/containerd.sock", Remedy: "remove it", Fatal: true}
	for name, tc := range map[string]struct {
		reason      string
		host        fakeHost
		state       infrav1.SSHHostState
		installable bool
		message     string // of condition Available
	}{
		"none":             {"nothing is in the way", fakeHost{}, infrav1.SSHHostAvailable, true, ""},
		"docker alone":     {"it can stay", fakeHost{facts: remote.Facts{ContainerRuntime: "docker"}, findings: []remote.Finding{noKubelet}, withBundle: []remote.Finding{}}, infrav1.SSHHostAvailable, true, ""},
		"all programs":     {"machines without a bundle use them", fakeHost{facts: remote.Facts{ContainerRuntime: "containerd"}, withBundle: []remote.Finding{socket}}, infrav1.SSHHostAvailable, false, ""},
		"Docker's":         {"nothing can use it", fakeHost{facts: remote.Facts{ContainerRuntime: "containerd,docker"}, findings: []remote.Finding{noKubelet}, withBundle: []remote.Finding{socket}}, infrav1.SSHHostQuarantined, false, "listens on /run/containerd"},
		"too small anyway": {"the runtime is not the problem", fakeHost{facts: remote.Facts{ContainerRuntime: "containerd"}, findings: []remote.Finding{noMemory}, withBundle: []remote.Finding{socket}}, infrav1.SSHHostQuarantined, false, "less than 128 MiB"},
	} {
		w := newWorld(t, build(t, sshHost(nil)).Build(), &tc.host)
		w.reconcile()
		got := condition.Set(w.get().Status.Conditions)
		if w.get().Status.State != tc.state || got.IsTrue(infrav1.BundleInstallableCondition) != tc.installable || !strings.Contains(got.Get(infrav1.AvailableCondition).Message, tc.message) {
			t.Errorf("%s: %+v (%s)", name, w.get().Status, tc.reason)
		}
	}
}

// A host that its first user could not use is offered to others as before: nothing of that user ran on it.
func TestUnusedHost(t *testing.T) {
	for unused, want := range map[bool]string{true: "", false: "team-a"} {
		host := &fakeHost{record: &remote.Record{ClaimID: claimA}}
		w := newWorld(t, build(t, sshHost(func(o *infrav1.SSHHost) { released(o); o.Status.Claim.Unused = &unused }), machine(false)).Build(), host)
		w.reconcile()
		if got := w.get(); got.Annotations[infrav1.LastNamespaceAnnotation] != want || got.Status.LastNamespace != want || got.Status.Claim != nil || len(host.resets) != 1 {
			t.Errorf("unused %t: annotations %v, status %+v, resets %v", unused, got.Annotations, got.Status, host.resets)
		}
	}
}

// The bundles are deleted after the record if the SSHMachine requests it, because the script leaves the bundles of a claimed host.
func TestCleaningDeletesBundles(t *testing.T) {
	for bundles, want := range map[infrav1.SSHBundleCache]int{"": 1, infrav1.SSHBundleCacheKeep: 1, infrav1.SSHBundleCacheDelete: 2} {
		host := &fakeHost{record: &remote.Record{ClaimID: claimA}, facts: remote.Facts{Bundles: []string{"d"}}}
		m := machine(true)
		m.Spec.Cleaning.Bundles = bundles
		w := newWorld(t, build(t, sshHost(released), m).Build(), host)
		w.reconcile()
		if got := w.get(); len(host.resets) != want || got.Status.State != infrav1.SSHHostAvailable || (len(got.Status.Bundles) == 0) != (want == 2) {
			t.Errorf("%q: %v, %+v", bundles, host.resets, got.Status)
		}
	}
}

// A host that was released by force cannot be claimed before it was seen and cleaned.
func TestReleasedByForce(t *testing.T) {
	host := &fakeHost{record: &remote.Record{ClaimID: claimA}, facts: remote.Facts{KubeletRunning: true}}
	host.down = fault.New(fault.Unreachable, remote.ReasonUnreachable, "host h does not respond")
	w := newWorld(t, build(t, sshHost(released)).Build(), host)
	w.reconcile()
	got := w.get()
	if c := condition.Set(got.Status.Conditions).Get(infrav1.AvailableCondition); got.Status.State != infrav1.SSHHostQuarantined || got.Status.Claim == nil || c.Reason != reasonForced {
		t.Fatalf("forced: %+v, %+v", got.Status, c)
	}
	host.down, w.at = nil, w.at.Add(longestInterval)
	w.reconcile()
	if got := w.get(); got.Status.State != infrav1.SSHHostAvailable || got.Status.Claim != nil || len(host.resets) != 1 || host.record != nil {
		t.Errorf("it responds again: %+v, resets %v", got.Status, host.resets)
	}
}

// The checks of a free host write its status only if something has changed noticeably.
func TestFewWrites(t *testing.T) {
	host := &fakeHost{facts: remote.Facts{Hostname: "h", CPUs: 2, MemoryMiB: 8000, DiskMiB: 50000}}
	writes := 0
	cl := build(t, sshHost(nil)).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			writes++
			return c.SubResource(sub).Apply(ctx, o, opts...)
		},
	}).Build()
	w := newWorld(t, cl, host)
	w.reconcile()
	if writes == 0 || w.get().Status.Facts.MemoryMiB != 8000 {
		t.Fatalf("%d writes, %+v", writes, w.get().Status)
	}
	writes = 0
	for i := range 60 {
		host.facts.ClockOffset = []time.Duration{28 * time.Second, 32 * time.Second}[i%2]
		host.facts.MemoryMiB, host.facts.DiskMiB = 8000+int64(i%3), 50000-int64(i%5)
		w.at = w.at.Add(checkInterval)
		w.reconcile()
	}
	if len(host.targets) < 60 || writes > 0 {
		t.Errorf("%d writes in an hour without changes, %d checks", writes, len(host.targets))
	}
	host.facts.ClockOffset, host.facts.MemoryMiB, w.at = 3*time.Minute, 16000, w.at.Add(checkInterval)
	w.reconcile()
	if got := w.get().Status.Facts; writes == 0 || got.MemoryMiB != 16000 || ptr.Deref(got.ClockOffsetSeconds, 0) != 180 {
		t.Errorf("%d writes after a change, %+v", writes, got)
	}
}

// Nothing connects to an address that the operator denies.
func TestDeniedAddress(t *testing.T) {
	host := &fakeHost{}
	w := newWorld(t, build(t, sshHost(nil)).Build(), host)
	w.Policy.Hosts.Namespaces = []string{"other"}
	w.reconcile()
	if len(host.targets) > 0 || w.get().Status.State != infrav1.SSHHostUnreachable {
		t.Errorf("connected to %v; %+v", host.targets, w.get().Status)
	}
}

// A namespace whose claim was never recorded on the host has not used it: the host is offered to others as before.
func TestUnrecordedClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		claim     func(*infrav1.SSHHostClaim)
		confirmed bool
		want, uid string // the namespace that used the host last
	}{
		"first":     {"nobody has used it", func(c *infrav1.SSHHostClaim) { c.FirstUse = ptr.To(true) }, false, "", ""},
		"another":   {"the users of the other namespace had the rights of root", func(c *infrav1.SSHHostClaim) { c.PreviousNamespace, c.PreviousNamespaceUID = "team-b", "uid-b" }, false, "team-b", "uid-b"},
		"the same":  {"it has used it before", func(c *infrav1.SSHHostClaim) { c.PreviousNamespace, c.PreviousNamespaceUID = "team-a", "uid-of-before" }, false, "team-a", "uid-of-before"},
		"unknown":   {"the claim of an earlier version", func(*infrav1.SSHHostClaim) {}, false, "team-a", "uid-a"},
		"confirmed": {"its users had the rights of root", func(c *infrav1.SSHHostClaim) { c.FirstUse = ptr.To(true) }, true, "team-a", "uid-a"},
	} {
		o := sshHost(func(o *infrav1.SSHHost) {
			o.Annotations = map[string]string{infrav1.LastNamespaceAnnotation: "team-a", "other": "x"}
			o.Labels = map[string]string{infrastructure.MoveHierarchyLabel: infrastructure.MoveInUse}
			o.Status.Claim, o.Status.LastNamespace, o.Status.LastNamespaceUID = claim(true), "team-a", "uid-a"
			tc.claim(o.Status.Claim)
			if tc.confirmed {
				o.Status.ConfirmedClaimID = claimA
			}
		})
		w := newWorld(t, build(t, o).Build(), &fakeHost{})
		w.reconcile()
		got := w.get()
		if got.Status.State != infrav1.SSHHostAvailable || got.Status.Claim != nil || inventory.LastNamespace(got) != tc.want || got.Annotations["other"] != "x" ||
			got.Status.LastNamespace != tc.want || got.Status.LastNamespaceUID != tc.uid {
			t.Errorf("%s: annotations %v, status %+v (%s)", name, got.Annotations, got.Status, tc.reason)
		}
	}
}
