package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/testkit"
)

// fakeHost is a host in memory. Its log has the calls that change it.
type fakeHost struct {
	log       []string
	findings  []remote.Finding
	options   remote.PreflightOptions
	settings  remote.NodeSettings
	bootstrap remote.Bootstrap
	progress  remote.Progress
	// cut makes the next upload fail.
	cut bool
	// rejects is the error for bootstrap data, and rejected how often it was returned.
	rejects  error
	rejected int
}

func (h *fakeHost) Connect(context.Context, remote.Target) (Host, error) { return h, nil }
func (h *fakeHost) Preflight(_ context.Context, o remote.PreflightOptions) ([]remote.Finding, error) {
	h.options = o
	return h.findings, nil
}
func (h *fakeHost) InstallBundle(_ context.Context, b bundle.Bundle, _ func(int64, int64)) error {
	if h.cut {
		h.cut = false
		return fault.New(fault.Unreachable, remote.ReasonUnreachable, "host h does not respond")
	}
	h.log = append(h.log, "install "+b.KubernetesVersion)
	return nil
}
func (h *fakeHost) PrepareNode(_ context.Context, _ bundle.Bundle, s remote.NodeSettings) error {
	h.log, h.settings = append(h.log, "prepare"), s
	return nil
}
func (h *fakeHost) StartBootstrap(_ context.Context, b remote.Bootstrap) error {
	if h.rejects != nil {
		h.rejected++
		return h.rejects
	}
	if h.progress.State == remote.BootstrapNone {
		h.log = append(h.log, "bootstrap "+string(b.Data))
		h.bootstrap, h.progress.State = b, remote.BootstrapRunning
	}
	return nil
}
func (h *fakeHost) BootstrapProgress(_ context.Context, id string) (remote.Progress, error) {
	if h.bootstrap.ClaimID != "" && h.bootstrap.ClaimID != id {
		return remote.Progress{}, fault.New(fault.Conflict, remote.ReasonClaimedByAnother, "another")
	}
	return h.progress, nil
}

// credentials is the Secret of the hosts.
var credentials = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "key"}, Data: map[string][]byte{"ssh-privatekey": []byte("k")}}

// bundles has one bundle.
type bundles struct{}

func (bundles) Find(version, architecture string) (bundle.Bundle, error) {
	if version != "v1.36.3" || architecture != "amd64" {
		return bundle.Bundle{}, fault.New(fault.Invalid, "BundleMissing", "there is no bundle for Kubernetes %s on %s", version, architecture)
	}
	return theBundle(), nil
}

// world is the controller with a host and an API server in memory.
type world struct {
	*controller
	t    *testing.T
	host *fakeHost
	r    *reconciler.Reconciler[*infrav1.SSHMachine, snapshot]
	at   time.Time
}

func build(t *testing.T, objs ...client.Object) *fake.ClientBuilder {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	objs = append(objs,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "uid-a"}}, coreCluster(true), coreMachine(nil),
		credentials.DeepCopy(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "boot"}, Data: map[string][]byte{
			"value": []byte("#cloud-config\nwrite_files:\n- path: /etc/token\n  permissions: '0600'\n  content: s3cr3t-Th1sIsOpaque99\n"), "format": []byte("cloud-config")}},
	)
	b := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithStatusSubresource(&infrav1.SSHHost{}, &infrav1.SSHMachine{}).WithReturnManagedFields().
		WithIndex(&infrav1.SSHHost{}, claimIndex, claimIDs)
	return testkit.WithIndexes(b, func(i client.FieldIndexer) error { return watches.IndexByCluster(i, Name, &infrav1.SSHMachine{}) })
}

func newWorld(t *testing.T, cl client.WithWatch) *world {
	w := &world{t: t, host: &fakeHost{progress: remote.Progress{State: remote.BootstrapNone}}, at: now}
	clock := func() time.Time { return w.at }
	w.controller = &controller{client: cl, secrets: cl, writer: kube.NewWriter(cl, Name), rejected: newRejections(), now: clock,
		Config: Config{Connector: w.host, Bundles: bundles{}, Policy: policy.Default(), Jobs: jobs.NewRunner(t.Context(), clock, jobs.Limits{Total: 9, Namespace: 9})}}
	w.r = &reconciler.Reconciler[*infrav1.SSHMachine, snapshot]{Controller: w.definition(), Client: cl, Writer: w.writer, Now: clock}
	return w
}

