package balancer

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
)

// Checks of members.
const (
	checkEvery   = time.Second
	checkTimeout = 2 * time.Second
	// tolerated is how many checks in a row may go without any answer before a member's connections are closed.
	tolerated = 3
)

// health is what the checks of a member said.
type health struct {
	// answers tells that its API server is ready.
	answers bool
	// problem is why it is not.
	problem string
	// expired is when the certificate expired that it shows, where that is the problem.
	expired string
	// silent counts the checks in a row without any answer.
	silent int
}

// lost reports whether nothing that was sent to the member will be answered.
func (h health) lost() bool { return h.silent >= tolerated }

// check asks all members until the context ends.
func (b *Balancer) check(ctx context.Context) {
	client := &http.Client{
		Timeout: checkTimeout,
		Transport: &http.Transport{
			// The certificate is not looked at: nothing is sent, and what is answered only says where to send connections,
			// whose clients look at it.
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
			DisableKeepAlives: true,
			DialContext:       (&net.Dialer{Timeout: checkTimeout}).DialContext,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for {
		var wait sync.WaitGroup
		for _, m := range b.known() {
			wait.Go(func() { b.note(ctx, m, ask(ctx, client, m, b.now)) })
		}
		wait.Wait()
		if !pause(ctx, checkEvery) {
			return
		}
	}
}

func (b *Balancer) known() []Member {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Member
	for _, m := range b.members {
		out = append(out, m.Member)
	}
	return out
}

// note records what a check said, unless there is another member of the name by now.
func (b *Balancer) note(ctx context.Context, about Member, now health) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.members[about.Name]
	if m == nil || m.Address != about.Address || ctx.Err() != nil {
		return
	}
	if now.silent > 0 {
		now.silent += m.health.silent
	}
	m.health = now
}

// ask asks a member whether it is ready. One that says that the question is not allowed answers. One whose certificate is over is as one that
// does not: clients would refuse it.
func ask(ctx context.Context, client *http.Client, m Member, now func() time.Time) health {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.Address.String()+"/readyz", nil)
	if err != nil {
		return health{problem: err.Error()}
	}
	response, err := client.Do(request)
	if err != nil {
		return health{problem: "its API server does not answer", silent: 1}
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16)
	if at := response.TLS.PeerCertificates[0].NotAfter; now().After(at) {
		expired := at.UTC().Format(time.RFC3339)
		return health{problem: "the certificate of its API server expired on " + expired, expired: expired}
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusUnauthorized, http.StatusForbidden:
		return health{answers: true}
	}
	return health{problem: fmt.Sprintf("its API server is not ready (/readyz: status %d)", response.StatusCode)}
}

// State says which members answer.
func (b *Balancer) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := State{}
	for name, m := range b.members {
		switch {
		case m.gone:
		case m.health.answers:
			s.Answering = append(s.Answering, name)
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
	slices.Sort(s.Answering)
	return s
}
