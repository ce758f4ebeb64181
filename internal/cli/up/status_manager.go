package up

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

// managerTimeout is the timeout of requests to a manager. On an overloaded host, a response takes seconds.
const managerTimeout = 10 * time.Second

// probeManager checks whether the running manager responds. The request has no credentials; a rejection is a response
// as well. readAPI calls it, while it sends its own requests.
func (s *statusReport) probeManager(ctx context.Context) {
	if s.Management == nil || s.Management.Manager == nil {
		return
	}
	m := s.Management.Manager
	if m.PID == 0 || m.Diagnostics == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, managerTimeout)
	defer cancel()
	if responds(ctx, m.Diagnostics, datadir.Dir(s.DataDir)) {
		return
	}
	m.Problem = fmt.Sprintf("process %d runs but did not respond within %s: this host is busy, or the manager hangs; \"kill -9 %d\" restarts it", m.PID, managerTimeout, m.PID)
	if management.IsStopped(m.PID) {
		m.Problem = fmt.Sprintf("process %d is stopped by a signal: \"kill -CONT %d\" continues it, \"kill -9 %d\" has it restarted", m.PID, m.PID, m.PID)
	}
}

// responds reports whether the server at a URL, whose certificate the management cluster has signed, sends any
// response. watchLiveness calls it, too.
func responds(ctx context.Context, url string, dir datadir.Dir) bool {
	ca, err := os.ReadFile(dir.Path("pki", "ca.crt"))
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		return true // unknown
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return true
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return ctx.Err() == nil && !os.IsTimeout(err) // the server was there, and is being replaced
	}
	_ = resp.Body.Close()
	return true
}
