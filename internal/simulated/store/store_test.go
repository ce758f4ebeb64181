package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// clock is a time that moves when it is told to.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func newClock() *clock { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func open(t *testing.T, dir string, c *clock) (*Store, *Keyspace) {
	t.Helper()
	s := Open(dir, c.now, Limits{})
	k, err := s.Keyspace("a", "ns", func(string, bool) {})
	if err != nil {
		t.Fatal(err)
	}
	return s, k
}

func put(t *testing.T, k *Keyspace, key, value string) int64 {
	t.Helper()
	if err := k.Put(key, []byte(value)); err != nil {
		t.Fatal(err)
	}
	_, revision := k.Get(key)
	return revision
}

func listed(kvs []*mvccpb.KeyValue) []string {
	var out []string
	for _, kv := range kvs {
		out = append(out, string(kv.Key)+"="+string(kv.Value))
	}
	return out
}

func TestTransactions(t *testing.T) {
	_, k := open(t, t.TempDir(), newClock())
	ctx, c := WithKeyspace(context.Background(), k), NewClient(context.Background()).Kubernetes
	r, err := c.OptimisticPut(ctx, "/a", []byte("1"), 0, kubernetes.PutOptions{})
	if err != nil || !r.Succeeded {
		t.Fatalf("a key that is absent is created: %v %v", r, err)
	}
	first := r.Revision
	if r, err = c.OptimisticPut(ctx, "/a", []byte("2"), 0, kubernetes.PutOptions{GetOnFailure: true}); err != nil || r.Succeeded || string(r.KV.Value) != "1" {
		t.Errorf("a key that is there is not created again, and shown: %v %v", r, err)
	}
	if r, err = c.OptimisticPut(ctx, "/a", []byte("2"), first, kubernetes.PutOptions{}); err != nil || !r.Succeeded || r.Revision <= first {
		t.Errorf("updated at its revision: %v %v", r, err)
	}
	if d, err := c.OptimisticDelete(ctx, "/a", first, kubernetes.DeleteOptions{GetOnFailure: true}); err != nil || d.Succeeded || string(d.KV.Value) != "2" {
		t.Errorf("not deleted at an older revision: %v %v", d, err)
	}
	if d, err := c.OptimisticDelete(ctx, "/a", r.Revision, kubernetes.DeleteOptions{}); err != nil || !d.Succeeded {
		t.Errorf("deleted at its revision: %v %v", d, err)
	}
	if g, err := c.Get(ctx, "/a", kubernetes.GetOptions{}); err != nil || g.KV != nil {
		t.Errorf("gone: %v %v", g, err)
	}
	if _, err := c.Get(context.Background(), "/a", kubernetes.GetOptions{}); !errors.Is(err, errNoKeyspace) {
		t.Errorf("without a cluster: %v", err)
	}
}

func TestListPagesAndRevisions(t *testing.T) {
	_, k := open(t, t.TempDir(), newClock())
	ctx, c := WithKeyspace(context.Background(), k), NewClient(context.Background()).Kubernetes
	put(t, k, "/x/b", "1")
	put(t, k, "/x/a", "1")
	before := put(t, k, "/xy", "1")
	put(t, k, "/x/a", "2")
	if err := k.Delete("/x/b"); err != nil {
		t.Fatal(err)
	}
	put(t, k, "/x/c", "1")

	now, err := c.List(ctx, "/x/", kubernetes.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/x/a=2", "/x/c=1"}, listed(now.Kvs)); d != "" {
		t.Error("now", d)
	}
	then, err := c.List(ctx, "/x/", kubernetes.ListOptions{Revision: before})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/x/a=1", "/x/b=1"}, listed(then.Kvs)); d != "" {
		t.Error("as it was", d)
	}
	page, err := c.List(ctx, "/x/", kubernetes.ListOptions{Limit: 1})
	if err != nil || page.Count != 2 {
		t.Fatal(page, err)
	}
	rest, err := c.List(ctx, "/x/", kubernetes.ListOptions{Continue: "/x/a\x00", Revision: page.Revision})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/x/a=2", "/x/c=1"}, append(listed(page.Kvs), listed(rest.Kvs)...)); d != "" {
		t.Error("page by page", d)
	}
	if _, err := c.List(ctx, "/x/", kubernetes.ListOptions{Revision: now.Revision + 1}); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("of the future: %v", err)
	}
}

