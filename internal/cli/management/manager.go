package management

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ManagedObjectOptions returns list options for the objects of a manager that is limited to a namespace, a watch
// filter, or both; an empty value sets no limit. "status" and "down" use it for the "slipway manager" of a data
// directory.
func ManagedObjectOptions(namespace, watchFilter string) []client.ListOption {
	var out []client.ListOption
	if namespace != "" {
		out = append(out, client.InNamespace(namespace))
	}
	if watchFilter != "" {
		out = append(out, client.MatchingLabels{clusterv1.WatchLabel: watchFilter})
	}
	return out
}

// ManagerProblem returns a message if no manager responds for the management cluster, or not in time, and an empty
// string if one responds or this cannot be determined. Commands print it as a warning, because nothing is reconciled
// then. It sends a dry-run create of a Cluster like this one to the API server, because the manager serves the webhooks
// of Clusters. Updates are unsuitable: webhooks are not called for changes that match no rule. Without a name it
// creates a generic Cluster in the namespace.
func (c *Connection) ManagerProblem(ctx context.Context, key client.ObjectKey) string {
	like := &clusterv1.Cluster{}
	switch err := c.Client.Get(ctx, key, like); {
	case key.Name == "": // no Cluster to imitate
		like.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.slipway.dev", Kind: "HostedControlPlane", Name: "probe"}
	case err != nil:
		return ""
	}
	another := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, GenerateName: "probe-"}, Spec: like.Spec}
	err := c.Client.Create(ctx, another, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		return ""
	}
	if p, found := c.processProblem(); found {
		return p.text()
	}
	return managerProblem(readPresence(c.DataDir), err)
}

// managerProblem returns the reason why a webhook of the manager does not respond. A slow manager is not reported as
// absent. [Connection.Explain] calls it, too, for requests that failed because of a webhook.
func managerProblem(p presence, err error) string {
	switch {
	case p.isStarting:
		return p.text + ", and nothing happens before it is ready; \"slipway status\" shows how far it is"
	case p.text != "":
		return p.text + fmt.Sprintf(" but did not respond: this host is busy, or the manager hangs; see \"slipway status\": %v", err)
	case isSlow(err):
		return fmt.Sprintf("The manager of this management cluster did not respond in time, because its host is busy or the manager hangs; try again: %v", err)
	}
	return fmt.Sprintf("No manager responds for this management cluster; if none runs, nothing is reconciled: start one with \"slipway up\" or \"slipway manager\": %v", err)
}
