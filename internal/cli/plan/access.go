package plan

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

const (
	// accessRetry is the time after a failure in which no request is sent to the manager.
	accessRetry = 10 * time.Second
	// maxMetricsBytes is the maximum size of the metrics in bytes.
	maxMetricsBytes = 16 << 20
)

// managerAccess reads plans and metrics of the manager of a management cluster for a process that runs for a long time.
// It finds the manager again after it was restarted. It is safe for concurrent use. The ui command has one for each
// management cluster (ui.go).
type managerAccess struct {
	find func() (*managerClient, error)
	now  func() time.Time

	mu     sync.Mutex
	client *managerClient
	failed error
	until  time.Time
}

// addAccessFlags adds the flags that select a manager. The returned function creates the access for a connection; the
// flags apply to it unless direct is false, because one URL cannot be the manager of several management clusters.
func addAccessFlags(set *pflag.FlagSet) func(e term.Env, connection *management.Flags, c *management.Connection, direct bool) *managerAccess {
	chosen := addFlags(set, nil)
	return func(e term.Env, connection *management.Flags, c *management.Connection, direct bool) *managerAccess {
		return &managerAccess{now: e.Now, find: func() (*managerClient, error) {
			f := managerFlags{connection: connection}
			if direct {
				f = *chosen
				f.connection = connection
			}
			return f.newClient(e, c)
		}}
	}
}

// get returns the client, or the last error for some time after a failure.
func (a *managerAccess) get() (*managerClient, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil || a.now().Before(a.until) {
		return a.client, a.failed
	}
	a.client, a.failed = a.find()
	a.until = a.now().Add(accessRetry)
	return a.client, a.failed
}

// fail records a failed request, so that the manager is found again after some time.
func (a *managerAccess) fail(err error) error {
	if fault.KindOf(err) == fault.Unreachable {
		a.mu.Lock()
		a.client, a.failed, a.until = nil, err, a.now().Add(accessRetry)
		a.mu.Unlock()
	}
	return err
}

// Plans returns the last plans of an object, also in the form of package rootcause, and false if the manager has none.
func (a *managerAccess) Plans(ctx context.Context, of rootcause.Ref) (records []manager.PlanRecord, plans []rootcause.Plan, found bool, err error) {
	m, err := a.get()
	if err != nil {
		return nil, nil, false, err
	}
	last, err := m.readPlans(ctx, objectReference{of.GroupKind(), client.ObjectKey{Namespace: of.Namespace, Name: of.Name}})
	if fault.KindOf(err) == fault.Gone {
		return nil, nil, false, nil
	}
	if err != nil {
		return nil, nil, false, a.fail(err)
	}
	return last.Plans, causePlans(last), true, nil
}

// Metrics returns the metrics of the manager in the text format of Prometheus.
func (a *managerAccess) Metrics(ctx context.Context) ([]byte, error) {
	m, err := a.get()
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := m.client.Do(r)
	if cause := ctx.Err(); err != nil && cause != nil {
		return nil, cause // the manager is not to blame
	}
	if err != nil {
		return nil, a.fail(fault.New(fault.Unreachable, "ManagerNotRunning", "the manager at %s cannot be reached", m.url).From(err))
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, fault.New(fault.Invalid, "NotAuthenticated", "the manager at %s did not authenticate the request for /metrics: use a kubeconfig with a token, for example from \"kubectl create token\"", m.url)
	case http.StatusForbidden:
		return nil, fault.New(fault.Invalid, reasonNotAllowed, "you may not read /metrics of the manager at %s: `slipway docs metrics` has the ClusterRole", m.url)
	default:
		return nil, fault.New(fault.Unreachable, "ManagerFailed", "the manager at %s returned status %d", m.url, response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxMetricsBytes))
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	return data, nil
}
