package plane

import (
	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/componentfile"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

// healthPaths are what anybody who reaches the port may read.
var healthPaths = [...]string{"/healthz", "/livez", "/readyz", "/version"}

// clusterInfoPath is what a node that joins with a token reads before it knows
// whom to trust.
const clusterInfoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info"

// writeAuthentication writes an authentication configuration to path that
// accepts tokens of the issuers, nil for none, and lets anonymous requests
// through to the given paths only.
func writeAuthentication(path string, issuers *hostedv1.Authentication, anonymous ...string) error {
	data, err := componentfile.Authentication(issuers, anonymous...)
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(path, data, 0o600)
	return err
}
