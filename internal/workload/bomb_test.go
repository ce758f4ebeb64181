package workload

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// values are how many empty objects are nested in one object: 15 MB of JSON that become 560 MB of conditions.
const values = 5_000_000

// repeated writes a text many times.
func repeated(w io.Writer, text string, n int) {
	const atOnce = 10_000
	for ; n >= atOnce; n -= atOnce {
		_, _ = io.WriteString(w, strings.Repeat(text, atOnce))
	}
	_, _ = io.WriteString(w, strings.Repeat(text, n))
}

// jsonNode writes a Node with that many empty conditions.
func jsonNode(w io.Writer, name string) {
	_, _ = io.WriteString(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"`+name+`","resourceVersion":"5"},"status":{"conditions":[`)
	repeated(w, "{},", values-1)
	_, _ = io.WriteString(w, `{}]}}`)
}

// wrapped is the beginning of a protobuf field of a length.
func wrapped(number, length int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3|2), uint64(length))
}

// protobufNode writes the same in protobuf, and as an item of a list if wanted.
func protobufNode(w io.Writer, list bool) {
	status := 2 * values
	statusField := wrapped(3, status) // Node.status
	object := append([]byte{}, statusField...)
	length := len(statusField) + status
	kind := "Node"
	if list {
		object = append(wrapped(2, length), statusField...)
		length += len(object) - len(statusField)
		kind = "NodeList"
	}
	meta := append(append(wrapped(1, 2), "v1"...), append(wrapped(2, len(kind)), kind...)...)
	_, _ = w.Write([]byte("k8s\x00"))
	_, _ = w.Write(append(wrapped(1, len(meta)), meta...))
	_, _ = w.Write(wrapped(2, length))
	_, _ = w.Write(object)
	repeated(w, "\x22\x00", values) // conditions
}

// attack is what a hostile API sends instead of what a good one does.
type attack struct {
	path, contentType string
	watch             bool
	send              func(w io.Writer)
}

func (k attack) serve(good http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if watches := r.URL.Query().Get("watch") == "true"; r.URL.Path != k.path || watches != k.watch {
			good.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", k.contentType)
		w.Header().Set("Content-Encoding", "gzip")
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		k.send(packed)
		_ = packed.Close()
		if k.watch {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
}

// allocates returns how many bytes f allocates.
func allocates(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// mostForAttack is far above what reading up to the limit takes, and far below what decoding the answer would.
const mostForAttack = 400 << 20

// Objects in which very many empty ones are nested are not decoded, whatever call they answer: they are a few kilobytes on the
// wire and more than a gigabyte in memory, and every manager has the clusters of all.
func TestNestedBombs(t *testing.T) { // RC-04, RC-06
	list := func(_ *bench, c client.Client) error { return c.List(t.Context(), &corev1.NodeList{}) }
	get := func(_ *bench, c client.Client) error {
		return c.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{})
	}
	discover := func(_ *bench, c client.Client) error {
		other := &unstructured.Unstructured{}
		other.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"})
		return c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, other)
	}
	const protobuf = "application/vnd.kubernetes.protobuf"
	for name, tc := range map[string]struct {
		attack attack
		call   func(*bench, client.Client) error
	}{
		"list in JSON": {attack{"/api/v1/nodes", "application/json", false, func(w io.Writer) {
			_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[`)
			jsonNode(w, "n")
			_, _ = io.WriteString(w, `]}`)
		}}, list},
		"list in protobuf": {attack{"/api/v1/nodes", protobuf, false, func(w io.Writer) { protobufNode(w, true) }}, list},
		"get in JSON":      {attack{"/api/v1/nodes/n", "application/json", false, func(w io.Writer) { jsonNode(w, "n") }}, get},
		"get in protobuf":  {attack{"/api/v1/nodes/n", protobuf, false, func(w io.Writer) { protobufNode(w, false) }}, get},
		"discovery": {attack{"/apis", "application/json", false, func(w io.Writer) {
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.org","versions":[`)
			repeated(w, "{},", values)
			_, _ = io.WriteString(w, `{}]}]}`)
		}}, discover},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			b := newBench(t, nil)
			b.connected(a)
			a.server.Config.Handler = a.authenticated(tc.attack.serve(a.server.Config.Handler))
			c, err := b.clusters.Client(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			took := allocates(func() { err = tc.call(b, c) })
			// Discovery joins errors in a way that hides their kinds.
			if f := fault.As(err); (f == nil || f.Reason != reasonMemory) && (name != "discovery" || !strings.Contains(err.Error(), "128 MiB of memory")) {
				t.Errorf("%v", err)
			}
			if took > mostForAttack {
				t.Errorf("%d MiB were allocated", took>>20)
			}
			if h := b.clusters.Health(key); !h.Connected {
				t.Errorf("one call that fails is no reason to disconnect: %+v", h)
			}
		})
	}
}

