package simulated

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Requests beyond those that are answered at once are refused, and watches do not take their places.
func TestCrowded(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	h := newLimitedHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-leave
	}))
	var wait sync.WaitGroup
	serve := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	for _, path := range []string{"/api/v1/nodes", "/api/v1/nodes?watch=true"} {
		for range requestsAtOnce {
			wait.Go(func() {
				if code := serve(path); code != http.StatusOK {
					t.Errorf("%s: status %d", path, code)
				}
			})
			<-inside
		}
		if code := serve(path); code != http.StatusTooManyRequests {
			t.Errorf("%s: one too many: status %d", path, code)
		}
	}
	close(leave)
	wait.Wait()
	go func() { <-inside }()
	if code := serve("/api/v1/nodes"); code != http.StatusOK {
		t.Errorf("afterwards: status %d", code)
	}
}
