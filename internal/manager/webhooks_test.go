package manager

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/manager/webhook"
)

// A manager that nothing would reach does not start, because every write would fail.
func TestServiceOfWebhooks(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "there"}}
	named := func(name string) webhook.Address {
		return webhook.Address{Service: webhook.Service{Namespace: "ns", Name: name}}
	}
	forbidden := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewForbidden(corev1.Resource("services"), "x", nil)
	}}
	for name, tc := range map[string]struct {
		address webhook.Address
		funcs   interceptor.Funcs
		says    string
	}{
		"there":     {named("there"), interceptor.Funcs{}, ""},
		"missing":   {named("gone"), interceptor.Funcs{}, "Service ns/gone, which does not exist: where this program does not run in a Pod, start it with --webhook-host"},
		"local":     {webhook.Address{URL: "https://127.0.0.1:1"}, interceptor.Funcs{}, ""},
		"forbidden": {named("gone"), forbidden, ""},
	} {
		c := fake.NewClientBuilder().WithObjects(service).WithInterceptorFuncs(tc.funcs).Build()
		err := checkService(t.Context(), c, tc.address)
		if (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
}
