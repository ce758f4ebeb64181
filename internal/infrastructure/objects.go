package infrastructure

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// ReadObject returns the object, or nil if there is none or the name is empty. The controllers of the providers read
// the objects around theirs with it. The object is shared with the cache and must not be changed.
func ReadObject[O client.Object](ctx context.Context, c client.Reader, namespace, name string, o O) (O, error) {
	var none O
	if name == "" {
		return none, nil
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %s %s/%s: %w", reflect.TypeOf(o).Elem().Name(), namespace, name, err)
	}
	return o, nil
}

// OwnerName returns the name of the object's owner of a core Cluster API kind, empty if there is none. The observe
// functions of the providers' controllers call it.
func OwnerName(o metav1.Object, kind string) string {
	for _, ref := range o.GetOwnerReferences() {
		if group, _, _ := strings.Cut(ref.APIVersion, "/"); ref.Kind == kind && group == clusterv1.GroupVersion.Group {
			return ref.Name
		}
	}
	return ""
}

// HasHostedControlPlanes reports whether the management cluster has the kind HostedControlPlane, which a controller
// can watch only then. The controllers of LocalClusters, LocalMachines and SSHClusters call it when they are added to
// the manager.
func HasHostedControlPlanes(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(controlplanev1.GroupVersion.WithKind("HostedControlPlane").GroupKind())
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// WaitMessages returns the messages of all waits of a plan, one per line. The controllers of the providers call it for
// conditions.
func WaitMessages(p reconciler.Plan) string {
	var lines []string
	for _, w := range p.Waits {
		lines = append(lines, w.Message)
	}
	return strings.Join(lines, "\n")
}
