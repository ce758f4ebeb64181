package move_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	claimA = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	inUse  = "clusterctl.cluster.x-k8s.io/move-hierarchy"
)

// sshHost is an SSHHost in the operator's namespace, with its credentials in a Secret of its own, and those of its jump host in
// one that others use, too.
func sshHost(name, address string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return object(ssh, "SSHHost", name, append([]func(*unstructured.Unstructured){finalizer, func(o *unstructured.Unstructured) { o.SetNamespace("hosts") },
		set(map[string]any{
			"address": address, "port": int64(22), "credentialsRef": map[string]any{"name": name + "-ssh"}, "offeredTo": map[string]any{"matchLabels": map[string]any{"team": "a"}},
			"jump": map[string]any{"address": "192.0.2.250", "credentialsRef": map[string]any{"name": "rack"}},
		}, "spec")}, change...)...)
}

func claimedBy(namespace, name, claim string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		set(map[string]any{"namespace": namespace, "name": name, "claimID": claim}, "status", "claim")(o)
		o.SetLabels(map[string]string{inUse: "in-use"})
		o.SetAnnotations(map[string]string{"infrastructure.slipway.dev/last-namespace": namespace, "infrastructure.slipway.dev/clean-host": claim})
	}
}

func inHosts(o *unstructured.Unstructured) { o.SetNamespace("hosts") }

func credentials(name, key string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return object("v1", "Secret", name, append([]func(*unstructured.Unstructured){inHosts, set(key, "data", "ssh-privatekey")}, change...)...)
}

// sshWorld has a cluster with one machine on an SSHHost, and further SSHHosts of the operator.
func sshWorld(more ...client.Object) []client.Object {
	out := world(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hosts"}},
		object(ssh, "SSHMachine", "a-ssh", finalizer, ownedBy(core, "Machine", "a-1"), set(claimA, "spec", "claimID")),
		sshHost("used", "192.0.2.1", claimedBy("ns", "a-ssh", claimA)), credentials("used-ssh", "MQ==", ownedBy(ssh, "SSHHost", "used")), credentials("rack", "cg=="),
		sshHost("free", "192.0.2.2"), credentials("free-ssh", "Mg==", ownedBy(ssh, "SSHHost", "free")),
		sshHost("spare", "192.0.2.3", labelled("clusterctl.cluster.x-k8s.io/move-hierarchy", "")), credentials("spare-ssh", "Mw==", ownedBy(ssh, "SSHHost", "spare")),
		sshHost("theirs", "192.0.2.4", claimedBy("other", "a-ssh", strings.Repeat("b", 26))), credentials("theirs-ssh", "NA==", ownedBy(ssh, "SSHHost", "theirs")),
		sshHost("forged", "192.0.2.5", claimedBy("ns", "a-ssh", strings.Repeat("c", 26))), credentials("forged-ssh", "NQ==", ownedBy(ssh, "SSHHost", "forged")),
		sshHost("unoffered", "192.0.2.6", labelled("clusterctl.cluster.x-k8s.io/move", ""), set(map[string]any{"matchLabels": map[string]any{"team": "b"}}, "spec", "offeredTo")),
		credentials("unoffered-ssh", "Ng==", ownedBy(ssh, "SSHHost", "unoffered")),
	)
	out[0].SetLabels(map[string]string{"team": "a"})
	return append(out, more...)
}

const noted = " infrastructure.slipway.dev/last-namespace"

var (
	asked      = " infrastructure.slipway.dev/clean-host" + noted + " kept"
	machineOfA = []string{"SSHMachine ns/a-ssh of Machine/a-1 kept"}
	// hostsThatMove are at the target without the request to clean them, which was one to the source.
	hostsThatMove = []string{"SSHHost hosts/used" + noted + " kept", "Secret hosts/used-ssh of SSHHost/used", "Secret hosts/rack"}
	spare         = []string{"SSHHost hosts/spare kept", "Secret hosts/spare-ssh of SSHHost/spare"}
	unoffered     = []string{"SSHHost hosts/unoffered kept", "Secret hosts/unoffered-ssh of SSHHost/unoffered"}
	hostsThatStay = []string{
		"SSHHost hosts/free kept", "Secret hosts/free-ssh of SSHHost/free", "SSHHost hosts/theirs" + asked, "Secret hosts/theirs-ssh of SSHHost/theirs",
		"SSHHost hosts/forged" + asked, "Secret hosts/forged-ssh of SSHHost/forged", "SSHHost hosts/unoffered kept", "Secret hosts/unoffered-ssh of SSHHost/unoffered",
		"Secret hosts/rack", "ConfigMap ns/other",
	}
)

