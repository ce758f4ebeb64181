package simulated

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Faults is what is wrong with a simulated control plane on purpose.
type Faults struct {
	// Down is how long the API server does not answer, from when it was first requested; negative: until the fault is removed.
	// Zero: it answers.
	Down time.Duration
	// Slow is how long every request waits before it is answered.
	Slow time.Duration
	// Status is the code of the HTTP error that answers every request, for example 500; zero: no error.
	Status int
}

// faults are the faults as they are now.
type faults struct {
	now func() time.Time

	mu     sync.Mutex
	wanted Faults
	// until is when the API server answers again; zero: it does, or never does.
	until time.Time
}

// set changes the faults. It returns when the status changes again: negative: never, zero: it has not changed.
func (f *faults) set(wanted Faults) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.wanted
	f.wanted = wanted
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
	return f.wanted
}

func (f *faults) down() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wanted.Down < 0 || f.now().Before(f.until)
}

func (f *faults) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wanted.Slow
}

// answer is the status of the error that answers every request; zero: none does.
func (f *faults) answer() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wanted.Status
}

// failing is a handler that answers with errors while the cluster is to do so. Watches that are open stay open.
type failing struct {
	http.Handler
	faults *faults
}

// ServeHTTP implements http.Handler.
func (h failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code := h.faults.answer()
	if code == 0 {
		h.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // who asked may be gone
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code),
		Message: "an annotation makes the API server answer with errors",
	})
}
