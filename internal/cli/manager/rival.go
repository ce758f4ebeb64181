package manager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
)

// checkRival fails where another manager runs the same providers: its webhooks are those of the management cluster, and answer. Both
// would work on every object. Managers that elect a leader, or look at a namespace or a label alone, are meant to share a cluster; one
// whose webhooks are a Service cannot be asked from here. What cannot be read is no reason either: the manager itself meets it again.
func checkRival(ctx context.Context, cfg manager.Config) error {
	if cfg.LeaderElection.Enabled || cfg.Webhook.CertDir != "" || cfg.WatchFilter != "" || len(cfg.Namespaces) > 0 {
		return nil
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cfg.REST, client.Options{Scheme: scheme})
	if err != nil {
		return nil
	}
	return rival(ctx, c, cfg)
}

func rival(ctx context.Context, c client.Reader, cfg manager.Config) error {
	for _, p := range webhook.Find(ctx, c, cfg.WebhookAddress()) { // at its own address, too: nothing of this one serves yet
		if p.Answers(ctx) {
			return fault.New(fault.Invalid, "AnotherManager",
				"another manager runs provider %s of this management cluster: its webhooks answer at %s, with the certificate that the API server expects. Stop that manager first, name with --providers those that it does not run, or give each objects of its own with --namespace or --watch-filter", p.Set.Name, p.Host)
		}
	}
	return nil
}
