package ssh

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// templatesName is the name of the controller of SSHMachineTemplates. Its field manager is
// "slipway-ssh-machinetemplate", which owns fields of existing objects, so it must not change.
const templatesName = "ssh-machinetemplate"

// addTemplates adds the controller of SSHMachineTemplates. [Add] calls it.
func addTemplates(s reconciler.Setup) error {
	c := s.Manager.GetClient()
	newList := func() client.ObjectList { return &infrav1.SSHMachineTemplateList{} }
	return s.Builder(templatesName, newTemplate()).
		Watches(&infrav1.SSHHost{}, handler.EnqueueRequestsFromMapFunc(inventory.EnqueueAll(c, newList)), builder.WithPredicates(inventory.OfferChanged())).
		Complete(infrastructure.TemplateReconciler{
			Client: c, Writer: kube.NewWriter(c, templatesName), Scope: s.Scope(), Now: s.Clock(),
			New: newTemplate, Status: templateStatus(c), Interval: inventory.LabelsInterval,
		})
}

func newTemplate() client.Object { return &infrav1.SSHMachineTemplate{} }

// templateStatus returns the function that computes the status of a template from the hosts that match it.
func templateStatus(c client.Reader) func(context.Context, client.Object) (any, error) {
	return func(ctx context.Context, o client.Object) (any, error) {
		template := o.(*infrav1.SSHMachineTemplate)
		spec := template.Spec.Template.Spec
		request, hosts, err := inventory.Read(ctx, c, template.Namespace)
		if err != nil {
			return nil, err
		}
		request.Selector = spec.HostSelector
		status := inventory.Capacity(request, hosts, spec.FailureDomain)
		if status.Capacity == nil && template.Status.Capacity == nil {
			return nil, nil
		}
		return status, nil
	}
}
