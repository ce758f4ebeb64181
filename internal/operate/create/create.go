package create

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// manager is the name of the field manager without its prefix. Objects of existing clusters record it, so it must not
// change.
const manager = "cli"

// Reasons of faults.
const (
	// reasonExists is the reason when an object of the manifest already exists; Invalid.
	reasonExists = "ClusterExists"
	// reasonNoNetwork is the reason when no subnet is available; Invalid.
	reasonNoNetwork = "NoFreeNetwork"
	// reasonNetworkDenied is the reason when the operator's policy does not allow the requested subnet; Invalid.
	reasonNetworkDenied = "NetworkDenied"
	// reasonNetworkTaken is the reason when the requested subnet is in use; Invalid.
	reasonNetworkTaken = "NetworkTaken"
)

// CreateMissing creates the objects that do not exist, in order. `slipway create cluster` calls it for the ClusterClass
// and its templates. Existing objects, such as a user's own class, are left unchanged.
func CreateMissing(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	w := kube.NewWriter(c, manager)
	for _, o := range objects {
		switch err := checkAbsent(ctx, c, o, nil); {
		case fault.KindOf(err) == fault.Invalid:
			continue // it exists
		case err != nil:
			return err
		}
		if err := apply(ctx, w, o); err != nil {
			return explainMissingNamespace(o, err)
		}
	}
	return nil
}

// Apply creates the objects of a new cluster with server-side apply, starting with the Cluster, for `slipway create
// cluster`. It returns an error if an object already exists. Shared objects ([template.IsShared]) may exist, and are
// updated. A dry run of all objects precedes the first write, so that an invalid object leaves no others behind.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if template.IsShared(o) {
			continue
		}
		if err := checkAbsent(ctx, c, o, objects[0]); err != nil {
			return err
		}
	}
	for _, through := range []client.Client{client.NewDryRunClient(c), c} {
		w := kube.NewWriter(through, manager)
		for _, o := range objects {
			if err := apply(ctx, w, o); err != nil {
				return explainMissingNamespace(o, err)
			}
		}
	}
	return nil
}

// apply applies an object with the annotation that `kubectl create --save-config` adds, so that a later `kubectl apply`
// of the same object does not warn.
func apply(ctx context.Context, w *kube.Writer, o *unstructured.Unstructured) error {
	plain, saved := o.DeepCopy(), o.DeepCopy()
	if plain.GetAnnotations() == nil {
		plain.SetAnnotations(map[string]string{})
	}
	text, err := plain.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	kube.Annotate(saved, corev1.LastAppliedConfigAnnotation, new(string(text)))
	return w.Apply(ctx, nil, saved)
}

func checkAbsent(ctx context.Context, r client.Reader, o, first *unstructured.Unstructured) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(o.GroupVersionKind())
	err := r.Get(ctx, client.ObjectKeyFromObject(o), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
	case o == first:
		return fault.New(fault.Invalid, reasonExists, "cluster %q exists already in namespace %q: see `slipway describe cluster %s`, or choose another name",
			o.GetName(), o.GetNamespace(), o.GetName())
	}
	return fault.New(fault.Invalid, reasonExists, "%s %q exists already in namespace %q: delete it, or choose another name for the cluster",
		o.GetKind(), o.GetName(), o.GetNamespace())
}

// explainMissingNamespace replaces the error for a missing namespace by one that explains how to create it.
func explainMissingNamespace(o *unstructured.Unstructured, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return err
	}
	if d := status.Status().Details; d != nil && d.Kind == "namespaces" {
		return fault.New(fault.Gone, describe.ReasonNamespace, "there is no namespace %q; `slipway kubectl create namespace %s` creates it",
			o.GetNamespace(), o.GetNamespace()).From(err)
	}
	return err
}

// Delete deletes the Cluster, regardless of concurrent changes by controllers. It does nothing if the Cluster does not
// exist. `slipway delete cluster` calls it.
func Delete(ctx context.Context, c client.Client, key client.ObjectKey) error {
	found := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, found); err != nil {
		return client.IgnoreNotFound(err)
	}
	return kube.NewWriter(c, manager).DeleteAnyway(ctx, found)
}
