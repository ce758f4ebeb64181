package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipwayhq/slipway/internal/fault"
)

// encoded is a list of empty Nodes in the two forms that clients of Kubernetes read.
func encoded(t *testing.T, items int) (asJSON, asProtobuf []byte) {
	t.Helper()
	list := &corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: make([]corev1.Node, items)}
	for i := range list.Items {
		list.Items[i].Name = fmt.Sprint("n", i)
		list.Items[i].Annotations = map[string]string{"a": `{"[{\"`}
		list.Items[i].Status.Conditions = []corev1.NodeCondition{{Type: "Ready"}, {Type: "DiskPressure"}}
	}
	asJSON, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(kruntime.Object(list), &out); err != nil {
		t.Fatal(err)
	}
	return asJSON, out.Bytes()
}

// Objects are counted while they are read, in whatever pieces they come.
func TestCounters(t *testing.T) { // RC-06
	asJSON, asProtobuf := encoded(t, 300)
	stream := strings.Repeat(`{"type":"ADDED","object":{"a":["{",{}]}}`+"\n", 7)
	frames := bytes.Repeat([]byte{0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0}, 5)
	empty := append([]byte("k8s\x00\x12\xac\x02"), bytes.Repeat([]byte{0x12, 0}, 150)...) // two bytes each
	for name, tc := range map[string]struct {
		contentType string
		stream      bool
		data        []byte
		least, most int
	}{
		"JSON":         {"application/json", false, asJSON, 300, 301}, // and an array in the metadata, at most
		"protobuf":     {"application/vnd.kubernetes.protobuf", false, asProtobuf, 300, 300},
		"tiny":         {"application/vnd.kubernetes.protobuf", false, empty, 150, 150},
		"JSON events":  {"application/json", true, []byte(stream), 7, 7},
		"frames":       {"application/vnd.kubernetes.protobuf;stream=watch", true, frames, 10, 10},
		"no such form": {"", false, asJSON, 300, 301},
	} {
		for _, piece := range []int{1, 3, 4096, len(tc.data)} {
			c, n := newCounter(tc.contentType, tc.stream), 0
			for rest := tc.data; len(rest) > 0; {
				size := min(piece, len(rest))
				n += c.feed(rest[:size])
				rest = rest[size:]
			}
			if n < tc.least || n > tc.most {
				t.Errorf("%s in pieces of %d: %d objects, want %d", name, piece, n, tc.least)
			}
		}
	}
}

// endless answers with the same piece until the client hangs up, and counts what it sent.
type endless struct {
	piece string
	sent  atomic.Int64
}

func (e *endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for r.Context().Err() == nil {
		n, err := io.WriteString(w, e.piece)
		if e.sent.Add(int64(n)); err != nil {
			return
		}
	}
}

func tooLarge(err error) bool {
	f := fault.As(err)
	return f != nil && f.Reason == ReasonTooLarge
}

// A watch that brings ever more objects ends, and a new list begins to count again.
func TestHostileWatch(t *testing.T) { // RC-06
	events := &endless{piece: `{"type":"ADDED","object":{}}` + "\n"}
	b := newBounded(handlerTransport{events}, Limits{Bytes: 1 << 20, Objects: 10, WatchedBytes: 1 << 20, WatchedObjects: 500})
	get := func(url string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		n, err := io.Copy(io.Discard, resp.Body)
		if n > 1<<20 {
			t.Errorf("%d bytes were read", n)
		}
		return err
	}
	const nodes = "https://x/api/v1/nodes"
	for range 2 { // a watch that follows another goes on counting
		if err := get(nodes + "?watch=true"); !tooLarge(err) {
			t.Errorf("a watch: %v", err)
		}
	}
	if n := b.watched["/api/v1/nodes"].objects; n < 500 || n > 3000 {
		t.Errorf("%d objects were counted", n)
	}
	if err := get(nodes); !tooLarge(err) || len(b.watched) != 0 {
		t.Errorf("a list: %v, and %d watches are remembered", err, len(b.watched))
	}
	if err := get(nodes + "?watch=1&sendInitialEvents=true"); !tooLarge(err) {
		t.Errorf("a list by a watch: %v", err)
	}
}

// handlerTransport answers without a network.
type handlerTransport struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	go func() {
		h.ServeHTTP(pipeWriter{writer, http.Header{}}, r)
		_ = writer.Close()
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": []string{"application/json"}}, Body: reader}, nil
}

type pipeWriter struct {
	io.Writer
	header http.Header
}

func (w pipeWriter) Header() http.Header { return w.header }

func (w pipeWriter) WriteHeader(int) {}
