package manager

import (
	"fmt"

	"k8s.io/client-go/discovery"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/version"
)

// The oldest supported Kubernetes versions of a management cluster. Server-side apply of topologies needs the
// second, and Slipway's webhook configurations need the third, because match conditions with optional fields,
// and the policy for ClusterClasses in other namespaces, need v1.30.
const oldest, oldestWithTopology, oldestWithWebhooks = "1.20.0", "1.22.0", "1.30.0"

// checkServer rejects a management cluster that is too old. [Run] calls it before it writes anything.
func checkServer(cfg Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(cfg.REST)
	if err != nil {
		return fmt.Errorf("connecting to the management cluster: %w", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("reading the version of the management cluster: %w", err)
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
	have, err := version.ParseNumbers(server)
	if err != nil {
		return fault.New(fault.Invalid, "UnknownVersion", "the management cluster reports the invalid version %q", server).From(err)
	}
	if version.IsOlder(have.String(), oldest) {
		return fault.New(fault.Invalid, "ManagementClusterTooOld",
			"the management cluster runs Kubernetes %s; upgrade it to v%s or later", have, oldest)
	}
	return nil
}
