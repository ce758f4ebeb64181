package plan

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// requestTimeout is the timeout of requests to the manager, and maxResponseBytes the maximum size of a response in
// bytes.
const (
	requestTimeout   = 15 * time.Second
	maxResponseBytes = 1 << 20
)

// reasonNotAllowed is the reason of the error for a user that may not read the plans of an object.
const reasonNotAllowed = "NotAllowed"

// managerFlags select the manager whose plans and metrics are read. The commands explain and ui have these flags. For
// ui, connection is set for each management cluster (access.go).
type managerFlags struct {
	// URL is the base URL of the manager's diagnostics; empty: the URL from the data directory.
	URL string
	// CA is the path of the certificate authority of the URL; empty: the authority of the management cluster.
	CA string
	// Insecure trusts any certificate on loopback, for tunnels.
	Insecure bool

	connection *management.Flags
}

// addFlags adds the flags that select a manager, for the explain and ui commands.
func addFlags(set *pflag.FlagSet, connection *management.Flags) *managerFlags {
	f := &managerFlags{connection: connection}
	set.StringVar(&f.URL, "manager", "", "https URL of the diagnostics of the manager (default: the URL of the manager of the data directory)")
	set.StringVar(&f.CA, "manager-ca", "", "path to the CA certificate for this URL (default: the CA of the management cluster)")
	set.BoolVar(&f.Insecure, "manager-insecure", false, "trust any certificate at this URL; only for an address of this machine, such as the local end of \"kubectl port-forward\"")
	return f
}

// managerClient is the connection to a running manager, for plans and metrics. [planReader] has one for explain, and
// [managerAccess] for ui.
type managerClient struct {
	url    string
	client *http.Client
}

