package extensiontools_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit"
)

// A session that was killed leaves its registration behind; the next one of the same name takes it over.
func TestRegisterTakesOver(t *testing.T) {
	c := exampleCluster(t)
	first, err := extensiontools.Register(t.Context(), c, extensiontools.LocalRegistration{Name: "mine", URL: "https://127.0.0.1:1", CA: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	second, err := extensiontools.Register(t.Context(), c, extensiontools.LocalRegistration{Name: "mine", URL: "https://127.0.0.1:2", CA: []byte("b")})
	if err != nil || second.Spec.ClientConfig.URL != "https://127.0.0.1:2" || string(second.Spec.ClientConfig.CABundle) != "b" || second.UID != first.UID {
		t.Errorf("got %+v, %v", second.Spec, err)
	}
	if err := extensiontools.DeleteRegistration(t.Context(), c, "mine"); err != nil {
		t.Fatal(err)
	}
	if err := extensiontools.DeleteRegistered(t.Context(), c, second); err != nil {
		t.Errorf("what is gone already is no error: %v", err)
	}
	if err := extensiontools.DeleteRegistration(t.Context(), c, "mine"); fault.KindOf(err) != fault.Gone || !strings.Contains(err.Error(), "there are none") {
		t.Errorf("got %v", err)
	}
}

// Whichever write fails, doing it again leads to one registration, and to none.
func TestRegisterOverFailingWrites(t *testing.T) {
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	again := func(t *testing.T, do func() error) {
		t.Helper()
		if err := do(); err != nil && !errors.Is(err, testkit.ErrInjected) {
			t.Fatal(err)
		} else if err == nil {
			return
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return fake.NewClientBuilder().WithScheme(scheme) }, func(t *testing.T, c client.WithWatch) {
		var config *runtimev1.ExtensionConfig
		for _, url := range []string{"https://127.0.0.1:1", "https://127.0.0.1:2"} {
			again(t, func() (err error) {
				config, err = extensiontools.Register(t.Context(), c, extensiontools.LocalRegistration{Name: "mine", URL: url})
				return err
			})
		}
		if all, err := extensiontools.ListExtensions(t.Context(), c); err != nil || len(all) != 1 || all[0].Spec.ClientConfig.URL != "https://127.0.0.1:2" {
			t.Errorf("registered: %+v %v", all, err)
		}
		again(t, func() error { return extensiontools.DeleteRegistered(t.Context(), c, config) })
		if all, err := extensiontools.ListExtensions(t.Context(), c); err != nil || len(all) != 0 {
			t.Errorf("left: %+v %v", all, err)
		}
	})
}

// Waiting for discovery says why it takes long.
func TestAwait(t *testing.T) {
	c := exampleCluster(t)
	config, err := extensiontools.Register(t.Context(), c, extensiontools.LocalRegistration{Name: "mine", URL: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := extensiontools.AwaitDiscovery(ctx, c, config, func(string) {}); fault.KindOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "is the feature gate RuntimeSDK on?") {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	var reasons []string
	config.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "False", Reason: "NotDiscovered", Message: "nothing listens", LastTransitionTime: metav1.Now()}}
	if err := c.Status().Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	_, err = extensiontools.AwaitDiscovery(ctx, c, config, func(reason string) { reasons = append(reasons, reason); cancel() })
	if !errors.Is(err, context.Canceled) || !cmp.Equal(reasons, []string{"nothing listens"}) {
		t.Errorf("got %v, told %q", err, reasons)
	}
}
