package describe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
)

func builder(t *testing.T, keys ...string) *fake.ClientBuilder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, key := range keys {
		ns, name, _ := strings.Cut(key, "/")
		b.WithObjects(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
	}
	return b
}

func TestGet(t *testing.T) {
	many := []string{}
	for i := range 12 {
		many = append(many, fmt.Sprintf("default/c%02d", i))
	}
	cases := map[string]struct {
		reason   string
		clusters []string
		want     string
	}{
		"found":             {"nothing to say", []string{"default/demo"}, ""},
		"none":              {"the next step is to create one", nil, "`slipway create cluster demo` creates it"},
		"others":            {"a mistyped name is seen in the list", []string{"default/dema", "b/x"}, "there are: dema"},
		"another namespace": {"a forgotten -n is the usual reason", []string{"team-b/demo", "default/x"}, "add -n team-b"},
		"elsewhere":         {"other namespaces are searched too", []string{"team-b/x"}, "in other namespaces there are: team-b/x"},
		"many":              {"a list stays readable", many, "c09 and 2 more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := describe.GetCluster(context.Background(), builder(t, tc.clusters...).Build(), client.ObjectKey{Namespace: "default", Name: "demo"})
			if tc.want == "" {
				if err != nil || got.Name != "demo" {
					t.Fatalf("%s: got %v, %v", tc.reason, got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || fault.KindOf(err) != fault.Gone {
				t.Errorf("%s: got %v (%v), want a Gone fault with %q", tc.reason, err, fault.KindOf(err), tc.want)
			}
		})
	}
}

func TestGetPassesErrorsOn(t *testing.T) {
	refused := errors.New("refused")
	c := builder(t).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refused
		},
	}).Build()
	if _, err := describe.GetCluster(context.Background(), c, client.ObjectKey{Name: "demo"}); !errors.Is(err, refused) {
		t.Errorf("got %v, want the error of the API", err)
	}
}
