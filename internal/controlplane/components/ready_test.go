package components_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/controlplane/components"
)

// A start that is slow is waited for without a limit, and the reason why it is not ready is reported.
func TestAwaitReadyIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := components.NewGroup(t.Context())
		var reasons []string
		err := components.AwaitReady(g, &rest.Config{Transport: slow(began.Add(10 * time.Minute))}, components.ReadyOptions{
			Report: func(reason string) { reasons = append(reasons, reason) },
		})
		if err != nil || time.Since(began) < 10*time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if len(reasons) == 0 || reasons[0] != "poststarthook/rbac/bootstrap-roles, etcd" {
			t.Errorf("reported %q", reasons)
		}
		_ = g.Stop()
	})
}

// slow is a server that is not ready before a time.
type slow time.Time

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if time.Now().Before(time.Time(s)) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.WriteString("[+]ping ok\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n[-]etcd failed: reason withheld\nreadyz check failed\n")
	}
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
