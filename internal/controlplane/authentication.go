package controlplane

import (
	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

// healthPaths are the paths that anonymous requests may read in management and workload clusters. [StartManagement] and
// workloadFiles pass them to writeAuthentication.
var healthPaths = [...]string{"/healthz", "/livez", "/readyz", "/version"}

// clusterInfoPath is the ConfigMap that anonymous requests may also read in a workload cluster: kubeadm discovers the
// CA there when a node joins with a token. workloadFiles passes it to writeAuthentication.
const clusterInfoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info"

// writeAuthentication writes an authentication configuration of kube-apiserver to path, before the API server of a
// management or workload cluster starts. It accepts tokens of the issuers (none if nil), and permits anonymous requests
// for the given paths only.
func writeAuthentication(path string, issuers *hostedv1.Authentication, anonymous ...string) error {
	data, err := componentconfig.Authentication(issuers, anonymous...)
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(path, data, 0o600)
	return err
}
