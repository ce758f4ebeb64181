package move_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

// The host of two management clusters in memory: data directories that are real, and an engine that has one container.
type oneHost struct {
	from, to       move.HostDataDir
	thing, network hosttransfer.Item
}

func newHost(t *testing.T) *oneHost {
	t.Helper()
	h := &oneHost{thing: hosttransfer.Item{Kind: hosttransfer.Container, ID: "1", Name: "n", Creator: "a", Object: "ns/a-1"}, network: hosttransfer.Item{Kind: hosttransfer.Network, ID: "2", Name: "n", Creator: "a", Object: "ns/a"}}
	for name, place := range map[string]*move.HostDataDir{"a": &h.from, "b": &h.to} {
		dir := datadir.Dir(t.TempDir())
		*place = move.HostDataDir{Dir: dir, Store: hosttransfer.Open(dir, name), Versions: []string{"v1.36.3"}}
	}
	for path, content := range map[string]string{
		h.from.Dir.Planes() + "/ns.a/etcd/member/snap/db": "precious", h.from.Dir.Balancers() + "/ns.a/members.json": "{}",
		h.from.Dir.Images() + "/ns/a/0123.tar": "image",
	} {
		if _, err := datadir.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// ListOwned implements move.Docker for the source.
func (h *oneHost) ListOwned(_ context.Context, cluster string) ([]hosttransfer.Item, error) {
	has, err := h.from.Store.Ownership()
	if cluster != "ns/a" || !has.Owns(h.thing) {
		return nil, err
	}
	return []hosttransfer.Item{h.thing, h.network}, err
}

// seenBy is the host as a process sees it that may be killed.
func (h *oneHost) seenBy(p *process) *move.HostPair {
	return &move.HostPair{From: h.from, To: h.to, Docker: h, BeforeWrite: p.write, ReleaseTimeout: time.Minute}
}

// owners are those of the container, of the control plane's folder, and of the load balancer's.
func (h *oneHost) owners(t *testing.T) (out []string) {
	t.Helper()
	for _, place := range []move.HostDataDir{h.from, h.to} {
		name := place.Store.Instance()
		has, err := place.Store.Ownership()
		if err != nil {
			t.Fatal(err)
		}
		if has.Owns(h.thing) && has.Owns(h.network) {
			out = append(out, name+" container and network")
		}
		if _, err := os.Stat(place.Dir.Planes() + "/ns.a/etcd/member/snap/db"); err == nil {
			out = append(out, name+" control plane")
		}
		if _, err := os.Stat(place.Dir.Balancers() + "/ns.a/members.json"); err == nil {
			out = append(out, name+" load balancer")
		}
		if _, err := os.Stat(place.Dir.Images() + "/ns/a/0123.tar"); err == nil {
			out = append(out, name+" images")
		}
		if keeper, err := hosttransfer.AssignedSupervisor(place.Dir.Planes() + "/ns.a"); keeper != "" || err != nil {
			t.Errorf("%s has a keeper %q, %v", name, keeper, err)
		}
		if _, giving := has.OutgoingTransfer("ns.a"); giving {
			t.Errorf("%s is still giving it", name)
		}
	}
	return out
}

// onHost is the Cluster "a" with what stands for things of the host.
func onHost() []client.Object {
	backend := set(map[string]any{}, "spec", "backend", "container")
	return []client.Object{
		object("controlplane.slipway.dev/v1alpha1", "HostedControlPlane", "a", finalizer, ownedBy(core, "Cluster", "a"), initialized, set("v1.36.3", "spec", "version")),
		object("infrastructure.slipway.dev/v1alpha1", "LocalCluster", "a", finalizer, ownedBy(core, "Cluster", "a"), backend),
		object("infrastructure.slipway.dev/v1alpha1", "LocalMachine", "a-1", finalizer, ownedBy(core, "Machine", "a-1"), backend, labelled("cluster.x-k8s.io/cluster-name", "a")),
	}
}

// MV-05, MV-09, MV-10: killed at any write, of objects or of files, the same command or a rollback ends with exactly one owner
// of everything on the host: the side that has the objects.
func TestHandOverKilledAtEveryWrite(t *testing.T) {
	for _, rollback := range []bool{false, true} {
		t.Run(fmt.Sprintf("rollback %v", rollback), func(t *testing.T) {
			for n := 1; ; n++ {
				h := newHost(t)
				source, target := management(nil, world(onHost()...)...), management(nil)
				p := &process{killAt: n}
				run := func() *move.Move {
					return move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}, Host: h.seenBy(p)}))
				}
				_, err := run().Run(t.Context())
				if err == nil && n < 50 {
					t.Fatalf("only %d writes", n)
				}
				if err == nil {
					return
				}
				if !errors.Is(err, errKilled) {
					t.Fatalf("write %d: %v", n, err)
				}
				*p = process{}
				want := "b"
				if rollback {
					if _, err = run().Rollback(t.Context()); err == nil {
						want = "a"
					} else if f := fault.As(err); f == nil || f.Reason != "NothingToTakeBack" && f.Reason != "TooLate" && f.Reason != "MoveEnded" {
						t.Fatalf("write %d: %v", n, err)
					}
				}
				if want == "b" {
					if _, err := run().Run(t.Context()); err != nil && !strings.Contains(err.Error(), "there is nothing that could be moved") {
						t.Fatalf("write %d, again: %v", n, err)
					}
				}
				if diff := cmp.Diff([]string{want + " container and network", want + " control plane", want + " load balancer", want + " images"}, h.owners(t)); diff != "" {
					t.Fatalf("write %d, on the host:\n%s", n, diff)
				}
				objects := map[string]client.Client{"a": source, "b": target}
				for name, c := range objects {
					if got := strings.Contains(strings.Join(contents(t, c), "\n"), "HostedControlPlane ns/a"); got != (name == want) {
						t.Fatalf("write %d: %s has the object: %v", n, name, got)
					}
				}
			}
		})
	}
}

