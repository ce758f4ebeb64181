package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/pause"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// Variables of Slipway's ClusterClasses (config/classes) that select hosts.
const hostLabels, controlPlaneHostLabels = "hostLabels", "controlPlaneHostLabels"

// hostCheckAttempts is how often checkSSHHosts waits for hosts that were never checked. The wait is usually a second.
const hostCheckAttempts = 30

// checkSSHHosts returns an error if the machines of the cluster cannot claim a host each, before anything is written. A
// claim reserves an SSHHost of the inventory for one machine. The inventory is the operator's: for users who cannot
// read it, the conditions of the machines report a shortage. If there is one, it waits for hosts that were just added.
// apply calls it after checkHost.
func (f *createClusterFlags) checkSSHHosts(ctx context.Context, r client.Reader, namespace string, await func(names []string) error) error {
	if f.skipChecks || !f.hosts || !slices.Contains(classes.Names(), f.ref.Name) {
		return nil
	}
	for attempt := 0; ; attempt++ {
		request, hosts, err := inventory.Read(ctx, r, namespace)
		if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return err
		}
		shortage := inventory.Shortage(request.Namespace, hosts, f.hostGroups())
		if shortage == "" {
			return nil
		}
		unchecked := inventory.Unchecked(request.Namespace, hosts)
		if len(unchecked) > 0 && attempt < hostCheckAttempts {
			if err := await(unchecked); err != nil {
				return err
			}
			continue
		}
		return fault.New(fault.Invalid, "HostsMissing",
			"there are too few hosts for the cluster: %s. Add hosts with `slipway hosts add`, create fewer nodes, or create the cluster nevertheless with --skip-checks: its machines then wait for hosts", shortage)
	}
}

// awaitHosts returns the function that waits a second for the first check of hosts. It prints their names once.
func awaitHosts(ctx context.Context, show func(string)) func(names []string) error {
	isShown := false
	return func(names []string) error {
		if !isShown {
			show(fmt.Sprintf("Waiting for the first check of SSHHosts %s", condition.Names(names)))
			isShown = true
		}
		return pause.Sleep(ctx, time.Second)
	}
}

// hostGroups returns the groups of machines that need a host each.
func (f *createClusterFlags) hostGroups() []inventory.Group {
	installed := usesInstalled(f.variables)
	return []inventory.Group{
		{Name: "the control plane", Count: int(f.controlPlanes), Labels: labelsOf(f.variables, controlPlaneHostLabels), Installed: installed, ControlPlane: true},
		{Name: "the workers", Count: int(f.workers), Labels: labelsOf(f.variables, hostLabels), Installed: installed},
	}
}

// checkEndpoint returns an error if the configuration of the operator denies the control plane endpoint of the cluster. It
// creates the SSHCluster as a dry run, because the topology controller would create it only when the Cluster exists. Other
// errors are not for this command, such as missing rights for SSHClusters. apply calls it before anything is written.
func (f *createClusterFlags) checkEndpoint(ctx context.Context, c client.Client, namespace, name string) error {
	spec := map[string]any{}
	for _, v := range f.variables {
		if v.Name == "virtualIP" || v.Name == "controlPlaneEndpoint" {
			var value any
			if err := json.Unmarshal(v.Value.Raw, &value); err != nil {
				return err
			}
			spec[v.Name] = value
		}
	}
	if f.skipChecks || !f.hosts || !slices.Contains(classes.Names(), f.ref.Name) || len(spec) == 0 {
		return nil
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(infrav1.GroupVersion.WithKind("SSHCluster"))
	o.SetNamespace(namespace)
	o.SetName(name)
	err := kube.NewWriter(c, "cli").DryRunCreate(ctx, o)
	if err == nil {
		return nil
	}
	if _, denial, isDenied := strings.Cut(err.Error(), "denied the request: "); isDenied {
		return fault.New(fault.Invalid, "EndpointNotAllowed", "the control plane endpoint is not allowed; nothing was created: %s", denial).From(err)
	}
	return nil
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
