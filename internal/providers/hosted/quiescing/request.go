// Package quiescing is what a HostedControlPlane knows of being kept from its work.
//
// Does: reads the annotation that asks for it, and says what alone the process is to run then.
//
// Never: stops or starts anything.
//
// Read first: [Request].
package quiescing

import (
	"regexp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// Request is how the control plane is kept from its work; the zero value: it is not.
type Request struct{ Mode, ID string }

var valid = regexp.MustCompile(`^(` + hostedv1.QuiesceEtcd + `|` + hostedv1.QuiesceStopped + `|` + hostedv1.QuiesceLoopback + `)/([0-9A-Za-z-]{1,64})$`)

// Parse reads the annotation. One that cannot be read asks for nothing, and so do those of control planes that are not stopped.
func Parse(plane *hostedv1.HostedControlPlane) Request {
	found := valid.FindStringSubmatch(plane.Annotations[hostedv1.QuiesceAnnotation])
	if found == nil || plane.Spec.Backend.Name() != hostedv1.BackendProcess {
		return Request{}
	}
	return Request{Mode: found[1], ID: found[2]}
}

// Only is what alone the process is to run, as in its configuration.
func (r Request) Only() string {
	return map[string]string{hostedv1.QuiesceEtcd: workload.OnlyEtcd, hostedv1.QuiesceLoopback: workload.OnlyLoopback}[r.Mode]
}

// Runs says what runs then.
func (r Request) Runs() string {
	if r.Mode == hostedv1.QuiesceEtcd {
		return "Etcd of the control plane runs alone"
	}
	return "The control plane answers on its host alone"
}
