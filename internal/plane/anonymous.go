package plane

import (
	"encoding/json"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

// healthPaths are what anybody who reaches the port may read.
var healthPaths = [...]string{"/healthz", "/livez", "/readyz", "/version"}

// clusterInfoPath is what a node that joins with a token reads before it knows
// whom to trust.
const clusterInfoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info"

// writeAuthentication writes an authentication configuration to path that lets
// anonymous requests through to the given paths only.
func writeAuthentication(path string, anonymous ...string) error {
	conditions := make([]map[string]string, 0, len(anonymous))
	for _, p := range anonymous {
		conditions = append(conditions, map[string]string{"path": p})
	}
	data, err := json.MarshalIndent(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "AuthenticationConfiguration",
		"anonymous":  map[string]any{"enabled": true, "conditions": conditions},
	}, "", "  ")
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(path, data, 0o600)
	return err
}
