package move_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
	slipwayhosted "github.com/slipwayhq/slipway/internal/hosted"
)

const (
	quiesce = "controlplane.slipway.dev/quiesce"
	restore = "controlplane.slipway.dev/restore"
	take    = "controlplane.slipway.dev/take-snapshot"
	local   = "infrastructure.slipway.dev/v1alpha1"
	hosted  = "controlplane.slipway.dev/v1alpha1"
)

// remote is the host of one management cluster, with what its controllers do about control planes, machines and snapshots.
type remote struct {
	name   string
	client client.Client
	// value is what etcd of the control plane has; nothing: there is none on this host.
	value int
	// mode is how it runs: "" all of it, where that may be.
	mode string
	// store is what both hosts reach, by snapshot.
	store map[string]int
	// containers of machines, by name.
	containers map[string]bool
	// refuses is why a control plane could not start here.
	refuses string
}

// oneHostEach are two hosts without anything in common but a store. A client writes to the API of the control plane all the time.
type oneHostEach struct {
	t        *testing.T
	from, to *remote
	// acknowledged is what was written last; each write increments it.
	acknowledged int
	now          time.Time
}

func newHosts(t *testing.T, source, target client.Client) *oneHostEach {
	store := map[string]int{}
	h := &oneHostEach{t: t, acknowledged: 1, now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	h.from = &remote{name: "source", client: source, value: 1, store: store, containers: map[string]bool{"a-n": true}}
	h.to = &remote{name: "target", client: target, store: store, containers: map[string]bool{}}
	return h
}

// options of a move whose waiting lets the controllers work.
func (h *oneHostEach) options() move.Options {
	return move.Options{
		Scope: graph.Scope{Namespace: "ns"}, WithData: true, Timeout: 30 * time.Second, Now: func() time.Time { return h.now },
		Sleep: func(ctx context.Context, d time.Duration) error {
			h.now = h.now.Add(d)
			h.work()
			return ctx.Err()
		},
	}
}

func (h *oneHostEach) work() {
	for _, r := range []*remote{h.from, h.to} {
		r.work(h.t)
	}
	h.write()
}

// write is the client: it reaches the control plane where that runs as usual.
func (h *oneHostEach) write() {
	h.t.Helper()
	running := 0
	for _, r := range []*remote{h.from, h.to} {
		if r.value == 0 || r.mode != "" {
			continue
		}
		if running++; r.value != h.acknowledged {
			h.t.Fatalf("the control plane of the %s runs with %d, and %d was acknowledged", r.name, r.value, h.acknowledged)
		}
		r.value++
		h.acknowledged = r.value
	}
	if running > 1 {
		h.t.Fatal("the control plane runs on both hosts")
	}
}

func (r *remote) list(t *testing.T, apiVersion, kind string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	if err := r.client.List(t.Context(), list, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (r *remote) update(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if err := r.client.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func annotate(o *unstructured.Unstructured, key string) {
	all := o.GetAnnotations()
	delete(all, key)
	o.SetAnnotations(all)
}

// work is one round of the controllers of a host.
func (r *remote) work(t *testing.T) {
	t.Helper()
	paused := false
	for _, c := range r.list(t, core, "Cluster") {
		paused, _, _ = unstructured.NestedBool(c.Object, "spec", "paused")
		if !paused && r.value != 0 && r.mode == "" {
			_ = unstructured.SetNestedField(c.Object, true, "status", "initialization", "controlPlaneInitialized")
			r.update(t, &c)
		}
	}
	for _, o := range r.list(t, hosted, "HostedControlPlane") {
		r.workPlane(t, &o, paused)
	}
	for _, o := range r.list(t, hosted, "EtcdSnapshotPolicy") {
		r.workPolicy(t, &o)
	}
	for _, kind := range []string{"LocalMachine", "LocalCluster"} {
		for _, o := range r.list(t, local, kind) {
			if o.GetDeletionTimestamp() != nil && !paused {
				delete(r.containers, o.GetName())
				o.SetFinalizers(nil)
				r.update(t, &o)
			}
		}
	}
}

func (r *remote) workPlane(t *testing.T, o *unstructured.Unstructured, paused bool) {
	t.Helper()
	request, notes := o.GetAnnotations()[quiesce], o.GetAnnotations()
	if paused && request == "" {
		return
	}
	if o.GetDeletionTimestamp() != nil {
		r.value, r.mode = 0, ""
		o.SetFinalizers(nil)
		r.update(t, o)
		return
	}
	mode, id, _ := strings.Cut(request, "/")
	done := ""
	switch {
	case r.refuses != "":
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "Available", "status": "False", "message": r.refuses}}, "status", "conditions")
	case mode == "Loopback" && notes[restore] == "":
		if r.value != 0 {
			t.Errorf("the %s has data already", r.name)
		}
		done = "AwaitingData/" + id
	case mode == "Loopback":
		_, name, _ := strings.Cut(notes[restore], `"snapshot":"`)
		name, _, _ = strings.Cut(name, `"`)
		if r.value == 0 {
			r.value = r.store[name]
		}
		r.mode, done = mode, request
	case request == "" && r.value == 0:
		t.Errorf("the control plane of the %s would start empty", r.name)
	case request == "":
		r.mode = ""
		annotate(o, restore)
	default:
		r.mode, done = mode, request
	}
	unstructured.RemoveNestedField(o.Object, "status", "quiesced")
	if done != "" {
		_ = unstructured.SetNestedField(o.Object, done, "status", "quiesced")
	}
	r.update(t, o)
}

// workPolicy takes the snapshot that is asked for, unless the store has it.
func (r *remote) workPolicy(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	name := o.GetAnnotations()[take]
	if name == "" {
		return
	}
	if _, has := r.store[name]; !has && r.value != 0 && r.mode != "Stopped" {
		r.store[name] = r.value
	}
	var names []any
	for name := range r.store {
		names = append(names, map[string]any{"name": name})
	}
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"name": "a", "snapshots": names}}, "status", "clusters")
	annotate(o, take)
	r.update(t, o)
}

