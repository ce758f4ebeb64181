package supervisor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// checkWithin is the timeout of a health check, the same as in kubeadm.
const checkWithin = 15 * time.Second

// healthResult is the result of a health check.
type healthResult struct {
	ready     bool // /readyz succeeds
	etcd      bool // the etcd check of /readyz succeeds
	live      bool // /livez succeeds
	responded bool // the server responded, successfully or not
}

// health checks the API server of one control plane at its loopback port, one check at a time, without blocking the
// supervision loop, which calls check in each iteration.
type health struct {
	folder processconfig.Folder
	done   func() // called after each check

	mu      sync.Mutex
	client  *http.Client
	asked   time.Time
	running context.CancelFunc // nil if no check is running
	last    healthResult
	fresh   bool          // not returned yet
	was     bool          // it has been ready
	took    time.Duration // duration of the last check
}

// newHealth returns checks for the control plane in a directory. newLoop calls it.
func newHealth(f processconfig.Folder, done func()) *health { return &health{folder: f, done: done} }

// reset discards the state of the previous process. The supervision loop calls it.
func (h *health) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running != nil {
		h.running()
	}
	if h.client != nil {
		h.client.CloseIdleConnections()
	}
	h.client, h.asked, h.running, h.last, h.fresh, h.was, h.took = nil, time.Time{}, nil, healthResult{}, false, false, 0
}

// check returns the last result and whether it is new. It starts the next check if it is due. The supervision loop
// calls it.
func (h *health) check(ctx context.Context, local string, now time.Time) (last healthResult, fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	every := healthSoon
	if h.was {
		every = healthEvery
	}
	every = max(every, h.took) // avoids additional load on a slow server
	last, fresh, h.fresh = h.last, h.fresh, false
	if local == "" || h.running != nil || now.Sub(h.asked) < every || h.client == nil && !h.connect() {
		return last, fresh
	}
	h.asked = now
	ctx, cancel := context.WithCancel(ctx)
	h.running = cancel
	go func(client *http.Client) {
		defer cancel()
		began := time.Now()
		a := probeHealth(ctx, client, "https://"+local)
		h.mu.Lock()
		forgotten := ctx.Err() != nil
		if !forgotten {
			h.running, h.last, h.fresh, h.was, h.took = nil, a, true, h.was || a.ready, time.Since(began)
		}
		h.mu.Unlock()
		if !forgotten {
			h.done()
		}
	}(h.client)
	return last, fresh
}

// probeHealth reads /readyz and, if it fails, /livez.
func probeHealth(ctx context.Context, client *http.Client, server string) (a healthResult) {
	ready, body, answered := get(ctx, client, server+"/readyz?verbose")
	a = healthResult{ready: ready, live: ready, responded: answered, etcd: strings.Contains(body, "[+]etcd ok")}
	if !ready {
		a.live, _, answered = get(ctx, client, server+"/livez")
		a.responded = a.responded || answered
	}
	return a
}

func get(ctx context.Context, client *http.Client, url string) (good bool, body string, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, "", false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, "", false
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return err == nil && resp.StatusCode == http.StatusOK, string(text), err == nil
}

// connect creates a client that only trusts the CA of the control plane.
func (h *health) connect() bool {
	data, err := uidisolation.Read(string(h.folder), pki.Folder{Path: filepath.Base(h.folder.PKI())}.Cert(processconfig.CA))
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return false
	}
	h.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
		Proxy:             nil,
	}}
	return true
}
