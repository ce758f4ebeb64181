package create_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/create"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, localv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func object(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
	u.SetNamespace("team")
	u.SetName(name)
	return u
}

func TestApply(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team")
	denied := apierrors.NewInvalid(clusterv1.GroupVersion.WithKind("MachinePool").GroupKind(), "demo-workers", nil)
	cases := map[string]struct {
		reason string
		exist  []client.Object
		refuse map[string]error
		kind   fault.Kind
		err    string
		made   int
	}{
		"new":          {"all objects are made", nil, nil, 0, "", 3},
		"exists":       {"a cluster is not created twice", []client.Object{object("Cluster", "demo")}, nil, fault.Invalid, "slipway describe cluster demo", 0},
		"part exists":  {"nor are parts of somebody else's taken over", []client.Object{object("MachinePool", "demo-workers")}, nil, fault.Invalid, "MachinePool \"demo-workers\" exists", 0},
		"shared":       {"what several clusters share may be there already", []client.Object{object("ConfigMap", "slipway-flannel")}, nil, 0, "", 3},
		"no namespace": {"the command that creates it is named", nil, map[string]error{"demo": missing}, fault.Gone, "slipway kubectl create namespace team", 0},
		"refused":      {"when the last object is refused nothing of the others is left behind", nil, map[string]error{"demo-workers": denied}, fault.Invalid, "applying MachinePool team/demo-workers", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made := 0
			c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.exist...).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
					var asked client.PatchOptions
					asked.ApplyOptions(options)
					if err := tc.refuse[o.GetName()]; err != nil {
						return err
					}
					if len(asked.DryRun) == 0 {
						made++
					}
					data, err := p.Data(o)
					applied := &unstructured.Unstructured{}
					if err != nil || applied.UnmarshalJSON(data) != nil {
						t.Fatalf("%v: %s", err, data)
					}
					if saved := applied.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; !strings.Contains(saved, `"name":"`+o.GetName()+`"`) || strings.Contains(saved, "last-applied") {
						t.Errorf("kubectl apply would warn of %s: it has %q", o.GetName(), saved)
					}
					return nil
				},
			}).Build()
			objects := []*unstructured.Unstructured{object("Cluster", "demo"), object("MachinePool", "demo-workers"), object("ConfigMap", "slipway-flannel")}
			err := create.Apply(t.Context(), c, objects)
			if made != tc.made {
				t.Errorf("%s: %d objects were written, want %d", tc.reason, made, tc.made)
			}
			if tc.err == "" {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err == nil || fault.KindOf(err) != tc.kind || !strings.Contains(fault.UserMessage(err), tc.err) {
				t.Errorf("%s: got %v, want %v with %q", tc.reason, err, tc.kind, tc.err)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	key := client.ObjectKey{Namespace: "team", Name: "demo"}
	cases := map[string]struct {
		reason      string
		exist, busy bool
	}{
		"there": {"it is asked for", true, false},
		"gone":  {"what is gone need not be deleted", false, false},
		"busy":  {"a controller that writes in between does not matter", true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					if tc.busy {
						now := &clusterv1.Cluster{}
						if err := c.Get(ctx, key, now); err != nil {
							return err
						}
						now.Labels = map[string]string{"written": "meanwhile"}
						if err := c.Update(ctx, now); err != nil {
							return err
						}
					}
					return c.Delete(ctx, o, options...)
				},
			})
			if tc.exist {
				b.WithObjects(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo"}})
			}
			c := b.Build()
			if err := create.Delete(t.Context(), c, key); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err := c.Get(t.Context(), key, &clusterv1.Cluster{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s: reading it afterwards: %v", tc.reason, err)
			}
		})
	}
}
