package template

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Release is a version of an infrastructure provider, and a flavor of its templates, for "slipway generate cluster".
type Release struct {
	Source  *repository.Source
	Version string
	Flavor  string
}

// Text returns the text of the template. `slipway generate cluster` reads the variables from it.
func (r Release) Text(ctx context.Context) ([]byte, error) {
	return r.Source.Template(ctx, r.Version, r.Flavor)
}

// Template builds the manifest, including the ClusterClasses that its Clusters use and that do not exist in the
// management cluster. If existing is nil, none exist.
func (r Release) Template(ctx context.Context, existing client.Reader, o Options) (*Template, error) {
	text, err := r.Text(ctx)
	if err != nil {
		return nil, err
	}
	t, err := New(text, o)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Backward(classesOf(t.Objects)) {
		class, err := r.class(ctx, existing, key, o)
		if err != nil {
			return nil, err
		}
		if class != nil {
			t.Merge(class)
		}
	}
	return t, nil
}

// classesOf returns the ClusterClasses that Clusters use and that are not in the manifest.
func classesOf(objects []*unstructured.Unstructured) []client.ObjectKey {
	var out []client.ObjectKey
	own := map[client.ObjectKey]bool{}
	for _, o := range objects {
		if o.GroupVersionKind().Group != clusterv1.GroupVersion.Group {
			continue
		}
		switch o.GetKind() {
		case "ClusterClass":
			own[client.ObjectKeyFromObject(o)] = true
		case "Cluster":
			if key := classOf(o); key.Name != "" && !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return slices.DeleteFunc(out, func(key client.ObjectKey) bool { return own[key] })
}

// classOf returns the class of a Cluster of either API version.
func classOf(o *unstructured.Unstructured) client.ObjectKey {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(o.Object, append([]string{"spec", "topology"}, fields...)...)
		return value
	}
	key := client.ObjectKey{Namespace: text("classRef", "namespace"), Name: text("classRef", "name")}
	if key.Name == "" {
		key = client.ObjectKey{Namespace: text("classNamespace"), Name: text("class")}
	}
	if key.Namespace == "" {
		key.Namespace = o.GetNamespace()
	}
	return key
}

// class returns the manifest of a ClusterClass; nil if the class exists in the management cluster. It returns an error
// if only parts of the class exist there, because their owner is unknown.
func (r Release) class(ctx context.Context, existing client.Reader, key client.ObjectKey, o Options) (*Template, error) {
	there, err := exists(ctx, existing, clusterv1.GroupVersion.String(), "ClusterClass", key)
	if there || err != nil {
		return nil, err
	}
	text, err := r.Source.ClusterClass(ctx, r.Version, key.Name)
	if err != nil {
		return nil, err
	}
	o.Namespace = key.Namespace
	t, err := New(text, o)
	if known := fault.As(err); known != nil {
		return nil, fault.New(known.Kind, known.Reason, "clusterclass-%s.yaml: %s", key.Name, known.Message).From(err)
	}
	if err != nil {
		return nil, err
	}
	for _, part := range t.Objects {
		there, err := exists(ctx, existing, part.GetAPIVersion(), part.GetKind(), client.ObjectKeyFromObject(part))
		if err != nil {
			return nil, err
		}
		if there {
			return nil, fault.New(fault.Invalid, reasonTemplate, "ClusterClass %s does not exist, but %s %s, which is part of it, exists; delete this object, or create the ClusterClass from its existing parts",
				key, part.GetKind(), client.ObjectKeyFromObject(part))
		}
	}
	return t, nil
}

// exists reports whether an object exists in the management cluster. If its kind is not installed, it does not.
func exists(ctx context.Context, r client.Reader, apiVersion, kind string, key client.ObjectKey) (bool, error) {
	if r == nil {
		return false, nil
	}
	o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
	err := r.Get(ctx, key, o)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	}
	return false, fmt.Errorf("reading %s %s: %w", kind, key, err)
}
