package up

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// remainingTimeout is the timeout for reading the remaining objects from the manager's cluster.
	remainingTimeout = 5 * time.Second
	// maxRemainingListed is the maximum number of listed objects.
	maxRemainingListed = 6
)

// checkRemaining lists, for `slipway down`, the objects with finalizers that a "slipway manager" leaves in its cluster,
// which cannot be deleted until a manager runs again. While the manager is running and could still delete them, it
// rejects the deletion of the manager's data, which may include the data of their nodes and control planes. Objects
// that cannot be read are not reported.
func (f downFlags) checkRemaining(ctx context.Context, e term.Env, state datadir.State) error {
	names, err := remainingObjects(ctx, e, state.Holder)
	if err != nil && f.delete && state.Held {
		return fault.New(fault.Invalid, "ObjectsLeft", "the remaining objects in the management cluster of %s cannot be listed (%s): to abandon its data, stop the manager first without --delete, then with it",
			state.Holder.ManagerOf, fault.UserMessage(err)).From(err)
	}
	if names == "" {
		return nil
	}
	if f.delete && state.Held {
		return fault.New(fault.Invalid, "ObjectsLeft", "in the management cluster of %s are still %s: delete them first, while the manager runs; or stop it without --delete, then with it, and they stay there with their finalizers", state.Holder.ManagerOf, names)
	}
	text := fmt.Sprintf("The management cluster still contains %s: their finalizers block the deletion until a manager runs.", names)
	if !f.delete {
		text += " To delete them, start the manager again and delete them while it runs."
	}
	_, err = fmt.Fprintln(e.Err, text)
	return err
}

// remainingObjects lists the remaining objects, or returns an empty string if none is known. It fails if the kubeconfig
// of the manager now leads to another cluster.
func remainingObjects(ctx context.Context, e term.Env, of datadir.Holder) (string, error) {
	if of.Kubeconfig == "" {
		return "", nil
	}
	flags := management.Flags{Kubeconfig: of.Kubeconfig, Context: of.Context}
	c, err := flags.Connect(e)
	if err != nil {
		return "", nil
	}
	if of.ManagerOf != "" && c.Config.Host != of.ManagerOf {
		return "", fault.New(fault.Invalid, management.ReasonKubeconfig, "%s names %s now", of.Kubeconfig, c.Config.Host)
	}
	ctx, cancel := context.WithTimeout(ctx, remainingTimeout)
	defer cancel()
	names := objectsWithFinalizers(ctx, c.Client, management.ManagedObjectOptions(of.Namespace, of.WatchFilter)...)
	if n := len(names) - maxRemainingListed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxRemainingListed], ", "), n), nil
	}
	return strings.Join(names, ", "), nil
}

// objectsWithFinalizers returns the objects of providers that have finalizers and no owner, limited to the objects that
// a manager reconciles.
func objectsWithFinalizers(ctx context.Context, c client.Client, its ...client.ListOption) []string {
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
		if err := c.List(ctx, list, its...); err != nil {
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