// crashes is a record for the time after a crash.
type crashes struct {
	mu        sync.Mutex
	decoding  map[client.ObjectKey]int
	heaviest  int64
	suspended time.Time
}

func (c *crashes) Decoding(cluster client.ObjectKey) DecodingMemory {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decoding[cluster]++
	return entryOf{c, cluster}
}

func (c *crashes) SuspendedUntil(client.ObjectKey) time.Time { return c.suspended }

type entryOf struct {
	crashes *crashes
	cluster client.ObjectKey
}

func (e entryOf) Weigh(n int64) {
	e.crashes.mu.Lock()
	defer e.crashes.mu.Unlock()
	e.crashes.heaviest = max(e.crashes.heaviest, n)
}

func (e entryOf) End() {
	e.crashes.mu.Lock()
	defer e.crashes.mu.Unlock()
	e.crashes.decoding[e.cluster]--
}

// The attack as it was found: a watch with three such events. The connection ends, with pauses that grow, and the condition
// names the cause.
func TestBombInWatch(t *testing.T) { // RC-04, RC-06
	const protobuf = "application/vnd.kubernetes.protobuf;stream=watch"
	for name, k := range map[string]attack{
		"JSON": {"/api/v1/nodes", "application/json", true, func(w io.Writer) {
			for _, name := range []string{"a", "b", "c"} {
				_, _ = io.WriteString(w, `{"type":"ADDED","object":`)
				jsonNode(w, name)
				_, _ = io.WriteString(w, "}\n")
			}
		}},
		"protobuf": {"/api/v1/nodes", protobuf, true, func(w io.Writer) {
			var object, raw, frame strings.Builder
			protobufNode(&object, false)
			_, _ = raw.Write(wrapped(1, object.Len()))
			_, _ = raw.WriteString(object.String())
			_, _ = frame.Write(append(wrapped(1, 5), "ADDED"...))
			_, _ = frame.Write(wrapped(2, raw.Len()))
			_, _ = frame.WriteString(raw.String())
			_, _ = w.Write(binary.BigEndian.AppendUint32(nil, uint32(frame.Len())))
			_, _ = io.WriteString(w, frame.String())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			record := &crashes{decoding: map[client.ObjectKey]int{}}
			b := newBench(t, func(c *Config) { c.Crashes = record })
			b.connected(a)
			good := a.server.Config.Handler
			a.server.Config.Handler = a.authenticated(k.serve(good))
			now := t0
			for _, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
				conn, err := b.clusters.connection(key)
				if err != nil {
					t.Fatal(err)
				}
				took := allocates(func() {
					_, _ = b.clusters.Nodes(t.Context(), key, "p://1")
					eventually(t, "the event is refused", func() bool { return conn.excess() != nil })
				})
				if name == "JSON" && took > mostForAttack { // in protobuf, the server is what allocates
					t.Errorf("%d MiB were allocated", took>>20)
				}
				if r := b.reconcile(); r.RequeueAfter != pause {
					t.Errorf("connected again after %s, want %s", r.RequeueAfter, pause)
				}
				h := b.clusters.Health(key)
				if h.Connected || h.IsHealthy() || !strings.Contains(h.Problem, "MiB of memory") || !strings.Contains(h.Problem, "after a pause") {
					t.Errorf("%+v", h)
				}
				now = now.Add(pause)
				b.clock.SetTime(now)
				b.reconcile()
				if !b.clusters.Health(key).Connected {
					t.Fatalf("not connected after the pause: %+v", b.clusters.Health(key))
				}
			}
			record.mu.Lock()
			defer record.mu.Unlock()
			if record.decoding[key] != 0 || record.heaviest < 8<<20 {
				t.Errorf("recorded for the time after a crash: %+v", record)
			}
		})
	}
}

// A cluster that crashed the process before is not connected until its time has come, and says so.
func TestSuspended(t *testing.T) { // RC-01
	a := newAPI(t)
	record := &crashes{decoding: map[client.ObjectKey]int{}, suspended: t0.Add(time.Minute)}
	b := newBench(t, func(c *Config) { c.Crashes = record })
	b.provision()
	b.secret(a.kubeconfig("one"))
	for range 2 {
		if r := b.reconcile(); r.RequeueAfter != time.Minute {
			t.Errorf("reconciled again after %s", r.RequeueAfter)
		}
	}
	want := "the manager crashed while it read a response of this cluster's API server, and reconnects at 2026-01-02T03:05:05Z: " +
		"correct the server that Secret c1-kubeconfig names, or the Secret"
	if h := b.clusters.Health(key); h.Connected || h.Problem != want || a.probes != 0 {
		t.Errorf("%d probes, %+v", a.probes, h)
	}
	b.clock.SetTime(t0.Add(time.Minute))
	b.reconcile()
	if h := b.clusters.Health(key); !h.Connected {
		t.Errorf("%+v", h)
	}
}
