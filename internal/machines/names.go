package machines

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
)

// NamesText lists Machines in a message, for conditions, events and logs of their owners.
func NamesText(names []string) string {
	if len(names) == 1 {
		return "Machine " + names[0]
	}
	return "Machines " + condition.Names(names)
}

// ExistingNames returns the names that Machines in the namespace already use, regardless of their owner. The MachineSet
// and KubeadmControlPlane controllers call it before they create Machines with generated names. Owners with the same
// name template can generate the same name, and applying another owner's object would overwrite it.
func ExistingNames(ctx context.Context, c client.Reader, namespace string, names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &clusterv1.Machine{}, client.UnsafeDisableDeepCopy)
		switch {
		case err == nil:
			out = append(out, name)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("looking for a Machine with the name %s: %w", name, err)
		}
	}
	return out, nil
}