// reconcile reconciles several times, and waits for the jobs that this starts.
func (w *world) reconcile() {
	w.t.Helper()
	for range 10 {
		if err := w.attempt(); err != nil && !errors.Is(err, testkit.ErrInjected) {
			w.t.Fatal(err)
		}
	}
}

// attempt reconciles once, and waits for the job that this starts.
func (w *world) attempt() error {
	ended := make(chan string, 9)
	defer w.Jobs.Subscribe(func(key string) { ended <- key })()
	_, err := w.r.Reconcile(w.t.Context(), request())
	if w.Jobs.State(jobs.Key(kind, request().NamespacedName)).Running {
		<-ended
	}
	return err
}

func request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "team-a", Name: "m"}}
}

func (w *world) get() *infrav1.SSHMachine {
	w.t.Helper()
	o := &infrav1.SSHMachine{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "team-a", Name: "m"}, o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

// changeHost changes the status of a host as its controller does.
func (w *world) changeHost(name string, change func(*infrav1.SSHHost)) *infrav1.SSHHost {
	w.t.Helper()
	for {
		h := &infrav1.SSHHost{}
		if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "hosts", Name: name}, h); err != nil {
			w.t.Fatal(err)
		}
		err := kube.NewWriter(w.client, "ssh-host").PatchStatus(w.t.Context(), h, func(o client.Object) { change(o.(*infrav1.SSHHost)) })
		if err == nil {
			return h
		}
		if !errors.Is(err, testkit.ErrInjected) {
			w.t.Fatal(err)
		}
	}
}

func confirm(h *infrav1.SSHHost) {
	h.Status.ConfirmedClaimID, h.Status.State = h.Status.Claim.ClaimID, infrav1.SSHHostPreparing
}

// The whole life of a machine, with every write failing once.
func TestLife(t *testing.T) {
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		return build(t, sshMachine(func(o *infrav1.SSHMachine) { o.Finalizers = nil }), sshHost("h", nil))
	}, func(t *testing.T, cl client.WithWatch) {
		w := newWorld(t, cl)
		w.host.cut = true
		w.reconcile()
		got := w.get()
		if len(got.Spec.ClaimID) != 26 || got.Spec.ProviderID != "ssh://"+got.Spec.ClaimID || len(got.Finalizers) != 1 || len(w.host.log) > 0 {
			t.Fatalf("%+v, log %v", got.Spec, w.host.log)
		}
		h := w.changeHost("h", confirm)
		if h.Status.Claim == nil || h.Status.Claim.ClaimID != got.Spec.ClaimID || h.Status.Claim.Namespace != "team-a" || h.Status.Claim.NamespaceUID != "uid-a" || h.Status.Claim.Name != "m" {
			t.Fatalf("claim %+v", h.Status.Claim)
		}
		w.reconcile()
		if c := condition.Set(w.get().Status.Conditions).Get(infrav1.HostPreparedCondition); len(w.host.log) > 0 || c.Status != "False" {
			t.Fatalf("the upload was cut: %v, %+v", w.host.log, c)
		}
		w.at = w.at.Add(time.Minute)
		w.reconcile()
		if want := "[install v1.36.3 prepare"; !strings.HasPrefix(fmt.Sprint(w.host.log), want) || w.host.progress.State != remote.BootstrapRunning || len(w.host.log) != 3 {
			t.Fatalf("log %v", w.host.log)
		}
		b := w.host.bootstrap
		if b.ClaimID != got.Spec.ClaimID || b.ProviderID != got.Spec.ProviderID || b.Hostname != "h" || b.Address != "192.0.2.1" || b.Timeout != defaultTimeout || b.Format != "cloud-config" {
			t.Errorf("bootstrap %+v", b)
		}
		w.host.progress.State = remote.BootstrapDone
		w.reconcile()
		got = w.get()
		if !ptr.Deref(got.Status.Initialization.Provisioned, false) || !condition.Set(got.Status.Conditions).IsTrue("Ready") {
			t.Fatalf("provisioned: %+v", got.Status)
		}
		if err := cl.Delete(t.Context(), got); err != nil && !errors.Is(err, testkit.ErrInjected) {
			t.Fatal(err)
		}
		if w.get().DeletionTimestamp == nil {
			_ = cl.Delete(t.Context(), got)
		}
		w.reconcile()
		h = w.changeHost("h", func(h *infrav1.SSHHost) { h.Status.State = infrav1.SSHHostCleaning })
		if !ptr.Deref(h.Status.Claim.Released, false) || w.get().DeletionTimestamp == nil {
			t.Fatalf("not released: %+v", h.Status.Claim)
		}
		w.changeHost("h", func(h *infrav1.SSHHost) {
			h.Status.Claim, h.Status.ConfirmedClaimID, h.Status.State = nil, "", infrav1.SSHHostAvailable
		})
		w.reconcile()
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(got), got); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the SSHMachine still exists: %v", err)
		}
	})
}

