package manager

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Oldest Kubernetes versions of a management cluster: server-side apply of topologies asks for more.
const oldest, oldestWithTopology = "1.20.0", "1.22.0"

// checkServer refuses a management cluster that is too old.
func checkServer(access *rest.Config, gates featuregate.FeatureGate) error {
	client, err := discovery.NewDiscoveryClientForConfig(access)
	if err != nil {
		return fmt.Errorf("connecting to the management cluster: %w", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the management cluster for its version: %w", err)
	}
	return supported(info.GitVersion, gates.Enabled(GateClusterTopology))
}

func supported(server string, topology bool) error {
	least := version.MustParseGeneric(oldest)
	if topology {
		least = version.MustParseGeneric(oldestWithTopology)
	}
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
