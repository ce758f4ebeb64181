package manager

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Oldest Kubernetes versions of a management cluster: server-side apply of topologies asks for more, and our configurations of
// webhooks for most: match conditions with optional fields, and the policy for classes of other namespaces, are known since v1.30.
const oldest, oldestWithTopology, oldestWithWebhooks = "1.20.0", "1.22.0", "1.30.0"

// checkServer refuses a management cluster that is too old.
func checkServer(cfg Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(cfg.REST)
	if err != nil {
		return fmt.Errorf("connecting to the management cluster: %w", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the management cluster for its version: %w", err)
	}
	return supported(info.GitVersion, cfg.oldest())
}

// oldest is the oldest version that can serve what the configuration turns on.
func (c Config) oldest() string {
	switch {
	case c.Webhook.CertDir == "": // the configurations of webhooks are ours
		return oldestWithWebhooks
	case c.Gates.Enabled(GateClusterTopology):
		return oldestWithTopology
	}
	return oldest
}

func supported(server, oldest string) error {
	least := version.MustParseGeneric(oldest)
	have, err := version.ParseGeneric(server)
	if err != nil {
		return fault.New(fault.Invalid, "UnknownVersion", "the management cluster says it runs %q, which is no version", server).From(err)
	}
	if have.LessThan(least) {
		return fault.New(fault.Invalid, "ManagementClusterTooOld",
			"the management cluster runs Kubernetes v%s; upgrade it to v%s or later", have, least)
	}
	return nil
}
