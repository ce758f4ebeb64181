package simulated

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Faults are failures of a simulated control plane, which users request with annotations to test how clusters react.
// The backend of simulated HostedControlPlanes passes them to [Server.SetFaults].
type Faults struct {
	// Down is how long the api server is unreachable, counted from the first request for this fault. Negative: until
	// the fault is removed. Zero: it is reachable.
	Down time.Duration
	// Slow is the delay of every response.
	Slow time.Duration
	// Status is the code of an HTTP error that is returned to every request, for example 500. Zero: no error.
	Status int
}

// faults is the current state of the faults. The handlers and the listener of the cluster read it for each request and
// connection.
type faults struct {
	now func() time.Time

	mu      sync.Mutex
	desired Faults
	// until is when the api server becomes reachable again. It is zero if it is reachable or stays down.
	until time.Time
}

// set changes the faults. It returns the time until the status changes again; negative: it does not change again, zero:
// it has not changed now. [Server.SetFaults] calls it and notifies the subscribers of changes of the status.
func (f *faults) set(wanted Faults) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.desired
	f.desired = wanted
	if before.Down == wanted.Down {
		return 0
	}
	f.until = time.Time{}
	if wanted.Down > 0 {
		f.until = f.now().Add(wanted.Down)
		return wanted.Down
	}
	return -1
}

func (f *faults) current() Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.desired
}

// down reports whether the api server is unreachable now.
func (f *faults) down() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.desired.Down < 0 || f.now().Before(f.until)
}

func (f *faults) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.desired.Slow
}

// statusCode is the status code of the error that is returned to every request, or zero.
func (f *faults) statusCode() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.desired.Status
}

// failingHandler is a handler that returns errors while the fault is active. Open watches are not interrupted.
type failingHandler struct {
	http.Handler
	faults *faults
}

func (h failingHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code := h.faults.statusCode()
	if code == 0 {
		h.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // the client may be gone
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code),
		Message: "an annotation makes the API server answer with errors",
	})
}
