package process

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/plane/ownuser"
	"github.com/slipwayhq/slipway/internal/plane/pki"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// health asks an API server's /readyz over its loopback port.
type health struct {
	folder workload.Folder
	client *http.Client
	asked  time.Time
	ready  bool
	etcd   bool
}

func newHealth(f workload.Folder) *health { return &health{folder: f} }

func (h *health) reset() {
	if h.client != nil {
		h.client.CloseIdleConnections()
	}
	*h = health{folder: h.folder}
}

// ask returns the last answer until it is time for the next question.
func (h *health) ask(ctx context.Context, local string, now time.Time) (ready, etcd bool) {
	every := healthSoon
	if h.ready {
		every = healthEvery
	}
	if local == "" || now.Sub(h.asked) < every {
		return h.ready, h.etcd
	}
	h.asked = now
	h.ready, h.etcd = h.get(ctx, "https://"+local+"/readyz?verbose")
	return h.ready, h.etcd
}

func (h *health) get(ctx context.Context, url string) (ready, etcd bool) {
	if h.client == nil && !h.connect() {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, false
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return false, false
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return err == nil && resp.StatusCode == http.StatusOK, strings.Contains(string(body), "[+]etcd ok")
}

// connect trusts the control plane's own authority alone.
func (h *health) connect() bool {
	data, err := ownuser.Read(string(h.folder), pki.Folder{Path: filepath.Base(h.folder.PKI())}.Cert(workload.CA))
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
