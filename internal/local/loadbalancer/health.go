package loadbalancer

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/pause"
)

// Intervals and limits of the health checks of members, chosen by Slipway.
const (
	checkEvery   = time.Second
	checkTimeout = 2 * time.Second
	// maxMissedChecks is the number of consecutive checks without a response after which a member's connections are
	// closed.
	maxMissedChecks = 3
)

// health is the result of a member's health checks.
type health struct {
	// ready is set if the API server is ready.
	ready bool
	// problem is the reason why it is not ready.
	problem string
	// expired is the expiry time of the certificate, if it has expired.
	expired string
	// missedChecks counts the consecutive checks without a response.
	missedChecks int
}

// isLost reports whether the member does not respond any more. balancer.sweep closes the connections of lost members.
func (h health) isLost() bool { return h.missedChecks >= maxMissedChecks }

// check checks the health of all members until the context ends. The load balancer process runs it beside the
// forwarding of connections.
func (b *balancer) check(ctx context.Context) {
	client := &http.Client{
		Timeout: checkTimeout,
		Transport: &http.Transport{
			// The certificate is not verified: the request contains nothing confidential, and its result only selects a
			// member for connections, whose clients verify the certificate.
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
			DisableKeepAlives: true,
			DialContext:       (&net.Dialer{Timeout: checkTimeout}).DialContext,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for {
		var wait sync.WaitGroup
		for _, m := range b.currentMembers() {
			wait.Go(func() { b.recordHealth(ctx, m, checkReady(ctx, client, m, b.now)) })
		}
		wait.Wait()
		if pause.Sleep(ctx, checkEvery) != nil {
			return
		}
	}
}

func (b *balancer) currentMembers() []Member {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Member
	for _, m := range b.members {
		out = append(out, m.Member)
	}
	return out
}

// recordHealth records the result of a check, unless another member has the name in the meantime.
func (b *balancer) recordHealth(ctx context.Context, about Member, now health) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.members[about.Name]
	if m == nil || m.Address != about.Address || ctx.Err() != nil {
		return
	}
	if now.missedChecks > 0 {
		now.missedChecks += m.health.missedChecks
	}
	m.health = now
}

// checkReady checks whether a member is ready. A response that denies access counts as ready. An expired certificate
// counts as not ready, because clients would reject it.
func checkReady(ctx context.Context, client *http.Client, m Member, now func() time.Time) health {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.Address.String()+"/readyz", nil)
	if err != nil {
		return health{problem: err.Error()}
	}
	response, err := client.Do(request)
	if err != nil {
		return health{problem: "its API server does not answer", missedChecks: 1}
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16)
	if at := response.TLS.PeerCertificates[0].NotAfter; now().After(at) {
		expired := at.UTC().Format(time.RFC3339)
		return health{problem: "the certificate of its API server expired on " + expired, expired: expired}
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusUnauthorized, http.StatusForbidden:
		return health{ready: true}
	}
	return health{problem: fmt.Sprintf("its API server is not ready (/readyz: status %d)", response.StatusCode)}
}

// State returns the health of the members. balancer.follow writes it to state.json.
func (b *balancer) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := State{}
	for name, m := range b.members {
		switch {
		case m.gone:
		case m.health.ready:
			s.Healthy = append(s.Healthy, name)
		case m.health.problem != "":
			if s.Problems == nil {
				s.Problems, s.Expired = map[string]string{}, map[string]string{}
			}
			s.Problems[name] = m.health.problem
			if m.health.expired != "" {
				s.Expired[name] = m.health.expired
			}
		}
	}
	slices.Sort(s.Healthy)
	return s
}
