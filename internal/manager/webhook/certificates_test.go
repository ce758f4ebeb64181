package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// FL-04: several managers share one certificate; who comes second, at the start or when it is renewed, takes what the
// first has made.
func TestCertificatesAreShared(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	store := fake.NewClientBuilder().Build()
	address := Address{URL: "https://127.0.0.1:9443"}
	manager := func(c client.Client) *Certificates {
		m := NewCertificates(c, "ns", address)
		m.now = func() time.Time { return now }
		return m
	}
	first := manager(store)
	// The second finds nothing, and before it writes the first has.
	raced := interceptor.NewClient(store, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := first.Load(ctx); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
	})
	second := manager(raced)
	if err := second.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.CA(), second.CA()) {
		t.Error("two managers that start together have two authorities")
	}
	before := leafOf(t, second)
	now = now.AddDate(0, 9, 0)
	conflicts := 1
	busy := interceptor.NewClient(store, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if conflicts > 0 {
				conflicts--
				return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, o.GetName(), nil)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	third := manager(busy)
	if err := third.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := leafOf(t, second)
	if after.Equal(before) || !after.Equal(leafOf(t, third)) {
		t.Error("after nine months all managers must serve with one new certificate")
	}
	if !bytes.Equal(first.CA(), second.CA()) {
		t.Error("the authority was not due")
	}
	secret := &corev1.Secret{}
	if err := store.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: secretName}, secret); err != nil {
		t.Fatal(err)
	}
	if secret.Type != corev1.SecretTypeTLS {
		t.Errorf("the Secret is of type %s", secret.Type)
	}
}

// leafOf returns the certificate that a TLS server would show.
func leafOf(t *testing.T, c *Certificates) *x509.Certificate {
	t.Helper()
	config := &tls.Config{}
	c.Serve(config)
	served, err := config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(served.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}
