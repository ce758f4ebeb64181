package extensionconfig

import (
	"context"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// act runs one action. Package reconciler calls it for each action that [decide] planned.
func (c *controller) act(ctx context.Context, s snapshot, a reconciler.Action) error {
	switch a.(type) {
	case inject:
		return c.writer.Patch(ctx, s.Config, func(o client.Object) {
			o.(*runtimev1.ExtensionConfig).Spec.ClientConfig.CABundle = s.Injection.Bundle
		})
	case endRefresh:
		return c.writer.Patch(ctx, s.Config, func(o client.Object) {
			delete(o.(*runtimev1.ExtensionConfig).Annotations, hook.RefreshAnnotation)
		})
	}
	return reconciler.UnknownAction("extensionconfig", a)
}