// newClient returns a client of the manager that the flags select, with the credentials of the connection. It sends no
// request.
func (f *managerFlags) newClient(e term.Env, c *management.Connection) (*managerClient, error) {
	address := f.URL
	if address == "" {
		var err error
		if address, err = f.ofDataDir(e, c); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fault.New(fault.Invalid, "Usage", "--manager %q is not an https URL, such as https://127.0.0.1:8443", address)
	}
	cfg := rest.CopyConfig(c.Config)
	cfg.Timeout, cfg.ServerName, cfg.Proxy = requestTimeout, "", nil
	switch {
	case f.Insecure && !isLoopback(u.Hostname()):
		return nil, fault.New(fault.Invalid, "Usage",
			"--manager-insecure is only for an address of this machine: %s could be any server, and would receive your credentials; use --manager-ca", u.Hostname())
	case f.Insecure:
		cfg.Insecure, cfg.CAFile, cfg.CAData = true, "", nil
	case f.CA != "":
		cfg.CAFile, cfg.CAData = f.CA, nil
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Usage", "the manager's client cannot be made: %v", err).From(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &managerClient{url: strings.TrimSuffix(address, "/"), client: client}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ofDataDir returns the URL of the `slipway up` or `slipway manager` process that holds the data directory, if it
// manages the connected cluster.
func (f *managerFlags) ofDataDir(e term.Env, c *management.Connection) (string, error) {
	dir, err := e.DataDir(cmp.Or(f.connection.DataDir, c.DataDir))
	if err != nil {
		return "", err
	}
	state, err := datadir.Inspect(dir)
	switch {
	case err != nil:
		return "", err
	case state.Held && state.Holder.ManagerOf == c.Config.Host && state.Holder.Diagnostics != "":
		f.Insecure = f.CA == "" // its certificate is self-signed, but the process that holds the directory listens there
		return "https://" + net.JoinHostPort("127.0.0.1", state.Holder.Diagnostics), nil
	case state.Held && state.Holder.ManagerOf == c.Config.Host:
		return "", fault.New(fault.Invalid, "NoDiagnostics", "the manager of %s serves no diagnostics at 127.0.0.1, by which plans are read: start it without --insecure-diagnostics, and with another --diagnostics-address; it was started with: %s", dir, state.Holder.Command)
	case !state.Held && state.Holder.ManagerOf == c.Config.Host:
		return "", fault.New(fault.Unreachable, "ManagerNotRunning", "the manager of %s does not run; it was started with: %s", dir, state.Holder.Command)
	case state.Run == nil && string(dir) == c.DataDir:
		return "", fault.New(fault.Unreachable, management.ReasonNotRunning, "nothing runs in %s; %q starts it", dir, c.UpCommand)
	case state.Run == nil || state.Run.Server != c.Config.Host:
		return "", fault.New(fault.Invalid, "ManagerUnknown",
			"%s is not the management cluster of %s: select its manager with --data-dir if it runs on this machine, otherwise with --manager, the URL of its diagnostics, for example through \"kubectl port-forward\"",
			c.Config.Host, dir)
	case state.Run.Manager == nil && state.Run.Ready:
		return "", fault.New(fault.Unreachable, "ManagerNotRunning",
			"no manager runs in %s: it has just ended, and starts again, or \"slipway up --without\" names all providers; set --manager to the URL at which another one serves diagnostics", dir)
	case state.Run.Manager == nil || state.Run.Manager.Diagnostics == "":
		return "", fault.New(fault.Unreachable, "ManagerNotRunning", "the manager is not running: try again, and see \"slipway status\"")
	}
	return state.Run.Manager.Diagnostics, nil
}

// readPlans reads the last plans of an object. [planReader] calls it for explain, and [managerAccess] for ui.
func (m *managerClient) readPlans(ctx context.Context, o objectReference) (manager.ObjectPlans, error) {
	var last manager.ObjectPlans
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+manager.PlanPath(o.kind, o.key), nil)
	if err != nil {
		return last, err
	}
	answer, err := m.client.Do(r)
	if err != nil {
		if cause := ctx.Err(); cause != nil {
			return last, cause
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		var unknown x509.UnknownAuthorityError
		if errors.As(err, &unknown) {
			return last, fault.New(fault.Unreachable, "UnknownAuthority",
				"the manager at %s cannot be reached: its certificate is not of the authority of the management cluster; name its authority with --manager-ca, or, on this machine, trust any certificate with --manager-insecure", m.url).From(err)
		}
		return last, fault.New(fault.Unreachable, "ManagerNotRunning", "the manager at %s cannot be reached: %v", m.url, err).From(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxResponseBytes))
	if err != nil {
		return last, fmt.Errorf("reading the manager's response: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return last, refusal(m.url, o, answer.StatusCode, strings.TrimSpace(string(body)))
	}
	if err := json.Unmarshal(body, &last); err != nil {
		return last, fault.New(fault.Invalid, "NoManager", "the server at %s is not a manager of slipway: %v", m.url, err).From(err)
	}
	if len(last.Plans) == 0 {
		return last, fault.New(fault.Invalid, "NoManager", "the server at %s is not a manager of this version of slipway: use the slipway with which it was started", m.url)
	}
	return last, nil
}

// refusal returns the error for a response that is not a plan, with the remedy.
func refusal(at string, o objectReference, code int, text string) error {
	if len(text) > 300 {
		text = text[:300] + " …"
	}
	switch code {
	case http.StatusNotFound:
		return fault.New(fault.Gone, "NoPlan",
			"there is no plan of %s: the manager at %s has not reconciled it since it started, or leaves its kind to another manager", o, at)
	case http.StatusUnauthorized:
		return fault.New(fault.Invalid, "NotAuthenticated", "the manager at %s did not authenticate the request (%s): use a kubeconfig with a token, for example from \"kubectl create token\"", at, text)
	case http.StatusForbidden:
		return fault.New(fault.Invalid, reasonNotAllowed, "the manager at %s rejected the request: %s; use a kubeconfig with permission to get the object", at, text)
	}
	return fault.New(fault.Unreachable, "ManagerFailed", "the manager at %s returned status %d: %s", at, code, text)
}