// withHost is the Cluster "a" with a hosted control plane, a node in a container that a MachineSet owns, and a policy.
func withHost(change ...func(*unstructured.Unstructured)) []client.Object {
	backend := set(map[string]any{}, "spec", "backend", "container")
	folder := set("/srv/snapshots", "spec", "destination", "folder", "path")
	available := set([]any{map[string]any{"type": "StoreAvailable", "status": "True"}}, "status", "conditions")
	policy := append([]func(*unstructured.Unstructured){set("a", "spec", "clusterName"), folder, available}, change...)
	all := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
		object(core, "Cluster", "a", finalizer, set(map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true}, "status", "initialization")),
		object("v1", "Secret", "a-ca"),
		object(hosted, "HostedControlPlane", "a", finalizer, ownedBy(core, "Cluster", "a"), initialized, set("v1.36.3", "spec", "version")),
		object(hosted, "EtcdSnapshotPolicy", "p", policy...),
		object(local, "LocalCluster", "a", finalizer, ownedBy(core, "Cluster", "a"), backend),
		object(core, "MachineSet", "a", ownedBy(core, "Cluster", "a")),
		object(core, "Machine", "a-n", finalizer, ownedBy(core, "MachineSet", "a"), set("node", "status", "nodeRef", "name"),
			set(map[string]any{"apiGroup": "infrastructure.slipway.dev", "kind": "LocalMachine", "name": "a-n"}, "spec", "infrastructureRef")),
		object(local, "LocalMachine", "a-n", finalizer, ownedBy(core, "Machine", "a-n"), backend),
	}
	for _, o := range all {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "Cluster" {
			set(map[string]any{"kind": "HostedControlPlane", "name": "a"}, "spec", "controlPlaneRef")(u)
			set(map[string]any{"host": "172.31.0.1", "port": int64(6443)}, "spec", "controlPlaneEndpoint")(u)
		}
	}
	return all
}

// writesBefore is how many writes of a move with data are those of any other, in which other tests kill it: less than those until the
// target has all objects.
const writesBefore = 12

// MV-05, MV-09, MV-10, MV-13: killed at any write, the same command or a rollback ends with the control plane on one host, running, with
// everything that was acknowledged.
func TestWithDataKilledAtEveryWrite(t *testing.T) {
	for _, rollback := range []bool{false, true} {
		t.Run(fmt.Sprintf("rollback %v", rollback), func(t *testing.T) {
			for n := writesBefore; ; n++ {
				source, target := management(nil, withHost()...), management(nil)
				h := newHosts(t, source, target)
				p := &process{killAt: n}
				run := func() *move.Move { return move.New(p.through(source), p.through(target), h.options()) }
				_, err := run().Run(t.Context())
				if err != nil && !errors.Is(err, errKilled) {
					t.Fatalf("write %d: %v", n, err)
				}
				over := err == nil
				if over && n < writesBefore+30 {
					t.Fatalf("only %d writes", n)
				}
				*p = process{}
				owner, other := h.to, h.from
				if rollback && !over {
					if _, err = run().Rollback(t.Context()); err == nil {
						owner, other = h.from, h.to
					} else if f := fault.As(err); f == nil || f.Reason != "NothingToTakeBack" && f.Reason != "TooLate" && f.Reason != "MoveEnded" {
						t.Fatalf("write %d: %v", n, err)
					}
				}
				if owner == h.to && !over {
					if _, err := run().Run(t.Context()); err != nil && !strings.Contains(err.Error(), "there is nothing that could be moved") {
						t.Fatalf("write %d, again: %v", n, err)
					}
				}
				h.settles(fmt.Sprintf("write %d", n), owner, other)
				if over {
					return
				}
			}
		})
	}
}

