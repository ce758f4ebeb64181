package hook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NamespaceLabels returns a function that reads the labels of a Namespace with a client, for [Config]. It reads
// metadata only; a manager's client serves this from a cache that starts with the first read. The manager passes it
// when it creates the registry; `slipway plan` calls it for its simulation.
func NamespaceLabels(c client.Reader) func(ctx context.Context, namespace string) (labels.Set, error) {
	return func(ctx context.Context, namespace string) (labels.Set, error) {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := c.Get(ctx, client.ObjectKey{Name: namespace}, o); err != nil {
			return nil, err
		}
		return o.Labels, nil
	}
}

// namespaceLabels reads the labels of a namespace at most once for a call, and only if the namespaceSelector of an
// ExtensionConfig needs them.
type namespaceLabels struct {
	read      func(context.Context, string) (labels.Set, error)
	namespace string
	set       labels.Set
	done      bool
}

func (n *namespaceLabels) match(ctx context.Context, selector labels.Selector) (bool, error) {
	if selector.Empty() {
		return true, nil
	}
	if !n.done && n.namespace != "" {
		set, err := n.read(ctx, n.namespace)
		if err != nil {
			return false, fmt.Errorf("reading the labels of namespace %s: %w", n.namespace, err)
		}
		n.set = set
	}
	n.done = true
	return selector.Matches(n.set), nil
}
