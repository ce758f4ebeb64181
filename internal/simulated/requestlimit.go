package simulated

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits for the clients of one simulated control plane, our choice: one cluster must not use all memory of the
// process.
const (
	requestsAtOnce    = 100 // and the same number of watches
	connectionsAtOnce = 300
)

// limitedHandler is a handler that limits concurrent requests, as api servers do. Watches are counted separately,
// because they are long-running. Each simulated control plane has one.
type limitedHandler struct {
	http.Handler
	requests, watches chan struct{}
}

func newLimitedHandler(next http.Handler) limitedHandler {
	return limitedHandler{next, make(chan struct{}, requestsAtOnce), make(chan struct{}, requestsAtOnce)}
}

func (h limitedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	places := h.requests
	if watch := r.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		places = h.watches
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		h.Handler.ServeHTTP(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(metav1.Status{ // the client may be gone
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusTooManyRequests,
			Reason: metav1.StatusReasonTooManyRequests, Message: "Too many requests at once, retry after a second",
		})
	}
}
