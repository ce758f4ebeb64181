package workload

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// api is a workload cluster's API over TLS: its version, discovery, Nodes with
// watches, and one Pod.
type api struct {
	server *httptest.Server

	mu     sync.Mutex
	token  string
	status int // answer of GET /version, 0: 200
	probes int
	lists  int
	// discovered counts calls to discovery.
	discovered int
	watchers   map[chan []byte]struct{}
	nodes      []corev1.Node
	version    int
	podUID     string
	stuck      bool // lists of Nodes are refused
	// hang, where set, is what a GET of a Node waits for; begun: after its headers were sent.
	hang  chan struct{}
	begun bool
}

func newAPI(t testing.TB) *api {
	t.Helper()
	a := &api{token: "one", watchers: map[chan []byte]struct{}{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/version", a.release)
	mux.HandleFunc("/api", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "application/json" { // that is a probe
			a.set(func(a *api) { a.discovered++ })
		}
		answer(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	})
	mux.HandleFunc("/apis", func(w http.ResponseWriter, _ *http.Request) {
		a.set(func(a *api) { a.discovered++ })
		answer(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	})
	mux.HandleFunc("/api/v1", func(w http.ResponseWriter, _ *http.Request) {
		a.set(func(a *api) { a.discovered++ })
		answer(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "nodes", Kind: "Node", Verbs: metav1.Verbs{"get", "list", "watch"}},
				{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get"}},
			}})
	})
	mux.HandleFunc("/api/v1/nodes", a.serveNodes)
	mux.HandleFunc("/api/v1/nodes/{name}", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		hang, begun := a.hang, a.begun
		a.mu.Unlock()
		if hang != nil && begun {
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
		}
		if hang != nil {
			<-hang
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, n := range a.nodes {
			if n.Name == r.PathValue("name") {
				answer(w, n)
			}
		}
	})
	mux.HandleFunc("/api/v1/namespaces/{ns}/pods/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
		p.Namespace, p.Name = r.PathValue("ns"), r.PathValue("name")
		a.mu.Lock()
		defer a.mu.Unlock()
		p.UID = typesUID(a.podUID)
		answer(w, p)
	})
	a.server = httptest.NewTLSServer(a.authenticated(mux))
	t.Cleanup(func() { a.server.CloseClientConnections(); a.server.Close() })
	return a
}

func (a *api) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		ok := r.Header.Get("Authorization") == "Bearer "+a.token
		a.mu.Unlock()
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a *api) release(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probes++
	if a.status != 0 {
		w.WriteHeader(a.status)
		return
	}
	answer(w, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"})
}

func (a *api) serveNodes(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: 422})
		return
	}
	if r.URL.Query().Get("watch") == "" {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.lists++
		if a.stuck {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		answer(w, corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(a.version + 1)}, Items: a.nodes})
		return
	}
	events := make(chan []byte, 16)
	a.mu.Lock()
	a.watchers[events] = struct{}{}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.watchers, events)
		a.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-events:
			_, _ = w.Write(e)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func node(name, providerID string) corev1.Node {
	n := corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}}
	n.Name, n.Spec.ProviderID = name, providerID
	n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"big"}}}
	return n
}

// add makes a Node and sends its event.
func (a *api) add(n corev1.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version += 2
	n.ResourceVersion = fmt.Sprint(a.version)
	a.nodes = append(a.nodes, n)
	raw, _ := json.Marshal(n)
	e, _ := json.Marshal(map[string]any{"type": "ADDED", "object": json.RawMessage(raw)})
	for w := range a.watchers {
		w <- e
	}
}

func (a *api) set(f func(*api)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

func (a *api) watching() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.watchers)
}

// kubeconfig for the API with a token.
func (a *api) kubeconfig(token string) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	encoded, _ := json.Marshal(ca)
	return []byte(strings.NewReplacer("SERVER", a.server.URL, "CA", string(encoded), "TOKEN", token).Replace(`
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "SERVER", certificate-authority-data: CA}}]
users: [{name: u, user: {token: "TOKEN"}}]
`))
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
