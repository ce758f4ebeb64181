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
	// mostConversion is the largest review of a conversion: the API server sends all objects of a list in one.
	mostConversion = 64 << 20
	// mostAdmission is the largest review of an admission: an object of 3 MB, as it is and as it was, and what is around them.
	mostAdmission = 8 << 20
	// mostInFlight is how much all requests that are read and answered at the same time may have in their bodies. What is decoded takes
	// several times as much.
	mostInFlight = 2 * mostConversion
	// turnTimeout is how long a request waits for others: the API server gives up after that.
	turnTimeout = callTimeoutSeconds * time.Second
	// bodyTimeout is how long a client may take to send its request once it is its turn.
	bodyTimeout = 30 * time.Second
)

// gate is what stands before the handlers.
type gate struct {
	bodies *semaphore.Weighted
	// caller is the name in the certificate of the only client that is served; empty: every client is.
	caller string
}

func newGate(caller string) *gate {
	return &gate{bodies: semaphore.NewWeighted(mostInFlight), caller: caller}
}

// before returns a handler that refuses who may not call, bodies of more than most bytes, and what would be too much at the same time.
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
		if size < 0 { // it is not known before it is read
			size = most
		}
		ctx, cancel := context.WithTimeout(r.Context(), turnTimeout)
		err := g.bodies.Acquire(ctx, size)
		cancel()
		if err != nil {
			http.Error(w, "too many large reviews at the same time", http.StatusTooManyRequests)
			return
		}
		defer g.bodies.Release(size)
		// Recorders of tests and some middleware know no deadlines; the servers of the manager do.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		limited.ServeHTTP(w, r)
	})
}

// serves reports whether the client of a connection is the caller.
func (g *gate) serves(connection *tls.ConnectionState) bool {
	if g.caller == "" {
		return true
	}
	return connection != nil && len(connection.VerifiedChains) > 0 && connection.VerifiedChains[0][0].Subject.CommonName == g.caller
}

// VerifyCallers lets clients show a certificate of the authority (PEM), which [Options].Caller is about.
func VerifyCallers(authority []byte) func(*tls.Config) {
	return func(config *tls.Config) {
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(authority)
	}
}