// The SSHHosts of the machines move with their credentials from the namespace of the operator, free ones only with a label, and
// at every interruption they are on one side in the end.
func TestSSHHostsMove(t *testing.T) {
	for name, tc := range map[string]struct {
		what           graph.Scope
		source, target []string
	}{
		"namespace":   {graph.Scope{Namespace: "ns"}, lines(hostsThatStay), lines(clusterA, classOfA, machineOfA, hostsThatMove, spare)},
		"one cluster": {graph.Scope{Namespace: "ns", Clusters: []string{"a"}}, lines(hostsThatStay, classOfA, spare), lines(clusterA, classOfA, machineOfA, hostsThatMove)},
		"everything":  {graph.Scope{}, lines(hostsThatStay), lines(clusterA, classOfA, machineOfA, hostsThatMove, spare, unoffered)},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				source, target := management(nil, sshWorld()...), management(nil)
				p := &process{killAt: n}
				run := func() error {
					_, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: tc.what})).Run(t.Context())
					return err
				}
				err := run()
				killed := errors.Is(err, errKilled)
				if killed {
					*p = process{}
					err = run()
				}
				if err != nil {
					t.Fatalf("write %d: %v", n, err)
				}
				wantSource := tc.source
				if tc.what.Namespace == "" {
					wantSource = slices.DeleteFunc(slices.Clone(wantSource), func(s string) bool { return slices.Contains(unoffered, s) })
				}
				if diff := cmp.Diff(wantSource, contents(t, source)); diff != "" {
					t.Fatalf("write %d, source:\n%s", n, diff)
				}
				if diff := cmp.Diff(tc.target, contents(t, target)); diff != "" {
					t.Fatalf("write %d, target:\n%s", n, diff)
				}
				if n > 0 && !killed {
					return
				}
			}
		})
	}
}

// A move that is taken back leaves every SSHHost at the source, and none at the target.
func TestSSHHostsStayAfterRollback(t *testing.T) {
	for n := 1; ; n++ {
		source, target := management(nil, sshWorld()...), management(nil)
		before := contents(t, source)
		p := &process{killAt: n}
		run := func() *move.Move {
			return move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}}))
		}
		if _, err := run().Run(t.Context()); err == nil {
			return
		}
		*p = process{}
		if _, err := run().Rollback(t.Context()); err != nil {
			if slices.Contains([]string{"NothingToTakeBack", "TooLate", "MoveEnded"}, fault.As(err).Reason) {
				continue
			}
			t.Fatalf("write %d: %v", n, err)
		}
		var want []string // an object that was created again has no request to the source
		for _, line := range before {
			want = append(want, strings.Replace(line, "used infrastructure.slipway.dev/clean-host", "used", 1))
		}
		var got []string
		for _, line := range contents(t, source) {
			got = append(got, strings.Replace(line, "used infrastructure.slipway.dev/clean-host", "used", 1))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("write %d, source:\n%s", n, diff)
		}
		for _, line := range contents(t, target) {
			if !strings.HasPrefix(line, "Secret hosts/rack") { // copies outside of the namespace are reported, and stay
				t.Fatalf("write %d, target: %s", n, line)
			}
		}
	}
}

// A host that the operator has prepared at the target is moved, or stays at both, whenever the command is interrupted.
func TestPreparedSSHHostsMove(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(*move.Move) error
		want []string // the reasons for which a rollback is refused
	}{
		"run":      {func(m *move.Move) error { _, err := m.Run(t.Context()); return err }, nil},
		"rollback": {func(m *move.Move) error { _, err := m.Rollback(t.Context()); return err }, []string{"NothingToTakeBack", "TooLate", "MoveEnded"}},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				source, target := management(nil, sshWorld()...), management(nil, sshHost("used", "192.0.2.1"), credentials("used-ssh", "OQ=="))
				p := &process{killAt: n}
				begun := func() *move.Move {
					return move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}}))
				}
				if _, err := begun().Run(t.Context()); err == nil {
					return
				}
				*p = process{}
				err := tc.run(begun())
				if err != nil && slices.Contains(tc.want, fault.As(err).Reason) {
					continue
				}
				if err != nil {
					t.Fatalf("write %d: %v", n, err)
				}
				isAtSource := slices.ContainsFunc(contents(t, source), func(s string) bool { return strings.HasPrefix(s, "SSHHost hosts/used ") })
				isAtTarget := slices.ContainsFunc(contents(t, target), func(s string) bool { return strings.HasPrefix(s, "SSHHost hosts/used ") })
				if isAtSource != (name == "rollback") || !isAtTarget {
					t.Fatalf("write %d: at the source %t, at the target %t", n, isAtSource, isAtTarget)
				}
			}
		})
	}
}