// What a tenant writes into the journal, which is in the namespace of the tenant, hands nothing over.
func TestJournalHandsNothingOver(t *testing.T) {
	h := newHost(t)
	source, target := management(nil, world(onHost()...)...), management(nil)
	if _, err := datadir.WriteFile(filepath.Join(h.from.Dir.Planes(), "other.b", "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := object("controlplane.slipway.dev/v1alpha1", "HostedControlPlane", "b", initialized)
	foreign.SetNamespace("other")
	if err := source.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	p := &process{}
	killed := &process{killAt: 8}
	options := func(p *process) move.Options {
		return instant(move.Options{Scope: graph.Scope{Namespace: "ns"}, Host: h.seenBy(p)})
	}
	if _, err := move.New(killed.through(source), killed.through(target), options(killed)).Run(t.Context()); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	rewriteJournal(t, source, func(j map[string]any) {
		j["phase"] = "deleting"
		plan := j["plan"].(map[string]any)
		plan["Entries"] = append(plan["Entries"].([]any), map[string]any{"v": "v1alpha1", "i": map[string]any{
			"Group": "controlplane.slipway.dev", "Kind": "HostedControlPlane", "Namespace": "other", "Name": "b",
		}})
		plan["Host"] = []any{"host: hand over everything"}
	})
	run := func() error {
		_, err := move.New(p.through(source), p.through(target), options(p)).Run(t.Context())
		if _, statErr := os.Stat(filepath.Join(h.from.Dir.Planes(), "other.b", "config.json")); statErr != nil {
			t.Errorf("the control plane of another namespace is gone: %v (the move: %v)", statErr, err)
		}
		if !strings.Contains(strings.Join(contents(t, source), "\n"), "HostedControlPlane other/b") {
			t.Errorf("the object of another namespace is gone (the move: %v)", err)
		}
		return err
	}
	if f := fault.As(run()); f == nil || f.Reason != "UnreadableJournal" {
		t.Errorf("a journal that reaches out of the namespace: %v", f)
	}
	rewriteJournal(t, source, func(j map[string]any) {
		plan := j["plan"].(map[string]any)
		entries := plan["Entries"].([]any)
		plan["Entries"] = entries[:len(entries)-1]
	})
	if err := run(); err != nil { // the rest of the lie is not believed either: what the host has is read again
		t.Error(err)
	}
}

// A journal that says that something in another namespace was copied does not get it deleted when the move is taken back.
func TestJournalDeletesNothingElsewhere(t *testing.T) {
	source, target := management(nil, world()...), management(nil)
	theirs := object("v1", "Secret", "theirs")
	theirs.SetNamespace("other")
	if err := target.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	killed, p := &process{killAt: 12}, &process{}
	var said []string
	options := instant(move.Options{Scope: graph.Scope{Namespace: "ns"}, Report: func(text string) { said = append(said, text) }})
	if _, err := move.New(killed.through(source), killed.through(target), options).Run(t.Context()); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	rewriteJournal(t, source, func(j map[string]any) {
		plan := j["plan"].(map[string]any)
		plan["Entries"] = append(plan["Entries"].([]any), map[string]any{"v": "v1", "c": true, "i": map[string]any{
			"Kind": "Secret", "Namespace": "other", "Name": "theirs",
		}})
	})
	if _, err := move.New(p.through(source), p.through(target), options).Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := target.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("the Secret of another namespace: %v", err)
	}
	if !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, "Secret other/theirs stays at the target") }) {
		t.Errorf("it is left without a word: %q", said)
	}
}