func TestWatch(t *testing.T) {
	clock := newClock()
	_, k := open(t, t.TempDir(), clock)
	ctx, cancel := context.WithCancel(WithKeyspace(context.Background(), k))
	defer cancel()
	c := NewClient(context.Background())
	put(t, k, "/x/a", "1")
	from := put(t, k, "/y", "1")
	put(t, k, "/x/a", "2")
	events := c.Watch(ctx, "/x/", clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithPrevKV())
	if err := k.Delete("/x/a"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 2 {
		for _, e := range (<-events).Events {
			got = append(got, fmt.Sprint(e.Type, " ", string(e.Kv.Value), " before ", string(e.PrevKv.Value)))
		}
	}
	if d := cmp.Diff([]string{"PUT 2 before 1", "DELETE  before 2"}, got); d != "" {
		t.Error(d)
	}
	clock.Time = clock.Add(2 * historyAge)
	k.expire()
	if r := <-c.Watch(ctx, "/x/", clientv3.WithPrefix(), clientv3.WithRev(from)); !errors.Is(r.Err(), rpctypes.ErrCompacted) {
		t.Errorf("changes that are forgotten: %v", r.Err())
	}
	k.end()
	for r := range events { // ends, though no one cancelled it
		if !r.Canceled {
			t.Errorf("a removed cluster told %v", r)
		}
	}
}

// A watch of what has not changed since can go on after any pause; one that would miss something, of its keys or of a key
// of its folder, lists again.
func TestWatchOfWhatIsQuiet(t *testing.T) {
	clock := newClock()
	s, k := open(t, t.TempDir(), clock)
	put(t, k, "/registry/minions/a", "1")
	quiet := put(t, k, "/registry/minions/b", "1")
	for range 2 * historyEvents {
		put(t, k, "/registry/events/default/x", "")
	}
	clock.Time = clock.Add(2 * historyAge)
	k.expire()
	refused := func(k *Keyspace, from int64, key string, options ...clientv3.OpOption) bool {
		ctx, cancel := context.WithCancel(WithKeyspace(context.Background(), k))
		defer cancel()
		events := NewClient(context.Background()).Watch(ctx, key, append(options, clientv3.WithRev(from))...)
		put(t, k, strings.TrimSuffix(key, "a")+"a", "2") // what a watch that was not refused tells
		r := <-events
		return errors.Is(r.Err(), rpctypes.ErrCompacted)
	}
	if refused(k, quiet+1, "/registry/minions/", clientv3.WithPrefix()) || refused(k, quiet+1, "/registry/minions/a") {
		t.Error("nothing of the Nodes has changed, and their watch was refused")
	}
	for name, is := range map[string]bool{
		"a change of a key of the range": refused(k, quiet, "/registry/minions/", clientv3.WithPrefix()),
		"a change of the key's folder":   refused(k, quiet, "/registry/minions/a"),
		"a change of another folder":     refused(k, quiet+1, "/registry/events/", clientv3.WithPrefix()),
		"a change of all there is":       refused(k, quiet+1, "/", clientv3.WithPrefix()),
	} {
		if !is {
			t.Errorf("%s is lost, and the watch that would miss it was not refused", name)
		}
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, again := open(t, s.dir, clock); !refused(again, quiet+1, "/registry/minions/", clientv3.WithPrefix()) {
		t.Error("what was between is not known after a restart")
	}
}

func TestHistoryIsBounded(t *testing.T) {
	_, k := open(t, t.TempDir(), newClock())
	big := string(make([]byte, historyBytes/4))
	for range 100 {
		put(t, k, "/big", big)
	}
	if len(k.history) > 5 || k.historySize > historyBytes+len(big) {
		t.Errorf("%d events of %d bytes are kept", len(k.history), k.historySize)
	}
	for range 2 * historyEvents {
		put(t, k, "/small", "")
	}
	if len(k.history) > historyEvents {
		t.Errorf("%d events are kept", len(k.history))
	}
}

func TestLease(t *testing.T) {
	clock := newClock()
	s, k := open(t, t.TempDir(), clock)
	ctx, c := WithKeyspace(context.Background(), k), NewClient(context.Background())
	lease, err := c.Grant(ctx, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubernetes.OptimisticPut(ctx, "/event", nil, 0, kubernetes.PutOptions{LeaseID: lease.ID}); err != nil {
		t.Fatal(err)
	}
	put(t, k, "/stays", "1")
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	_, again := open(t, s.dir, clock)
	for _, k := range []*Keyspace{k, again} {
		clock.Time = newClock().Add(9 * time.Second)
		k.expire()
		if got := k.Keys("/"); len(got) != 2 {
			t.Errorf("before its end: %v", got)
		}
		clock.Time = newClock().Add(10 * time.Second)
		k.expire()
		if d := cmp.Diff([]string{"/stays"}, k.Keys("/")); d != "" {
			t.Error("after its end", d)
		}
	}
}

func TestRestart(t *testing.T) {
	clock := newClock()
	s, k := open(t, t.TempDir(), clock)
	put(t, k, "/a", "1")
	last := put(t, k, "/b", "2")
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	s, k = open(t, s.dir, clock)
	if !s.Exists("a") || s.Exists("b") {
		t.Error("what exists is told by files too")
	}
	if value, _ := k.Get("/b"); string(value) != "2" {
		t.Errorf("/b is %q", value)
	}
	if revision := put(t, k, "/a", "3"); revision <= last+1000 {
		t.Errorf("revision %d after %d: changes that were lost may have used those between", revision, last)
	}
	if err := s.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if err := k.Put("/a", nil); !errors.Is(err, errRemoved) {
		t.Errorf("writing to a removed cluster: %v", err)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 || s.Exists("a") {
		t.Errorf("after its removal: %v %v", left, err)
	}
}

// A process that is killed while it writes leaves a part of another file, at any point, and never half of the real one.
func TestKilledWhileWriting(t *testing.T) {
	clock := newClock()
	s, k := open(t, t.TempDir(), clock)
	put(t, k, "/a", "1")
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := os.WriteFile(filepath.Join(s.dir, ".a"+suffix+".123"), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, again := open(t, s.dir, clock); len(again.Keys("/")) != 1 {
			t.Fatalf("killed after %d bytes: %v", n, again.Keys("/"))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, ".*.123")); len(left) > 0 {
		t.Errorf("what a killed process left stays: %v", left)
	}
}

func TestDamagedFile(t *testing.T) {
	clock := newClock()
	s, k := open(t, t.TempDir(), clock)
	last := put(t, k, "/a", "1")
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		bad := append([]byte(nil), whole...)
		bad[n] ^= 0x40
		if err := os.WriteFile(s.path("a"), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		again, k := open(t, s.dir, clock)
		if len(k.Keys("/")) != 0 || put(t, k, "/b", "1") <= last {
			t.Fatalf("byte %d: %v", n, k.Keys("/"))
		}
		if kept, err := os.ReadFile(again.path("a") + damaged); err != nil || string(kept) != string(bad) {
			t.Fatalf("byte %d: what cannot be read is kept for people: %v", n, err)
		}
	}
}

func TestRunWritesBehind(t *testing.T) {
	s, k := open(t, t.TempDir(), newClock())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx, func(err error) { t.Error(err) })
	}()
	put(t, k, "/a", "1")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(s.path("a")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is written")
		}
	}
	put(t, k, "/a", "2")
	cancel()
	<-ended
	_, again := open(t, s.dir, newClock())
	if value, _ := again.Get("/a"); string(value) != "2" {
		t.Errorf("after the end: %q", value)
	}
}

// What users put into a cluster is bounded: its objects, the size of each, of all of them, and of all clusters.
func TestLimits(t *testing.T) {
	s := Open(t.TempDir(), newClock().now, Limits{Objects: 3, ClusterBytes: 100, NamespaceBytes: 150, Bytes: 150})
	space := func(name string) *Keyspace {
		k, err := s.Keyspace(name, "ns", func(string, bool) {})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	try := func(k *Keyspace, key string, size int, want error) {
		t.Helper()
		if err := k.Put(key, make([]byte, size)); !errors.Is(err, want) {
			t.Errorf("%s of %d bytes: %v, want %v", key, size, err, want)
		}
	}
	a, b := space("a"), space("b")
	try(a, "/1", maxValue+1, rpctypes.ErrRequestTooLarge)
	try(a, "/1", 90, nil)
	try(a, "/2", 20, rpctypes.ErrNoSpace)
	try(a, "/1", 101, rpctypes.ErrNoSpace)
	try(a, "/1", 80, nil) // smaller
	try(a, "/2", 10, nil)
	try(a, "/3", 10, nil)
	try(a, "/4", 0, rpctypes.ErrNoSpace)  // the fourth object
	try(b, "/1", 60, rpctypes.ErrNoSpace) // of all clusters
	try(b, "/1", 50, nil)
	if err := a.Delete("/1"); err != nil {
		t.Fatal(err)
	}
	try(b, "/2", 50, nil)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if used := s.usage.used.Load(); used != 100 {
		t.Errorf("%d bytes are counted, want those of the cluster that is left", used)
	}
	again := Open(s.dir, s.now, Limits{NamespaceBytes: 120, Bytes: 120})
	if k, err := again.Keyspace("b", "ns", func(string, bool) {}); err != nil || !errors.Is(k.Put("/3", make([]byte, 30)), rpctypes.ErrNoSpace) {
		t.Errorf("what was stored before is not counted: %v", err)
	}
}

// S10: one namespace leaves something to the others, and all together leave most of the memory of the process.
func TestLimitsOfNamespaces(t *testing.T) {
	if got := LimitsForMemory(512 << 20).withDefaults(); got.Bytes != 128<<20 || got.NamespaceBytes != 96<<20 || got.ClusterBytes != defaultClusterBytes {
		t.Errorf("with 512 MiB: %+v", got)
	}
	if got := LimitsForMemory(1 << 40).withDefaults(); got.Bytes != defaultBytes {
		t.Errorf("with 1 TiB: %+v", got)
	}
	s := Open(t.TempDir(), newClock().now, Limits{Bytes: 400})
	put := func(name, namespace string, size int) error {
		k, err := s.Keyspace(name, namespace, func(string, bool) {})
		if err != nil {
			t.Fatal(err)
		}
		return k.Put("/x", make([]byte, size))
	}
	for name, size := range map[string]int{"a": 100, "b": 200} {
		if err := put(name, "greedy", size); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := put("c", "greedy", 1); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("the namespace has three quarters of all: %v", err)
	}
	if err := put("d", "other", 100); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	if err := s.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if err := put("e", "greedy", 100); err != nil {
		t.Errorf("a cluster that is removed counts: %v", err)
	}
}

// A watcher that does not read costs a bounded amount of memory, however large the objects are.
func TestWatcherThatDoesNotRead(t *testing.T) {
	_, k := open(t, t.TempDir(), newClock())
	events := k.watch(t.Context(), "/a", "", 0)
	for range 64 {
		if err := k.Put("/a", make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for r := range events {
		if r.Canceled {
			break
		}
		for _, e := range r.Events {
			held += len(e.Kv.Value)
		}
	}
	if held > 3*backlogBytes {
		t.Errorf("%d bytes were held", held)
	}
}