// What the target has must be the same machine, and must not be used there.
func TestSSHHostsOfTheTarget(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		there  []client.Object
		change func([]client.Object)
		want   string // empty: it moves
	}{
		"prepared":       {"the operator added it in advance", []client.Object{sshHost("used", "192.0.2.1"), credentials("used-ssh", "OQ==")}, nil, ""},
		"another":        {"the name belongs to another machine", []client.Object{sshHost("used", "192.0.2.9")}, nil, "the target has another SSHHost hosts/used"},
		"other name":     {"two objects would be one machine", []client.Object{sshHost("x", "192.0.2.1")}, nil, "both are the same machine"},
		"used":           {"it is a node of the target", []client.Object{sshHost("used", "192.0.2.1", claimedBy("ns", "b", claimA))}, nil, "and uses it"},
		"shared Secret":  {"the copy would not be the right key", []client.Object{credentials("rack", "eA==")}, nil, "the target has another Secret hosts/rack"},
		"same Secret":    {"it is the right key", []client.Object{credentials("rack", "cg==")}, nil, ""},
		"no credentials": {"the target could not connect", nil, func(all []client.Object) { all[slices.IndexFunc(all, named("rack"))].SetName("lost") }, "Secret hosts/rack does not exist"},
		"claimed just now": {"an interrupted move would not find it", nil, func(all []client.Object) {
			all[slices.IndexFunc(all, named("used"))].SetAnnotations(nil)
		}, "SSHHost hosts/used was claimed by SSHMachine ns/a-ssh just now"},
		"paused": {"the operator has paused it", nil, func(all []client.Object) {
			graph.Annotate(all[slices.IndexFunc(all, named("used"))].(*unstructured.Unstructured), "cluster.x-k8s.io/paused", true)
		}, "SSHHost hosts/used is already paused"},
		"shared credentials": {"the other host would lose them", nil, func(all []client.Object) {
			set("used-ssh", "spec", "credentialsRef", "name")(all[slices.IndexFunc(all, named("free"))].(*unstructured.Unstructured))
		}, "SSHHost hosts/free, which stays"},
	} {
		all := sshWorld()
		if tc.change != nil {
			tc.change(all)
		}
		p := &process{}
		source, target := management(nil, all...), management(nil, tc.there...)
		_, err := move.New(p.through(source), p.through(target), instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context())
		switch {
		case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s (%s): %v", name, tc.reason, err)
		case tc.want != "" && p.writes > 0:
			t.Errorf("%s: %d writes", name, p.writes)
		}
	}
}

func named(name string) func(client.Object) bool {
	return func(o client.Object) bool { return o.GetName() == name }
}

// Users of a namespace need the right to read SSHHosts only if the namespace has machines on them.
func TestSSHHostsThatCannotBeRead(t *testing.T) {
	deny := func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
			if kind := l.GetObjectKind().GroupVersionKind().Kind; strings.TrimSuffix(kind, "List") == "SSHHost" {
				return apierrors.NewForbidden(schema.GroupResource{Group: "infrastructure.slipway.dev", Resource: "sshhosts"}, "", errors.New("no role"))
			}
			return c.List(ctx, l, o...)
		}})
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"without machines": {world(), ""},
		"with machines":    {sshWorld(), "HostsNotReadable"},
	} {
		p := &process{}
		source, target := p.through(management(nil, tc.objects...)), p.through(management(nil))
		_, err := move.New(deny(source), target, instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context())
		if f := fault.As(err); tc.want == "" && err != nil || tc.want != "" && (f == nil || f.Reason != tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A move reads the credentials only of SSHHosts that may move: users of a namespace may lack the right to read others.
func TestSSHHostsWhoseCredentialsCannotBeRead(t *testing.T) {
	deny := func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if slices.Contains([]string{"free-ssh", "theirs-ssh", "unoffered-ssh"}, key.Name) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("no role"))
			}
			return c.Get(ctx, key, o, opts...)
		}})
	}
	source, target := (&process{}).through(management(nil, sshWorld()...)), (&process{}).through(management(nil))
	if _, err := move.New(deny(source), target, instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})).Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// A journal that names SSHHosts or Secrets that the machines of the namespace do not use moves and deletes none of them.