// settles checks that the control plane runs on one host with all that was acknowledged, and the other has nothing of it.
func (h *oneHostEach) settles(when string, owner, other *remote) {
	h.t.Helper()
	h.work()
	before := h.acknowledged
	h.work()
	if owner.value != h.acknowledged || h.acknowledged == before || owner.mode != "" {
		h.t.Fatalf("%s: the %s runs in mode %q with %d, and %d was acknowledged", when, owner.name, owner.mode, owner.value, h.acknowledged)
	}
	if other.value != 0 || len(other.containers) != 0 || len(other.list(h.t, hosted, "HostedControlPlane")) > 0 {
		h.t.Fatalf("%s: the %s still has data %d, containers %v", when, other.name, other.value, other.containers)
	}
	for _, o := range owner.list(h.t, hosted, "HostedControlPlane") {
		if o.GetAnnotations()[quiesce] != "" || o.GetAnnotations()[restore] != "" {
			h.t.Fatalf("%s: requests are left: %v", when, o.GetAnnotations())
		}
	}
	for _, m := range owner.list(h.t, core, "Machine") {
		if replaced := m.GetName() == "a-n" && m.GetDeletionTimestamp() != nil; m.GetName() == "a-n" && replaced != (owner == h.to) {
			h.t.Fatalf("%s: Machine a-n of the %s is deleted: %t", when, owner.name, replaced)
		}
	}
}

// What keeps data from going along is said before anything is paused.
func TestWithDataRefusals(t *testing.T) {
	without := func(kind string, objects []client.Object) (out []client.Object) {
		for _, o := range objects {
			if o.GetObjectKind().GroupVersionKind().Kind != kind {
				out = append(out, o)
			}
		}
		return out
	}
	identified := move.Options{Data: move.DataOptions{IdentitySecret: "age"}}
	for name, tc := range map[string]struct {
		source, target []client.Object
		options        move.Options
		want           string
	}{
		"no policy":       {source: without("EtcdSnapshotPolicy", withHost()), want: "needs an EtcdSnapshotPolicy for Cluster a"},
		"another policy":  {source: withHost(), options: move.Options{Data: move.DataOptions{Policy: "x"}}, want: "needs EtcdSnapshotPolicy x"},
		"several":         {source: append(withHost(), object(hosted, "EtcdSnapshotPolicy", "q", set(map[string]any{}, "spec", "clusterSelector"))), want: "several EtcdSnapshotPolicies (p, q): name one with --policy"},
		"suspended":       {source: withHost(set(true, "spec", "suspend")), want: "which is suspended"},
		"data directory":  {source: withHost(set(map[string]any{}, "spec", "destination", "folder")), want: "whose folder is in the data directory of the source"},
		"store is away":   {source: withHost(set([]any{map[string]any{"type": "StoreAvailable", "status": "False"}}, "status", "conditions")), want: "whose store is not available"},
		"encrypted":       {source: withHost(set([]any{"age1"}, "spec", "encryption", "recipients")), want: "needs --identity-secret"},
		"no identity":     {source: withHost(set([]any{"age1"}, "spec", "encryption", "recipients")), options: identified, want: "needs Secret ns/age at the target"},
		"empty identity":  {source: withHost(set([]any{"age1"}, "spec", "encryption", "recipients")), target: []client.Object{object("v1", "Secret", "age")}, options: identified, want: "needs Secret ns/age at the target"},
		"endpoint taken":  {source: withHost(), target: []client.Object{object(core, "Cluster", "z", set(map[string]any{"host": "172.31.0.1", "port": int64(6443)}, "spec", "controlPlaneEndpoint"))}, want: "has the endpoint 172.31.0.1:6443, which Cluster ns/z of the target has already"},
		"not initialized": {source: append(without("HostedControlPlane", withHost()), object(hosted, "HostedControlPlane", "a", ownedBy(core, "Cluster", "a"))), want: "is not noted to be initialized yet"},
		"quiesced": {source: append(without("HostedControlPlane", withHost()), object(hosted, "HostedControlPlane", "a", ownedBy(core, "Cluster", "a"), func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{quiesce: "Etcd/x", "controlplane.slipway.dev/initialized": "true"})
		})), want: "is kept from its work by annotation"},
		"control plane on machines": {source: append(without("Machine", withHost()), object(core, "Machine", "a-n", ownedBy("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "a"), ownedBy2("a"), set("node", "status", "nodeRef", "name"),
			set(map[string]any{"apiGroup": "infrastructure.slipway.dev", "kind": "LocalMachine", "name": "a-n"}, "spec", "infrastructureRef"))), want: "is of a control plane on machines"},
		"nothing replaces it": {source: append(without("Machine", withHost()), object(core, "Machine", "a-n", ownedBy(core, "Cluster", "a"), set("node", "status", "nodeRef", "name"),
			set(map[string]any{"apiGroup": "infrastructure.slipway.dev", "kind": "LocalMachine", "name": "a-n"}, "spec", "infrastructureRef"))), want: "is of no MachineSet or MachinePool that would replace it"},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := management(nil, tc.source...), management(nil, tc.target...)
			p := &process{}
			o := newHosts(t, source, target).options()
			o.Data = tc.options.Data
			_, err := move.New(p.through(source), p.through(target), o).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if p.writes != 0 {
				t.Errorf("%d writes before the refusal", p.writes)
			}
		})
	}
}

