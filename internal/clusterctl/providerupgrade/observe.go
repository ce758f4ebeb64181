package providerupgrade

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/kube"
)

// decode converts an object to a Go type. plan.go decodes CRDs with it.
func decode(o *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
}

// ReadStored reads the versions in which the CRDs of the changes store objects, for [PlanUpgrade]. `slipway upgrade
// apply` calls it before anything is written. CRDs that do not exist are left out, because they store no objects. It
// writes nothing.
func ReadStored(ctx context.Context, c client.Reader, changes []Change) (map[string]StorageVersions, error) {
	out := map[string]StorageVersions{}
	for _, change := range changes {
		for _, o := range change.To.Objects {
			if o.GetKind() != "CustomResourceDefinition" {
				continue
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err := c.Get(ctx, client.ObjectKeyFromObject(o), crd)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("reading CRD %s: %w", o.GetName(), err)
			}
			out[crd.Name] = StorageVersions{Current: storage(crd), All: crd.Status.StoredVersions}
		}
	}
	return out, nil
}

// ReadCustomisations returns the fields of the components that users have set, and whether they would be lost, for the
// warnings of "slipway upgrade apply". It writes nothing.
func ReadCustomisations(ctx context.Context, c client.Client, changes []Change) ([]Customisation, error) {
	w := kube.NewWriter(c, install.Manager)
	var out []Customisation
	for _, change := range changes {
		objects := change.To.Objects
		for _, o := range change.Present {
			if !containsObject(objects, o) && o.GetKind() != "Namespace" && o.GetKind() != "CustomResourceDefinition" {
				// append must not write into change.To.Objects
				objects = append(objects[:len(objects):len(objects)], o)
			}
		}
		for _, o := range objects {
			found, err := customisationsOf(ctx, c, w, o, containsObject(change.To.Objects, o))
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// customisationsOf returns the customizations of one object. An object that cannot be updated is replaced, and loses
// all of them.
func customisationsOf(ctx context.Context, c client.Reader, w *kube.Writer, o *unstructured.Unstructured, stays bool) ([]Customisation, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(o), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if len(customisations(live, nil)) == 0 {
		return nil, nil
	}
	if !stays {
		return customisations(live, nil), nil
	}
	after, err := w.DryRun(ctx, live, o)
	if apierrors.IsInvalid(err) {
		return customisations(live, nil), nil
	}
	if err != nil {
		return nil, err
	}
	return customisations(live, after), nil
}
