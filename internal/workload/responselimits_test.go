package workload

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

const protobufStream = mediaProtobuf + ";stream=watch"

func asJSON(t *testing.T, o any) []byte {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func asProtobuf(t *testing.T, o kruntime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// asFrame is an event of a watch in protobuf.
func asFrame(t *testing.T, o kruntime.Object) []byte {
	t.Helper()
	event := &metav1.WatchEvent{Type: "ADDED", Object: kruntime.RawExtension{Raw: asProtobuf(t, o)}}
	data, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}

// measure returns what a meter counts of each document.
func measure(contentType string, stream bool, data []byte, piece int) (documents []tally) {
	var c counting
	c.tally = &tally{}
	c.next = func() {
		documents = append(documents, *c.tally)
		c.tally = &tally{}
	}
	m := newMeter(contentType, stream)
	for rest := data; len(rest) > 0; {
		part := rest[:min(piece, len(rest))]
		m.feed(part, &c)
		rest = rest[len(part):]
	}
	return append(documents, *c.tally)[1:] // before the first there is nothing
}

// bomb is a Pod with very many empty containers: two or three bytes each, and some hundred in memory.
func bomb(n int) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
	p.Spec.Containers = make([]corev1.Container, n)
	return p
}

func emptyJSON(n int) []byte {
	return []byte(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[` + strings.TrimSuffix(strings.Repeat(`{},`, n), ",") + `]}}`)
}

// emptyProtobuf is what an attacker sends: the encoder writes the fields that an empty Container has, he does not.
func emptyProtobuf(t *testing.T, n int) []byte {
	field := func(number int, content []byte) []byte {
		out := binary.AppendUvarint(nil, uint64(number)<<3|2)
		return append(binary.AppendUvarint(out, uint64(len(content))), content...)
	}
	spec := bytes.Repeat(field(2, nil), n)                                                                               // containers
	unknown := append(field(1, append(field(1, []byte("v1")), field(2, []byte("Pod"))...)), field(2, field(2, spec))...) // typeMeta; raw
	data := append([]byte("k8s\x00"), unknown...)
	decoded := &corev1.Pod{}
	if _, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(data, nil, decoded); err != nil || len(decoded.Spec.Containers) != n {
		t.Fatalf("%d containers, %v: the test shows nothing", len(decoded.Spec.Containers), err)
	}
	return data
}

// What is estimated is at least what it takes, at every depth of nesting and in whatever pieces it comes.
func TestMeters(t *testing.T) { // RC-06
	const n = 20_000
	takes := int64(n) * int64(reflect.TypeOf(bomb(1).Spec.Containers[0]).Size())
	pbEvent := func(raw []byte) []byte {
		data, err := (&metav1.WatchEvent{Type: "ADDED", Object: kruntime.RawExtension{Raw: raw}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
	}
	tests := map[string]struct {
		contentType string
		stream      bool
		data        []byte
		documents   int
		least       int64
	}{
		"JSON":                        {"application/json", false, emptyJSON(n), 1, takes},
		"JSON, null":                  {"application/json", false, []byte(`{"spec":{"containers":[` + strings.Repeat("null,", n) + `null]}}`), 1, takes},
		"JSON, no type":               {"", false, emptyJSON(n), 1, takes},
		"JSON, with a parameter":      {"application/json; x=protobuf", false, emptyJSON(n), 1, takes},
		"protobuf":                    {mediaProtobuf, false, emptyProtobuf(t, n), 1, takes},
		"protobuf, no type":           {"", false, emptyProtobuf(t, n), 1, takes},
		"protobuf, capital letters":   {"APPLICATION/vnd.kubernetes.protobuf", false, emptyProtobuf(t, n), 1, takes},
		"JSON events":                 {"application/json", true, bytes.Repeat(append(emptyJSON(n), '\n'), 3), 3, takes},
		"JSON events, no type":        {"", true, bytes.Repeat(emptyJSON(n), 2), 2, takes},
		"protobuf events":             {protobufStream, true, bytes.Repeat(pbEvent(emptyProtobuf(t, n)), 3), 3, takes},
		"protobuf, encoded":           {mediaProtobuf, false, asProtobuf(t, bomb(n)), 1, takes},
		"maps in JSON":                {"application/json", false, []byte(`[` + strings.Repeat(`{"":0},`, n) + `0]`), 1, n * 330},
		"protobuf behind a group":     {protobufStream, true, pbEvent(append([]byte("k8s\x00\x6b\x6c"), emptyProtobuf(t, n)[4:]...)), 1, takes},
		"protobuf in too many levels": {mediaProtobuf, false, append([]byte("k8s\x00"), levels(200, 50_000)...), 1, 25_000 * perElement},
	}
	for name, tc := range tests {
		for _, piece := range []int{1, 7, 4096, len(tc.data)} {
			got := measure(tc.contentType, tc.stream, tc.data, piece)
			if !tc.stream {
				got = []tally{whole(tc.contentType, tc.data, piece)}
			}
			if len(got) != tc.documents {
				t.Errorf("%s in pieces of %d: %d documents, want %d", name, piece, len(got), tc.documents)
			}
			for _, d := range got {
				if d.memory < tc.least {
					t.Errorf("%s in pieces of %d: %d bytes are estimated, want at least %d", name, piece, d.memory, tc.least)
				}
			}
		}
	}
	for _, refused := range []string{"application/yaml", "application/cbor", "application/x-yaml"} {
		if newMeter(refused, false) != nil || newMeter(refused, true) != nil {
			t.Errorf("%s is read", refused)
		}
	}
}

func whole(contentType string, data []byte, piece int) tally {
	c := counting{tally: &tally{}}
	m := newMeter(contentType, false)
	for rest := data; len(rest) > 0; {
		part := rest[:min(piece, len(rest))]
		m.feed(part, &c)
		rest = rest[len(part):]
	}
	return *c.tally
}

// levels are messages in messages, with bytes in the innermost.
func levels(depth, size int) []byte {
	data := bytes.Repeat([]byte{0x0a, 0}, size/2)
	for range depth {
		data = append(binary.AppendUvarint([]byte{0x0a}, uint64(len(data))), data...)
	}
	return data
}

// ordinary is a Node as kubelets make them.
func ordinary() *corev1.Node {
	n := &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-12-34.ec2.internal"}}
	n.Labels, n.Annotations = map[string]string{}, map[string]string{"last-applied": strings.Repeat(`{"metadata":{"name":"a"}}`, 20)}
	for i := range 20 {
		n.Labels[fmt.Sprint("topology.example.org/label-", i)] = "a-value-of-a-label"
	}
	for _, kind := range []string{"Ready", "DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable"} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: "False",
			Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"})
	}
	for i := range 50 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: 1 << 30,
			Names: []string{fmt.Sprintf("registry.example.org/team/image-%d@sha256:%064d", i, i), fmt.Sprintf("registry.example.org/team/image-%d:v1", i)}})
	}
	return n
}

// The estimates leave room for ordinary clusters: 2000 Nodes in one list, and 5000 in the events of a watch, with 8 GiB for
// the manager.
func TestOrdinaryAnswersAreRead(t *testing.T) { // RC-06
	limits, share := defaultLimits(), newAccounts(8<<30).cluster
	node := ordinary()
	list := &corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}}
	for range 2000 {
		list.Items = append(list.Items, *node)
	}
	for form, d := range map[string]tally{
		"JSON": whole("application/json", asJSON(t, list), 4096), "protobuf": whole(mediaProtobuf, asProtobuf(t, list), 4096),
	} {
		t.Logf("%s: %d KiB of memory are estimated for a Node of %d bytes", form, d.memory/2000>>10, d.bytes/2000)
		if d.memory > limits.Memory || d.memory > share || d.bytes > limits.Bytes {
			t.Errorf("%s: %d MiB of memory, %d MiB", form, d.memory>>20, d.bytes>>20)
		}
	}
	for _, d := range measure(protobufStream, true, bytes.Repeat(asFrame(t, node), 3), 4096) {
		if d.memory > 256<<10 {
			t.Errorf("%d KiB for the event of one Node", d.memory>>10)
		}
	}
	node.Status.Images, node.ManagedFields = nil, nil
	if size := sizeOf(reflect.ValueOf(node)); size < 4<<10 || size*5000 > share {
		t.Errorf("%d bytes are charged for a Node in a cache", size)
	}
}

// server is a transport that answers without a network.
type server func(r *http.Request) (contentType string, body io.Reader)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	contentType, body := s(r)
	header := http.Header{"Content-Type": []string{contentType}, "Retry-After": []string{"3600"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(body)}, nil
}

// answersEndless repeats itself.
type answersEndless struct {
	piece []byte
	sent  int
}

func (e *answersEndless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m := copy(p[n:], e.piece[e.sent%len(e.piece):])
		n, e.sent = n+m, e.sent+m
	}
	return n, nil
}

func request(t *testing.T, ctx context.Context, transport http.RoundTripper, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func reasonOf(err error) string {
	if f := fault.As(err); f != nil {
		return f.Reason
	}
	return fmt.Sprint(err)
}

const (
	nodesURL = "https://x/api/v1/nodes"
	watchURL = nodesURL + "?watch=true"
)

// An answer without end is read up to the limit, whatever it consists of; and the events of a watch one by one, without end.
func TestEndlessAnswers(t *testing.T) { // RC-04, RC-06
	tests := map[string]struct {
		url, contentType string
		piece            []byte
		most             int
	}{
		"elements":           {nodesURL, "application/json", []byte(`{},`), 4 << 20},
		"text":               {nodesURL, "application/json", []byte(`x`), 48 << 20},
		"discovery":          {"https://x/apis", "application/json", []byte(`{"versions":[{},{},{}]},`), 4 << 20},
		"messages":           {nodesURL, mediaProtobuf, []byte{0x12, 0}, 4 << 20},
		"event":              {watchURL, "application/json", []byte(`{},`), 4 << 20},
		"event of one frame": {watchURL, protobufStream, append([]byte{0xff, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{0x12, 0}, 1<<20)...), 8 << 20},
	}
	for name, tc := range tests {
		accounts := newAccounts(1 << 30)
		account := accounts.ForCluster(client.ObjectKey{Namespace: "team-a", Name: "s1"})
		hostile := &answersEndless{piece: tc.piece}
		open := []byte(`{"items":[`)
		if tc.contentType != "application/json" {
			open = nil
		}
		transport := &limitingTransport{Limits: defaultLimits(), Account: account, Next: server(func(*http.Request) (string, io.Reader) {
			return tc.contentType, io.MultiReader(bytes.NewReader(open), hostile)
		})}
		resp := request(t, t.Context(), transport, tc.url)
		_, err := io.Copy(io.Discard, resp.Body)
		if reason := reasonOf(err); reason != reasonTooLarge && reason != reasonMemory || hostile.sent > tc.most {
			t.Errorf("%s: %v after %d bytes", name, err, hostile.sent)
		}
		if _, again := resp.Body.Read(make([]byte, 10)); reasonOf(again) != reasonOf(err) {
			t.Errorf("%s: it goes on with %v", name, again)
		}
		if used := account.used(); used != 0 || resp.Body.Close() != nil {
			t.Errorf("%s: %d bytes stay charged", name, used)
		}
	}
	small := &io.LimitedReader{R: &answersEndless{piece: append(asJSON(t, map[string]any{"type": "ADDED", "object": ordinary()}), '\n')}, N: 64 << 20}
	transport := &limitingTransport{Limits: defaultLimits(), Account: newAccounts(0).ForCluster(client.ObjectKey{}), Next: server(func(*http.Request) (string, io.Reader) {
		return "application/json", small
	})}
	resp := request(t, t.Context(), transport, watchURL)
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != 64<<20 || resp.Header.Get("Retry-After") != "" {
		t.Errorf("a long watch ended after %d bytes: %v, headers %v", n, err, resp.Header)
	}
}

// decoding is a record of what is decoded.
type decoding struct {
	weight int64
	ended  bool
}

func (d *decoding) Weigh(n int64) { d.weight = n }
func (d *decoding) End()          { d.ended = true }

// What is decoded is charged until the call has ended, and recorded where it is much.
func TestCalls(t *testing.T) { // RC-06
	account := newAccounts(0).ForCluster(client.ObjectKey{Namespace: "team-a", Name: "s1"})
	var records []*decoding
	data := emptyJSON(100_000)
	transport := &limitingTransport{
		Limits: defaultLimits(), Account: account, Next: server(func(*http.Request) (string, io.Reader) { return "application/json", bytes.NewReader(data) }),
		Decoding: func() DecodingMemory {
			records = append(records, &decoding{})
			return records[len(records)-1]
		},
	}
	ctx, end := beginResponse(t.Context())
	resp := request(t, ctx, transport, nodesURL)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if used := account.used(); used < 40<<20 || len(records) != 1 || records[0].ended || records[0].weight < 40<<20 {
		t.Errorf("%d bytes charged while it is decoded, %+v", used, records)
	}
	end()
	if used := account.used(); used != 0 || !records[0].ended {
		t.Errorf("%d bytes charged afterwards, %+v", used, records[0])
	}
}

// A namespace has a limit over all of its clusters, all clusters have one, and who exceeds it is not who has little.
func TestAccounts(t *testing.T) { // RC-06
	a := newAccounts(8 << 30) // 1 GiB for a cluster, 2 for a namespace, 4 for all
	of := func(namespace, name string) *memoryAccount {
		return a.ForCluster(client.ObjectKey{Namespace: namespace, Name: name})
	}
	for _, step := range []struct {
		account *memoryAccount
		mib     int64
		want    string // in the message; empty: charged
	}{
		{of("a", "1"), 1024, ""},
		{of("a", "1"), 1, "for one cluster"},
		{of("a", "2"), 1024, ""},
		{of("a", "3"), 1, "of namespace a"},
		{of("b", "1"), 1024, ""},
		{of("b", "2"), 1023, ""},
		{of("b", "3"), 2, "of namespace b"},
		{of("c", "1"), 100, ""},
		{of("b", "2"), 1, "an equal share"},
		{of("c", "1"), 100, ""},
	} {
		err := step.account.charge(step.mib << 20)
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%s, %d MiB: %v, want %q", step.account.key, step.mib, err, step.want)
		}
	}
	if small := newAccounts(64 << 20); small.cluster != leastShare {
		t.Errorf("%d", small.cluster)
	}
}

// What a cache holds is charged until it is garbage, once for each object.
func TestRetain(t *testing.T) { // RC-06
	account := newAccounts(0).ForCluster(client.ObjectKey{Namespace: "team-a", Name: "s1"})
	pod := bomb(10_000)
	account.Retain(pod)
	first := account.used()
	account.Retain(pod)
	if again := account.used(); first < 4<<20 || again != first {
		t.Errorf("%d bytes, then %d", first, again)
	}
	runtime.KeepAlive(pod)
	pod = nil
	for try := 0; account.used() != 0; try++ {
		if try == 1000 {
			t.Fatalf("%d bytes stay charged", account.used())
		}
		runtime.GC()
		runtime.Gosched()
	}
	if len(account.accounts.retained)+len(account.accounts.clusters)+len(account.accounts.namespaces) != 0 || account.accounts.total != 0 {
		t.Errorf("%+v", account.accounts)
	}
}

// The attack of the review in small: gzip makes it nothing on the wire.
func TestCompressed(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(emptyJSON(5_000_000))
	_ = w.Close()
	if packed.Len() > 64<<10 {
		t.Errorf("%d bytes: the attack is not what it was", packed.Len())
	}
	unpacked, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	transport := &limitingTransport{Limits: defaultLimits(), Account: newAccounts(0).ForCluster(client.ObjectKey{}), Next: server(func(*http.Request) (string, io.Reader) {
		return "application/json", unpacked
	})}
	n, err := io.Copy(io.Discard, request(t, t.Context(), transport, watchURL).Body)
	if reasonOf(err) != reasonMemory || n > 2<<20 {
		t.Errorf("%v after %d bytes", err, n)
	}
}
