package local

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// templatesName is the name of the controller of LocalMachineTemplates. Its field manager is
// "slipway-local-machinetemplate", which owns fields of existing objects, so it must not change.
const templatesName = "local-machinetemplate"

// addTemplates adds the controller of LocalMachineTemplates. nodes computes the capacity of a template's nodes. The
// cluster autoscaler reads this capacity from the status of a template.
func addTemplates(s reconciler.Setup, nodes backend.CapacityCalculator) error {
	return s.Builder(templatesName, &infrav1.LocalMachineTemplate{}).Complete(infrastructure.TemplateReconciler{
		Client: s.Manager.GetClient(), Writer: kube.NewWriter(s.Manager.GetClient(), templatesName), Scope: s.Scope(), Now: s.Clock(),
		New: newTemplate, Status: templateStatus(nodes),
	})
}

func newTemplate() client.Object { return &infrav1.LocalMachineTemplate{} }

func templateStatus(nodes backend.CapacityCalculator) func(context.Context, client.Object) (any, error) {
	return func(_ context.Context, o client.Object) (any, error) {
		offered, err := nodes.CapacityOf(o.(*infrav1.LocalMachineTemplate).Spec.Template.Spec)
		if err != nil {
			return nil, err
		}
		return infrav1.LocalMachineTemplateStatus{Capacity: offered.Capacity, NodeInfo: offered.NodeInfo}, nil
	}
}