func TestJournalMovesNoOtherHosts(t *testing.T) {
	paused := func(o *unstructured.Unstructured) { graph.Annotate(o, "cluster.x-k8s.io/paused", true) }
	theirs := sshHost("paused-theirs", "192.0.2.7", claimedBy("other", "a-ssh", strings.Repeat("d", 26)), paused)
	returned := sshHost("returned-theirs", "192.0.2.8", claimedBy("other", "a-ssh", strings.Repeat("e", 26)), paused, func(o *unstructured.Unstructured) {
		unstructured.RemoveNestedField(o.Object, "status") // a rollback of the other namespace was interrupted
	})
	for _, name := range []string{
		"SSHHost free", "SSHHost theirs", "SSHHost unoffered", "SSHHost paused-free", "SSHHost paused-theirs", "SSHHost returned-theirs",
		"SSHHost away", "Secret free-ssh", "Secret rack", "ConfigMap x",
	} {
		kind, object, _ := strings.Cut(name, " ")
		source := management(nil, sshWorld(sshHost("paused-free", "192.0.2.9", paused), theirs.DeepCopy(), returned.DeepCopy())...)
		target := management(nil, sshHost("away", "192.0.2.11", paused))
		killed, p := &process{killAt: 20}, &process{}
		options := instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})
		if _, err := move.New(killed.through(source), killed.through(target), options).Run(t.Context()); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		rewriteJournal(t, source, func(j map[string]any) {
			plan := j["plan"].(map[string]any)
			entry := map[string]any{"v": "v1", "i": map[string]any{"Kind": kind, "Namespace": "hosts", "Name": object}}
			if kind == "SSHHost" {
				entry["v"], entry["i"].(map[string]any)["Group"] = "v1alpha1", "infrastructure.slipway.dev"
			}
			plan["Entries"] = append(plan["Entries"].([]any), entry)
		})
		for _, run := range []func(*move.Move) error{
			func(m *move.Move) error { _, err := m.Run(t.Context()); return err },
			func(m *move.Move) error { _, err := m.Rollback(t.Context()); return err },
		} {
			err := run(move.New(p.through(source), p.through(target), options))
			if f := fault.As(err); f == nil || f.Reason != "UnreadableJournal" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A host of the same name that the target uses, since the move was begun or for a forged journal, is neither changed nor deleted.
func TestJournalMovesNoUsedHostOfTheTarget(t *testing.T) {
	source, target := management(nil, sshWorld()...), management(nil)
	killed, p := &process{killAt: 4}, &process{}
	options := instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})
	if _, err := move.New(killed.through(source), killed.through(target), options).Run(t.Context()); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if err := target.Create(t.Context(), sshHost("used", "192.0.2.9", claimedBy("other", "b", strings.Repeat("b", 26)))); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(*move.Move) error{
		"run":      func(m *move.Move) error { _, err := m.Run(t.Context()); return err },
		"rollback": func(m *move.Move) error { _, err := m.Rollback(t.Context()); return err },
	} {
		err := run(move.New(p.through(source), p.through(target), options))
		if f := fault.As(err); f == nil || f.Reason != "UnreadableJournal" || p.writes > 0 {
			t.Errorf("%s: %v, %d writes", name, err, p.writes)
		}
	}
}

// Files and backups have the SSHHosts, which are resumed when they are created from them. A backup of the namespace of the
// operator also has those that nothing uses.
func TestSSHHostsInFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	source, target := management(nil, sshWorld()...), management(nil)
	before := contents(t, source)
	if _, err := move.ToDirectory(t.Context(), source, dir, instant(move.Options{Scope: graph.Scope{Namespace: "ns"}})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, contents(t, source)); diff != "" {
		t.Error("source:", diff)
	}
	created := (&process{}).through(target)
	if _, err := move.FromDirectory(t.Context(), created, dir, move.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines(clusterA, classOfA, machineOfA, hostsThatMove, spare), contents(t, target)); diff != "" {
		t.Error("target:", diff)
	}
	for namespace, want := range map[string]int{"ns": 2, "hosts": 6, "": 6} {
		saved, err := move.Snapshot(t.Context(), source, graph.Scope{Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		var hosts []string
		for _, o := range saved {
			if o.GetKind() == "SSHHost" {
				hosts = append(hosts, o.GetName())
			}
			if _, paused := o.GetAnnotations()["cluster.x-k8s.io/paused"]; paused {
				t.Errorf("%s %s is paused", o.GetKind(), o.GetName())
			}
		}
		if len(hosts) != want {
			t.Errorf("namespace %q: %s", namespace, fmt.Sprint(hosts))
		}
	}
}
