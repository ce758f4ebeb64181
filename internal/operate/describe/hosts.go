package describe

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// readHosts reads the SSHHosts of the SSHMachines of the cluster. Without permission to read SSHHosts, which are the
// operator's, the tree does not show them. [Read] calls it after the other reads, because Objects has the SSHMachines.
func (s *Snapshot) readHosts(ctx context.Context, r Reader) error {
	machines := map[client.ObjectKey]Ref{} // by host
	for ref, u := range s.Objects {
		host, _, _ := unstructured.NestedStringMap(u.Object, "status", "hostRef")
		if ref.Group == infrav1.GroupVersion.Group && ref.Kind == "SSHMachine" && host["name"] != "" {
			machines[client.ObjectKey{Namespace: host["namespace"], Name: host["name"]}] = ref
		}
	}
	if len(machines) == 0 {
		return nil
	}
	mapping, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: infrav1.GroupVersion.Group, Kind: "SSHHost"})
	if err != nil {
		return ignoreNoMatch(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind("SSHHostList"))
	if err := r.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("listing SSHHosts: %w", err)
	}
	s.Hosts = map[Ref]*unstructured.Unstructured{}
	for i := range list.Items {
		if ref, used := machines[client.ObjectKeyFromObject(&list.Items[i])]; used {
			s.Hosts[ref] = &list.Items[i]
		}
	}
	return nil
}

func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// addHost adds the SSHHost of an SSHMachine below its row, if it has an issue that neither the row nor its Machine has.
// [Build] calls it for the details of each Machine.
func (b builder) addHost(row, machine *Object, ref Ref) {
	u := b.Hosts[ref]
	if row == nil || u == nil {
		return
	}
	host := b.identity(u, u.GetKind())
	host.Role, host.APIVersion = "Host", u.GetAPIVersion()
	host.Conditions = slices.DeleteFunc(conditionsOf(u.Object, b.Deprecated), isOfUse)
	heard := append(row.displayableConditions(), machine.displayableConditions()...)
	hasNews := slices.ContainsFunc(host.Issues(), func(c Condition) bool { return !heard.displays(c.Message) })
	if b.Echo || host.ShowConditions || host.DeletedAt != nil || hasNews {
		row.add(host)
	}
}

// isOfUse reports whether a condition reports that a host is not available because a machine uses it. Package ssh/hosts
// sets InUse and Cleaning.
func isOfUse(c Condition) bool {
	return c.Type == infrav1.AvailableCondition && slices.Contains([]string{"InUse", "Preparing", "Cleaning"}, c.Reason)
}
