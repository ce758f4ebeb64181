package manager

import (
	"net/http"
	"net/http/pprof"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// diagnostics serves metrics, profiles and the log level over TLS to whoever the API server authorizes (ME-03).
func diagnostics(e Endpoints) metricsserver.Options {
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
	if !e.Insecure {
		options.SecureServing = true
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
