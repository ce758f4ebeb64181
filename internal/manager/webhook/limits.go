package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxConversionBytes is the maximum size of a conversion review. The API server sends all objects of a list
	// in one review.
	maxConversionBytes = 64 << 20
	// maxAdmissionBytes is the maximum size of an admission review. It has room for the new and the old object,
	// of 3 MB each.
	maxAdmissionBytes = 8 << 20
	// maxBytesInFlight limits the total body size of concurrent requests. Decoded objects take several times as
	// much memory.
	maxBytesInFlight = 2 * maxConversionBytes
	// queueTimeout limits how long a request waits for other requests, because the API server gives up after
	// this time.
	queueTimeout = callTimeoutSeconds * time.Second
	// bodyTimeout limits how long a client may take to send the body after it was admitted.
	bodyTimeout = 30 * time.Second
)

// gate authenticates callers and limits requests of all webhook handlers. [Register] puts it before each of them.
type gate struct {
	bodies *semaphore.Weighted
	// caller is the common name in the client certificate of the only permitted client. If empty, all clients
	// are permitted.
	caller string
}

// newGate returns the gate that all handlers of a server share. [Register] creates it.
func newGate(caller string) *gate {
	return &gate{bodies: semaphore.NewWeighted(maxBytesInFlight), caller: caller}
}

// before returns a handler that rejects clients that may not call, bodies larger than most bytes, and
// requests beyond the total limit. [Register] wraps each handler with it.
func (g *gate) before(handler http.Handler, most int64) http.Handler {
	limited := http.MaxBytesHandler(handler, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.serves(r.TLS) {
			http.Error(w, "only the API server of this management cluster is served: a client certificate of "+g.caller+" is required", http.StatusUnauthorized)
			return
		}
		size := r.ContentLength
		if size > most {
			http.Error(w, fmt.Sprintf("the review has %d bytes, and %d are read at most: list fewer objects at once", size, most), http.StatusRequestEntityTooLarge)
			return
		}
		if size < 0 { // the size is unknown until the body is read
			size = most
		}
		ctx, cancel := context.WithTimeout(r.Context(), queueTimeout)
		err := g.bodies.Acquire(ctx, size)
		cancel()
		if err != nil {
			http.Error(w, "too many large reviews at the same time", http.StatusTooManyRequests)
			return
		}
		defer g.bodies.Release(size)
		// Response recorders in tests and some middleware do not support deadlines. The servers of the
		// manager do.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		limited.ServeHTTP(w, r)
	})
}

// serves reports whether the client of a connection is the permitted caller.
func (g *gate) serves(connection *tls.ConnectionState) bool {
	if g.caller == "" {
		return true
	}
	return connection != nil && len(connection.VerifiedChains) > 0 && connection.VerifiedChains[0][0].Subject.CommonName == g.caller
}

// VerifyCallers makes the server verify client certificates of the CA (PEM), which [Options].Caller needs. The manager
// calls it for its webhook server if only the API server may call.
func VerifyCallers(authority []byte) func(*tls.Config) {
	return func(config *tls.Config) {
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(authority)
	}
}
