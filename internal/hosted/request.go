// Package quiescing parses the annotation that quiesces a HostedControlPlane, and maps it to the components
// that the process runs. It does not stop or start anything. Start at [quiesceRequest].
package hosted

import (
	"regexp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

// quiesceRequest is the requested mode of quiescing with its ID. The zero value means normal operation.
type quiesceRequest struct{ Mode, ID string }

var valid = regexp.MustCompile(`^(` + hostedv1.QuiesceEtcd + `|` + hostedv1.QuiesceStopped + `|` + hostedv1.QuiesceLoopback + `)/([0-9A-Za-z-]{1,64})$`)

// parseQuiesce parses the annotation. Invalid annotations, and annotations on control planes whose backend cannot
// stop them, are ignored.
func parseQuiesce(plane *hostedv1.HostedControlPlane) quiesceRequest {
	found := valid.FindStringSubmatch(plane.Annotations[hostedv1.QuiesceAnnotation])
	if found == nil || plane.Spec.Backend.Name() != hostedv1.BackendProcess {
		return quiesceRequest{}
	}
	return quiesceRequest{Mode: found[1], ID: found[2]}
}

// Only returns the components that the process runs, as in its configuration.
func (r quiesceRequest) Only() string {
	return map[string]string{hostedv1.QuiesceEtcd: processconfig.OnlyEtcd, hostedv1.QuiesceLoopback: processconfig.OnlyLoopback}[r.Mode]
}

// Runs describes the running components for messages.
func (r quiesceRequest) Runs() string {
	if r.Mode == hostedv1.QuiesceEtcd {
		return "Etcd of the control plane runs alone"
	}
	return "The control plane answers on its host alone"
}
