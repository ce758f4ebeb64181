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

// Release is a version of an infrastructure provider, and a flavor of its templates.
type Release struct {
	Source  *repository.Source
	Version string
	Flavor  string
}

// Text is the text of the template.
func (r Release) Text(ctx context.Context) ([]byte, error) {
	return r.Source.Template(ctx, r.Version, r.Flavor)
}

// Template makes the manifest, with the ClusterClasses that it names and the management cluster does not have. A reader of nil has
// none.
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

// classesOf are the ClusterClasses that Clusters name and the manifest does not have.
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

// classOf is the class of a Cluster in either version.
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

// class is the manifest of a ClusterClass; nil: the management cluster has it. It is refused where the management cluster has
// parts of it: it is not known whose they are.
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
			return nil, fault.New(fault.Invalid, ReasonTemplate, "ClusterClass %s does not exist, but %s %s, which is a part of it, does; delete it, or create the class from its parts",
				key, part.GetKind(), client.ObjectKeyFromObject(part))
		}
	}
	return t, nil
}

// exists reports whether the management cluster has an object; one that does not have the kind has none.
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
