package management

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ObjectsOf list the objects that a manager works on which is limited to a namespace, a watch filter, or both; empty: to nothing.
func ObjectsOf(namespace, watchFilter string) []client.ListOption {
	var out []client.ListOption
	if namespace != "" {
		out = append(out, client.InNamespace(namespace))
	}
	if watchFilter != "" {
		out = append(out, client.MatchingLabels{clusterv1.WatchLabel: watchFilter})
	}
	return out
}

// NoManager says that no manager answers for the clusters of the management cluster, or not in time; empty: one does, or that cannot be told. The webhooks
// of Clusters are in the manager: the API server is asked to create another Cluster like this one, as a dry run. They are not called
// for a change that no rule is about. Without a name it is asked for a Cluster of the namespace.
func (c *Connection) NoManager(ctx context.Context, key client.ObjectKey) string {
	like := &clusterv1.Cluster{}
	switch err := c.Client.Get(ctx, key, like); {
	case key.Name == "": // nothing is asked about one Cluster
		like.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.slipway.dev", Kind: "HostedControlPlane", Name: "probe"}
	case err != nil:
		return ""
	}
	another := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, GenerateName: "probe-"}, Spec: like.Spec}
	err := c.Client.Create(ctx, another, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		return ""
	}
	return away(presenceIn(c.DataDir), err)
}

// away says why a webhook of the manager did not answer. A manager that is slow is not called absent.
func away(p presence, err error) string {
	switch {
	case p.starts:
		return p.text + ", and nothing happens before it is ready; \"slipway status\" shows how far it is"
	case p.text != "":
		return p.text + fmt.Sprintf(" and did not answer: this host is busy, or the manager hangs; \"slipway status\" shows which: %v", err)
	case isSlow(err):
		return fmt.Sprintf("The manager of this management cluster did not answer in time: its host is busy, or it hangs; try again: %v", err)
	}
	return fmt.Sprintf("No manager answers for this management cluster, so that nothing will happen until one runs, as of \"slipway up\" or \"slipway manager\": %v", err)
}
