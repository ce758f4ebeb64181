package management

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// WithWarnings creates a client with a warning handler, for commands that show warnings of the API server.
func WithWarnings(of *rest.Config, warnings rest.WarningHandlerWithContext) (client.Client, error) {
	cfg := rest.CopyConfig(of)
	cfg.WarningHandlerWithContext = warnings
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fault.New(fault.Invalid, ReasonKubeconfig, "the kubeconfig cannot be used: %v", err).From(err)
	}
	return c, nil
}