// A host that dies between its claim and its record is released, and the machine uses another one. Its claim stays until the host
// was seen again, because the record may have been written.
func TestHostDiesBeforeRecord(t *testing.T) {
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		return build(t, sshMachine(nil), sshHost("h", nil), sshHost("i", nil))
	}, func(t *testing.T, cl client.WithWatch) {
		w := newWorld(t, cl)
		w.reconcile()
		w.changeHost("h", func(h *infrav1.SSHHost) {
			h.Status.State, h.Status.StateSince = infrav1.SSHHostUnreachable, ptr.To(metav1.NewTime(w.at))
		})
		w.reconcile()
		if i := w.changeHost("i", func(*infrav1.SSHHost) {}); i.Status.Claim != nil {
			t.Fatalf("the host may reboot: %+v", i.Status.Claim)
		}
		w.at = w.at.Add(unrecordedTimeout)
		w.reconcile()
		h := w.changeHost("h", func(*infrav1.SSHHost) {})
		if !inventory.IsReleased(h.Status.Claim) || h.Status.Claim.ClaimID != w.get().Spec.ClaimID {
			t.Fatalf("not released: %+v", h.Status.Claim)
		}
		i := w.changeHost("i", confirm)
		if i.Status.Claim == nil || inventory.IsReleased(i.Status.Claim) || i.Status.Claim.ClaimID != w.get().Spec.ClaimID {
			t.Fatalf("the other host: %+v", i.Status.Claim)
		}
		w.host.progress.State = remote.BootstrapDone
		w.reconcile()
		if got := w.get(); got.Status.HostRef == nil || got.Status.HostRef.Name != "i" || !ptr.Deref(got.Status.Initialization.Provisioned, false) {
			t.Errorf("%+v", got.Status)
		}
		if h := w.changeHost("h", func(*infrav1.SSHHost) {}); !inventory.IsReleased(h.Status.Claim) {
			t.Errorf("the claim of the dead host: %+v", h.Status.Claim)
		}
	})
}

// All problems of a host are reported together, before anything on it is changed.
func TestPreflight(t *testing.T) {
	w := newWorld(t, build(t, sshMachine(nil), sshHost("h", nil)).Build())
	w.host.findings = []remote.Finding{{Problem: "swap is enabled", Remedy: "turn it off", Fatal: true}, {Problem: "port 10250 is used", Remedy: "free it", Fatal: true}, {Problem: "old", Remedy: "none"}}
	w.reconcile()
	w.changeHost("h", confirm)
	w.reconcile()
	c := condition.Set(w.get().Status.Conditions).Get(infrav1.HostPreparedCondition)
	if len(w.host.log) > 0 || c.Reason != reasonPreflight || !strings.Contains(c.Message, "* Swap is enabled; turn it off\n* Port 10250 is used; free it") || strings.Contains(c.Message, "Old") {
		t.Errorf("log %v, condition %+v", w.host.log, c)
	}
	if !w.host.options.ManagedBundle || w.host.options.Architecture != "amd64" {
		t.Errorf("options %+v", w.host.options)
	}
	w.host.findings, w.at = nil, w.at.Add(waitRecheck)
	w.reconcile()
	if len(w.host.log) != 3 {
		t.Errorf("log %v", w.host.log)
	}
}