// ownedBy2 adds the Cluster as an owner besides.
func ownedBy2(cluster string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		refs := o.GetOwnerReferences()
		ownedBy(core, "Cluster", cluster)(o)
		o.SetOwnerReferences(append(refs, o.GetOwnerReferences()...))
	}
}

// What the target cannot do, and a store that it does not share, are found out while the control plane still runs: everything is taken back.
func TestWithDataTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*oneHostEach)
		want   string
	}{
		"version":   {func(h *oneHostEach) { h.to.refuses = "Kubernetes v1.36.3 is not available on this host" }, "Kubernetes v1.36.3 is not available on this host"},
		"own store": {func(h *oneHostEach) { h.to.store = map[string]int{} }, "the target does not find snapshot a-20261125T"},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := management(nil, withHost()...), management(nil)
			before := contents(t, source)
			h := newHosts(t, source, target)
			tc.change(h)
			p := &process{}
			stopped := false
			o := h.options()
			work := o.Sleep
			o.Sleep = func(ctx context.Context, d time.Duration) error {
				err := work(ctx, d)
				stopped = stopped || h.from.mode != ""
				return err
			}
			_, err := move.New(p.through(source), p.through(target), o).Run(t.Context())
			if f := fault.As(err); f == nil || f.Reason != "DataNotMoved" || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if stopped {
				t.Error("the control plane was stopped")
			}
			if diff := cmp.Diff(before, contents(t, source)); diff != "" {
				t.Error("source:", diff)
			}
			if got := contents(t, target); len(got) > 0 {
				t.Error("target:", got)
			}
		})
	}
}

// The plan says what is lost, and what is not; the snapshot that is restored is one that the API of the control plane reads.
func TestWithDataPlan(t *testing.T) {
	source, target := management(nil, withHost()...), management(nil)
	h := newHosts(t, source, target)
	plan, err := move.New(source, target, h.options()).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	steps := strings.Join(plan.Steps(), "\n")
	for _, want := range []string{
		"both: see that both reach the store of EtcdSnapshotPolicy p (folder /srv/snapshots), with a snapshot",
		"source: quiesce HostedControlPlane ns/a: its etcd runs alone, and its API does not answer from here on",
		"source: delete LocalMachine ns/a-n, with what it has on the host", "source: delete HostedControlPlane ns/a, with what it has on the host",
		"target: replace Machine ns/a-n: its node is created again, and the Pods on it end",
		"note: the snapshots that EtcdSnapshotPolicy ns/p has stored stay in /srv/snapshots on the source's host",
		"note: the API of Cluster a keeps the endpoint 172.31.0.1:6443",
	} {
		if !strings.Contains(steps, want) {
			t.Errorf("the plan lacks %q:\n%s", want, steps)
		}
	}
	var asked *slipwayhosted.RestoreRequest
	o := h.options()
	work := o.Sleep
	o.Sleep = func(ctx context.Context, d time.Duration) error {
		for _, p := range h.to.list(t, hosted, "HostedControlPlane") {
			if text := p.GetAnnotations()[restore]; text != "" {
				asked = parsed(t, text)
			}
		}
		return work(ctx, d)
	}
	p := &process{}
	if _, err := move.New(p.through(source), p.through(target), o).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked == nil || asked.Policy != "p" || !asked.OtherCluster {
		t.Errorf("asked for %v", asked)
	}
}

func parsed(t *testing.T, text string) *slipwayhosted.RestoreRequest {
	t.Helper()
	r := &slipwayhosted.RestoreRequest{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatal(err)
	}
	return r
}
