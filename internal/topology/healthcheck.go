package topology

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// health is the health check of a control plane or MachineDeployment; it has the name of that object.
type health struct {
	key     Key
	name    string
	enabled bool
	// checks and remediation have the same fields as in a MachineHealthCheck.
	checks, remediation any
	selector            map[string]string
}

// controlPlaneHealth returns the health check of the topology, if it has one, or else of the class. They are not
// merged.
func controlPlaneHealth(class clusterv1.ControlPlaneClass, topology clusterv1.ControlPlaneTopology, name string) health {
	h := health{
		key: Key{Role: ControlPlaneHealthCheck}, name: name, selector: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
		checks: class.HealthCheck.Checks, remediation: class.HealthCheck.Remediation,
	}
	if topology.HealthCheck.IsDefined() {
		h.checks, h.remediation = topology.HealthCheck.Checks, topology.HealthCheck.Remediation
	}
	h.enabled = h.isEnabled(topology.HealthCheck.Enabled)
	return h
}

// deploymentHealth returns the health check of the topology, if it has one, or else of the class. They are not merged.
func deploymentHealth(w worker, name string) health {
	h := health{
		key: Key{deploymentHealthCheck, w.key.Worker}, name: name,
		selector: map[string]string{clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: w.key.Worker},
		checks:   w.deploymentClass.HealthCheck.Checks, remediation: w.deploymentClass.HealthCheck.Remediation,
	}
	if w.deployment.HealthCheck.IsDefined() {
		h.checks, h.remediation = w.deployment.HealthCheck.Checks, w.deployment.HealthCheck.Remediation
	}
	h.enabled = h.isEnabled(w.deployment.HealthCheck.Enabled)
	return h
}

// isEnabled reports whether a MachineHealthCheck is created. If the topology does not specify this, one is created if
// there is anything to check.
func (h health) isEnabled(said *bool) bool {
	if said != nil {
		return *said
	}
	return !reflect.ValueOf(h.checks).IsZero() || !reflect.ValueOf(h.remediation).IsZero()
}

func (b *builder) healthCheck(h health) error {
	if !h.enabled {
		return nil
	}
	check := &clusterv1.MachineHealthCheck{}
	check.Namespace, check.Name = b.Cluster.Namespace, h.name
	check.Labels, check.OwnerReferences = b.labels(h.key), []metav1.OwnerReference{ownership.ByCluster(b.Cluster)}
	check.Spec.ClusterName, check.Spec.Selector.MatchLabels = b.Cluster.Name, h.selector
	want, err := encode("MachineHealthCheck", check)
	if err != nil {
		return err
	}
	for field, value := range map[string]any{"checks": h.checks, "remediation": h.remediation} {
		content, err := object(value)
		if err != nil {
			return err
		}
		delete(content, "maxInFlight") // a field of the MachineDeployment
		if len(content) == 0 {
			unstructured.RemoveNestedField(want.Object, "spec", field)
		} else if err := unstructured.SetNestedMap(want.Object, content, "spec", field); err != nil {
			return fault.New(fault.Bug, "InvalidObject", "a MachineHealthCheck cannot be encoded").From(err)
		}
	}
	var live client.Object
	if o := b.Live.HealthChecks[h.name]; o != nil {
		live = o
	}
	b.add(keyed{h.key, want}, live)
	return nil
}

// object converts a struct to unstructured content.
func object(value any) (map[string]any, error) {
	pointer := reflect.New(reflect.TypeOf(value))
	pointer.Elem().Set(reflect.ValueOf(value))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pointer.Interface())
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidObject", "%T cannot be encoded", value).From(err)
	}
	return content, nil
}
