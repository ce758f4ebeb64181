package cluster

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// Variables of Slipway's ClusterClasses (config/classes) that select hosts.
const hostLabels, controlPlaneHostLabels = "hostLabels", "controlPlaneHostLabels"

// checkSSHHosts returns an error if the machines of the cluster cannot claim a host each, before anything is written. A
// claim reserves an SSHHost of the inventory for one machine. The inventory is the operator's: for users who cannot
// read it, the conditions of the machines report a shortage. apply calls it after checkHost.
func (f *createClusterFlags) checkSSHHosts(ctx context.Context, r client.Reader, namespace string) error {
	if f.skipChecks || !f.hosts || !slices.Contains(classes.Names(), f.ref.Name) {
		return nil
	}
	request, hosts, err := inventory.Read(ctx, r, namespace)
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	installed := usesInstalled(f.variables)
	shortage := inventory.Shortage(request.Namespace, hosts, []inventory.Group{
		{Name: "the control plane", Count: int(f.controlPlanes), Labels: labelsOf(f.variables, controlPlaneHostLabels), Installed: installed, ControlPlane: true},
		{Name: "the workers", Count: int(f.workers), Labels: labelsOf(f.variables, hostLabels), Installed: installed},
	})
	if shortage == "" {
		return nil
	}
	return fault.New(fault.Invalid, "HostsMissing",
		"there are too few hosts for the cluster: %s. Add hosts with `slipway hosts add`, create fewer nodes, or create the cluster nevertheless with --skip-checks: its machines then wait for hosts", shortage)
}

// usesInstalled reports whether the nodes use what is installed on the hosts, by the variable bundle of the classes.
func usesInstalled(values []clusterv1.ClusterVariable) bool {
	var bundle infrav1.SSHBundle
	for _, v := range values {
		if v.Name == "bundle" && json.Unmarshal(v.Value.Raw, &bundle) != nil {
			return false
		}
	}
	return bundle == infrav1.SSHBundleNone
}

// labelsOf returns the value of a variable with labels, nil if it is not set.
func labelsOf(values []clusterv1.ClusterVariable, name string) map[string]string {
	var out map[string]string
	for _, v := range values {
		if v.Name == name && json.Unmarshal(v.Value.Raw, &out) != nil {
			return nil
		}
	}
	return out
}
