package manager

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/pprof"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// diagnostics returns the options of controller-runtime's metrics server. The server exposes metrics, profiles and the
// log level over TLS to clients that the API server authorizes. It also exposes the plan of an object to users who may
// get the object. [Run] passes them to the manager.
func diagnostics(e Endpoints, kept *PlanStore) metricsserver.Options {
	options := metricsserver.Options{BindAddress: e.Diagnostics, TLSOpts: e.TLS, ExtraHandlers: map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}}
	if e.Verbosity != nil {
		options.ExtraHandlers["/debug/flags/v"] = verbosity(e.Verbosity)
	}
	if kept != nil {
		options.ExtraHandlers[plansPath] = &PlanHandler{Store: kept}
	}
	if e.CertFile != "" {
		options.CertDir, options.CertName, options.KeyName = filepath.Dir(e.CertFile), filepath.Base(e.CertFile), filepath.Base(e.KeyFile)
	}
	if authorities := x509.NewCertPool(); authorities.AppendCertsFromPEM(e.ClientCA) {
		options.TLSOpts = append(slices.Clone(e.TLS), func(c *tls.Config) {
			c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, authorities
		})
	}
	if !e.Insecure {
		options.SecureServing, options.FilterProvider = true, authorized
	}
	return options
}

// servePlans reports whether clients can read the last plans of objects. If not, plans are not stored. [Run] calls it.
func (e Endpoints) servePlans() bool { return !e.Insecure && e.Diagnostics != "0" }

// authorized authenticates requests by client certificate or token, and authorizes them by path. The plans handler authorizes
// requests for plans.
func authorized(config *rest.Config, c *http.Client) (metricsserver.Filter, error) {
	byPath, err := filters.WithAuthenticationAndAuthorization(config, c)
	if err != nil {
		return nil, err
	}
	api, err := kubernetes.NewForConfigAndClient(config, c)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		if h, ok := handler.(*PlanHandler); ok {
			return &PlanHandler{Store: h.Store, API: api}, nil
		}
		byToken, err := byPath(log, handler)
		if err != nil {
			return nil, err
		}
		return &certificateHandler{API: api, Protected: handler, ByToken: byToken}, nil
	}, nil
}
