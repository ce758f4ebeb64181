package loop

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
)

// takeOver makes the controller own what the reference implementation has written of the status, before it writes its own:
// all fields, and those conditions that it writes itself. Others may be of programs that have nothing to do with it.
func (r *Reconciler[O, S]) takeOver(ctx context.Context, o O, want map[string]any) error {
	var types []string
	list, _ := want["conditions"].([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			t, _ := c["type"].(string)
			types = append(types, t)
		}
	}
	live := r.Live
	if live == nil {
		live = r.Client
	}
	return client.IgnoreNotFound(r.Writer.TakeOverStatus(ctx, live, o, kube.AllButConditions(types...)))
}
