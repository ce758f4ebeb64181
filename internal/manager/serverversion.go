package manager

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// The oldest supported Kubernetes versions of a management cluster. Server-side apply of topologies needs the
// second, and Slipway's webhook configurations need the third, because match conditions with optional fields,
// and the policy for ClusterClasses in other namespaces, need v1.30.
const oldest, oldestWithTopology, oldestWithWebhooks = "1.20.0", "1.22.0", "1.30.0"

// checkServer rejects a management cluster that is too old.
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

// oldest returns the oldest version that supports the enabled features.
func (c Config) oldest() string {
	switch {
	case c.Webhook.CertDir == "": // Slipway manages the webhook configurations
		return oldestWithWebhooks
	case c.Gates.Enabled(providerset.GateClusterTopology):
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