// A host whose checks for this machine fail is released: at once if another one is available, and otherwise after ten minutes. It is
// not claimed again for ten minutes.
func TestUnsuitableHost(t *testing.T) {
	small := []remote.Finding{{Problem: "the host has about 1 GiB of memory", Remedy: "add memory", Fatal: true}}
	w := newWorld(t, build(t, sshMachine(nil), sshHost("h", nil)).Build())
	w.host.findings = small
	host := func(name string) *infrav1.SSHHost { return w.changeHost(name, func(*infrav1.SSHHost) {}) }
	clean := func(name string) { // as the controller of SSHHosts does
		w.changeHost(name, func(h *infrav1.SSHHost) {
			h.Status.Claim, h.Status.ConfirmedClaimID, h.Status.State = nil, "", infrav1.SSHHostAvailable
		})
	}
	w.reconcile()
	w.changeHost("h", confirm)
	w.reconcile()
	if h := host("h"); inventory.IsReleased(h.Status.Claim) || h.Status.Claim == nil {
		t.Fatalf("no other host is available, and the operator can correct it: %+v", h.Status.Claim)
	}

	w.at = w.at.Add(unsuitableAfter)
	w.reconcile()
	got := w.get()
	if h := host("h"); !inventory.IsReleased(h.Status.Claim) || !ptr.Deref(h.Status.Claim.Unused, false) || got.Status.HostRef != nil || len(got.Status.UnsuitableHosts) != 1 || got.DeletionTimestamp != nil {
		t.Fatalf("claim %+v, status %+v", h.Status.Claim, got.Status)
	}
	clean("h")
	w.reconcile()
	conditions := condition.Set(w.get().Status.Conditions)
	if h := host("h"); h.Status.Claim != nil || !strings.Contains(conditions.Get(infrav1.HostClaimedCondition).Message, "1 that failed the preflight checks of this machine (SSHHost hosts/h)") ||
		!strings.Contains(conditions.Get(infrav1.HostPreparedCondition).Message, "SSHHost hosts/h was released: The host cannot become this node:\n* The host has about 1 GiB of memory; add memory") {
		t.Fatalf("claim %+v, conditions %+v", h.Status.Claim, conditions)
	}

	// After ten minutes it is tried again. Another host that has become available is claimed while the first one is cleaned.
	w.at = w.at.Add(unsuitableFor)
	used := host("h")
	used.Annotations = map[string]string{infrav1.LastNamespaceAnnotation: "team-a"}
	if err := w.client.Update(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.changeHost("h", confirm)
	if err := w.client.Create(t.Context(), sshHost("i", nil)); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if h, i := host("h"), host("i"); !inventory.IsReleased(h.Status.Claim) || h.Status.Claim.Unused != nil || i.Status.Claim == nil || i.Status.Claim.Name != "m" {
		t.Fatalf("claims %+v, %+v", h.Status.Claim, i.Status.Claim)
	}
	w.host.findings = nil
	w.changeHost("i", confirm)
	w.reconcile()
	if got := w.get(); got.Status.HostRef.Name != "i" || w.host.progress.State != remote.BootstrapRunning {
		t.Errorf("status %+v, log %v", got.Status, w.host.log)
	}
	w.host.progress.State = remote.BootstrapDone
	w.reconcile()
	if err := w.client.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if h, i := host("h"), host("i"); !inventory.IsReleased(i.Status.Claim) || h.Status.Claim == nil {
		t.Errorf("both are cleaned: %+v, %+v", h.Status.Claim, i.Status.Claim)
	}
	clean("i")
	w.reconcile()
	if w.get().DeletionTimestamp == nil || host("h").Status.Claim == nil {
		t.Error("the claim of a host that is not clean was dropped")
	}
	clean("h")
	w.reconcile()
	if err := w.client.Get(t.Context(), request().NamespacedName, &infrav1.SSHMachine{}); err == nil {
		t.Error("the SSHMachine still exists")
	}
}

// The settings of a machine, which its class can set, supplement those of its host.
func TestSettings(t *testing.T) {
	hostSettings := infrav1.SSHHostSettings{
		Proxy: infrav1.SSHHostProxy{HTTP: "http://host:1", No: []string{"a"}}, RegistryMirrors: []string{"https://host"}, AdditionalTrustedCAs: "HOST\n",
	}
	for name, tc := range map[string]struct {
		reason  string
		machine infrav1.SSHHostSettings
		want    remote.NodeSettings
	}{
		"none":        {"the host decides", infrav1.SSHHostSettings{}, remote.NodeSettings{HTTPProxy: "http://host:1", NoProxy: "a", RegistryMirrors: []string{"https://host"}, TrustedCAs: []byte("HOST\n")}},
		"proxy":       {"half of a proxy would be a mixture", infrav1.SSHHostSettings{Proxy: infrav1.SSHHostProxy{HTTPS: "http://m:1"}}, remote.NodeSettings{HTTPSProxy: "http://m:1", RegistryMirrors: []string{"https://host"}, TrustedCAs: []byte("HOST\n")}},
		"mirrors":     {"their order is that of the machine", infrav1.SSHHostSettings{RegistryMirrors: []string{"https://m"}}, remote.NodeSettings{HTTPProxy: "http://host:1", NoProxy: "a", RegistryMirrors: []string{"https://m"}, TrustedCAs: []byte("HOST\n")}},
		"authorities": {"the proxy of the host may need its own", infrav1.SSHHostSettings{AdditionalTrustedCAs: "MACHINE\n"}, remote.NodeSettings{HTTPProxy: "http://host:1", NoProxy: "a", RegistryMirrors: []string{"https://host"}, TrustedCAs: []byte("HOST\n\nMACHINE\n")}},
	} {
		w := newWorld(t, build(t, sshMachine(func(o *infrav1.SSHMachine) { o.Spec.Settings = tc.machine }), sshHost("h", func(h *infrav1.SSHHost) { h.Spec.Settings = hostSettings })).Build())
		w.reconcile()
		w.changeHost("h", confirm)
		w.reconcile()
		if diff := cmp.Diff(tc.want, w.host.settings); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// What more users can read than the Secret has no secrets.
func TestFailureIsMasked(t *testing.T) {
	w := newWorld(t, build(t, sshMachine(nil), sshHost("h", nil)).Build())
	w.reconcile()
	w.changeHost("h", confirm)
	w.host.progress = remote.Progress{State: remote.BootstrapFailed, ExitCode: 1, Log: []byte("joining with s3cr3t-Th1sIsOpaque99\x1b[2J\nno route")}
	w.reconcile()
	c := condition.Set(w.get().Status.Conditions).Get(infrav1.BootstrapExecSucceededCondition)
	if c.Reason != reasonFailed || strings.Contains(c.Message, "s3cr3t") || strings.Contains(c.Message, "\x1b") || !strings.Contains(c.Message, "no route") {
		t.Errorf("condition %+v", c)
	}
}

// A restored machine finds its host by the record, and a copy of its claim ID finds nothing.
func TestRestore(t *testing.T) {
	record := func(name string) func(*infrav1.SSHHost) {
		return func(h *infrav1.SSHHost) {
			h.Status.State = infrav1.SSHHostQuarantined
			h.Status.Record = &infrav1.SSHHostRecord{ClaimID: claimA, Namespace: "team-a", Name: name}
		}
	}
	for name, tc := range map[string]struct {
		record  string
		adopted bool
	}{"its own": {"m", true}, "a copied ID": {"victim", false}} {
		w := newWorld(t, build(t, sshMachine(identified), sshHost("h", record(tc.record))).Build())
		w.host.progress, w.host.bootstrap.ClaimID = remote.Progress{State: remote.BootstrapDone}, claimA
		w.reconcile()
		h := w.changeHost("h", func(h *infrav1.SSHHost) {
			if h.Status.Claim != nil {
				h.Status.ConfirmedClaimID, h.Status.State = claimA, infrav1.SSHHostInUse
			}
		})
		w.reconcile()
		if got := w.get(); (h.Status.Claim != nil) != tc.adopted || ptr.Deref(got.Status.Initialization.Provisioned, false) != tc.adopted || len(w.host.log) > 0 {
			t.Errorf("%s: claim %+v, status %+v, log %v", name, h.Status.Claim, got.Status, w.host.log)
		}
	}
}

// A host that another management cluster took is given up, and another one is claimed.
func TestAnotherHost(t *testing.T) {
	w := newWorld(t, build(t, sshMachine(nil), sshHost("h", nil), sshHost("i", nil)).Build())
	w.reconcile()
	first := "h"
	if h := w.changeHost("h", func(*infrav1.SSHHost) {}); h.Status.Claim == nil {
		first = "i"
	}
	w.changeHost(first, func(h *infrav1.SSHHost) { h.Status.State = infrav1.SSHHostQuarantined })
	w.reconcile()
	second := map[string]string{"h": "i", "i": "h"}[first]
	if a, b := w.changeHost(first, func(*infrav1.SSHHost) {}), w.changeHost(second, func(*infrav1.SSHHost) {}); a.Status.Claim != nil || b.Status.Claim == nil {
		t.Errorf("first %+v, second %+v", a.Status.Claim, b.Status.Claim)
	}
}

// Twenty machines and twenty hosts: each machine gets one, and none gets two.
func TestManyMachines(t *testing.T) {
	var objs []client.Object
	for i := range 20 {
		objs = append(objs, sshHost(fmt.Sprintf("h%d", i), nil))
		objs = append(objs, sshMachine(func(o *infrav1.SSHMachine) { o.Name, o.UID = fmt.Sprintf("m%d", i), types.UID(fmt.Sprint(i)) }))
	}
	w := newWorld(t, build(t, objs...).Build())
	for range 30 {
		for i := range 20 {
			if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "team-a", Name: fmt.Sprintf("m%d", i)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, owners := &infrav1.SSHHostList{}, map[string]bool{}
	if err := w.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, h := range list.Items {
		if h.Status.Claim == nil || owners[h.Status.Claim.Name] {
			t.Errorf("host %s has claim %+v", h.Name, h.Status.Claim)
			continue
		}
		owners[h.Status.Claim.Name] = true
	}
}

// Invalid bootstrap data is not read and rejected every second, but soon after it was corrected.
func TestInvalidBootstrapData(t *testing.T) {
	w := newWorld(t, build(t, sshMachine(identified), sshHost("h", confirmed)).Build())
	w.host.rejects = fault.New(fault.Invalid, "UnrecordableBootstrapData", "the bootstrap data writes too many files")
	w.reconcile()
	c := condition.Set(w.get().Status.Conditions).Get(infrav1.BootstrapExecSucceededCondition)
	if w.host.rejected != 1 || c.Reason != "UnrecordableBootstrapData" || !strings.Contains(c.Message, "Secret boot: the bootstrap data writes too many files; correct the bootstrap data") {
		t.Errorf("rejected %d times, %+v", w.host.rejected, c)
	}
	w.at = w.at.Add(waitRecheck)
	w.reconcile()
	if w.host.rejected != 2 {
		t.Errorf("rejected %d times", w.host.rejected)
	}
	// Other data is used at once.
	w.host.rejects = nil
	secret, m := &corev1.Secret{}, &clusterv1.Machine{}
	for o, key := range map[client.Object]string{secret: "boot", m: "core"} {
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: key}, o); err != nil {
			t.Fatal(err)
		}
	}
	m.Spec.Bootstrap.DataSecretName = ptr.To("corrected")
	corrected := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "corrected"}, Data: secret.Data}
	for _, err := range []error{w.client.Create(t.Context(), corrected), w.client.Update(t.Context(), m)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.reconcile()
	if w.host.progress.State != remote.BootstrapRunning {
		t.Errorf("log %v, %+v", w.host.log, w.get().Status.Conditions)
	}
}

// Settings that are corrected before the bootstrap data starts are applied.
func TestCorrectedSettings(t *testing.T) {
	w := newWorld(t, build(t, sshMachine(identified), sshHost("h", func(h *infrav1.SSHHost) { confirmed(h); h.Spec.Settings.Proxy.HTTP = "http://a:1" })).Build())
	m := &clusterv1.Machine{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "core"}, m); err != nil {
		t.Fatal(err)
	}
	m.Spec.Bootstrap.DataSecretName = nil // the host waits for the bootstrap data
	if err := w.client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if fmt.Sprint(w.host.log) != "[install v1.36.3 prepare]" || w.host.settings.HTTPProxy != "http://a:1" {
		t.Fatalf("log %v, settings %+v", w.host.log, w.host.settings)
	}
	h := &infrav1.SSHHost{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "hosts", Name: "h"}, h); err != nil {
		t.Fatal(err)
	}
	h.Spec.Settings.Proxy.HTTP = "http://b:1"
	if err := w.client.Update(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if len(w.host.log) != 4 || w.host.settings.HTTPProxy != "http://b:1" || !condition.Set(w.get().Status.Conditions).IsTrue(infrav1.HostPreparedCondition) {
		t.Errorf("log %v, settings %+v", w.host.log, w.host.settings)
	}
}
