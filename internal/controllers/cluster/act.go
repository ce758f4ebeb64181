package cluster

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
)

// The actions of the controller. Each may be repeated. [decide] plans them, and act runs them.
type (
	// setEndpoint copies the control plane endpoint from a provider object.
	setEndpoint struct {
		Host string
		Port int32
		From string
	}
	// createKubeconfig creates the Secret with the kubeconfig.
	createKubeconfig struct{ Name string }
	// deleteObject deletes an object that belongs to the Cluster.
	deleteObject struct{ Kind, Name string }
	// deleteResourceSetBinding deletes the ClusterResourceSetBinding of the Cluster.
	deleteResourceSetBinding struct{ Name string }
)

func (a setEndpoint) String() string {
	return fmt.Sprintf("set endpoint %s:%d: %s reports it", a.Host, a.Port, a.From)
}
func (a createKubeconfig) String() string {
	return fmt.Sprintf("create Secret %s: the Cluster has no control plane object that would", a.Name)
}
func (a deleteObject) String() string {
	return fmt.Sprintf("delete %s %s: the Cluster is deleted", a.Kind, a.Name)
}
func (a deleteResourceSetBinding) String() string {
	return fmt.Sprintf("delete ClusterResourceSetBinding %s: the Cluster is deleted", a.Name)
}

// act runs one action. Package reconciler calls it for each action that [decide] planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	switch a := action.(type) {
	case reference.SetOwner, reference.Delete:
		return reference.Act(ctx, c.writer, a, s.infra(), s.control())
	case setEndpoint:
		return c.writer.PatchOwned(ctx, s.Cluster, func(o client.Object) {
			o.(*clusterv1.Cluster).Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: a.Host, Port: a.Port}
		})
	case createKubeconfig:
		secret, err := kubeconfig(s)
		if err != nil {
			return err
		}
		return c.writer.Create(ctx, secret)
	case deleteObject:
		return c.writer.DeleteAnyway(ctx, s.find(a))
	case deleteResourceSetBinding:
		return c.writer.DeleteAnyway(ctx, s.Binding)
	}
	return reconciler.UnknownAction("cluster", action)
}

// find returns the object that an action names, which must be in the snapshot.
func (s snapshot) find(a deleteObject) client.Object {
	for _, o := range s.objects(a.Kind) {
		if o.GetName() == a.Name {
			return o
		}
	}
	return nil
}

func (s snapshot) objects(kind string) []client.Object {
	var out []client.Object
	switch kind {
	case "MachinePool":
		for i := range s.Pools {
			out = append(out, &s.Pools[i])
		}
	case "MachineDeployment":
		for i := range s.Deployments {
			out = append(out, &s.Deployments[i])
		}
	case "MachineSet":
		for i := range s.Sets {
			out = append(out, &s.Sets[i])
		}
	case "Machine":
		for i := range s.Machines {
			out = append(out, &s.Machines[i])
		}
	}
	return out
}
