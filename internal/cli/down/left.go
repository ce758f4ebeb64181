package down

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

const (
	// leftPatience is how long the cluster of a manager may take to say what is there.
	leftPatience = 5 * time.Second
	// leftShown is how many objects are named.
	leftShown = 6
)

// sayLeft names what a manager leaves in its cluster: objects with finalizers, which no one deletes until a manager runs again. What cannot
// be read is not said.
func sayLeft(ctx context.Context, e env.Env, of datadir.Holder) {
	if of.Kubeconfig == "" {
		return
	}
	flags := management.Flags{Kubeconfig: of.Kubeconfig, Context: of.Context}
	c, err := flags.Connect(e)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leftPatience)
	defer cancel()
	names := left(ctx, c.Client)
	if len(names) == 0 {
		return
	}
	more := ""
	if n := len(names) - leftShown; n > 0 {
		names, more = names[:leftShown], fmt.Sprintf(" and %d more", n)
	}
	_, _ = fmt.Fprintf(e.Err, "In the management cluster are still %s%s: their finalizers keep them until a manager runs. To give it up, delete them while it runs.\n", strings.Join(names, ", "), more)
}

// left are the objects of providers that have finalizers and belong to no other object.
func left(ctx context.Context, c client.Client) []string {
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := c.List(ctx, crds, client.HasLabels{provider.ComponentLabel}); err != nil {
		return nil
	}
	var out []string
	for i := range crds.Items {
		plural, group, _ := strings.Cut(crds.Items[i].Name, ".")
		kind, err := c.RESTMapper().KindFor(schema.GroupVersionResource{Group: group, Resource: plural})
		if err != nil {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list); err != nil {
			continue
		}
		for _, o := range list.Items {
			if len(o.Finalizers) > 0 && len(o.OwnerReferences) == 0 {
				out = append(out, strings.TrimSpace(kind.Kind+" "+strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")))
			}
		}
	}
	slices.Sort(out)
	return out
}
