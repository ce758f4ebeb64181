package manager

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// A second manager of the same providers would take the webhooks of the first, and leave none behind when it ends.
func TestRival(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	other, authority := server.Listener, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close() //nolint:errcheck // the test ends
	go func() {
		for {
			connection, err := stranger.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
	}()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := func(l net.Listener) string { return "https://" + l.Addr().String() + "/validate" }
	answers, silent, otherProgram := at(other), at(gone), at(stranger)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	port := other.Addr().(*net.TCPAddr).Port
	local := func(without ...policy.Provider) manager.Config {
		cfg := manager.Config{Policy: policy.Default(), Webhook: manager.Webhook{Host: "127.0.0.1", Port: 1, Local: true}}
		cfg.Policy.Providers.Disabled = without
		return cfg
	}
	same := local()
	same.Webhook.Port = port
	for name, c := range map[string]struct {
		url  *string
		cfg  manager.Config
		says bool
	}{
		"another one runs":        {&answers, local(), true},
		"it has ended":            {&silent, local(), false},
		"another program":         {&otherProgram, local(), false},
		"behind a Service":        {nil, local(), false},
		"at the same port":        {&answers, same, true},
		"it runs other providers": {&answers, local(providerset.Core), false},
	} {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: c.url, CABundle: authority}}}}
		for _, set := range providerset.All() {
			if set.Name == providerset.Core {
				config.Name = set.ValidatingWebhookName()
			}
		}
		scheme, err := manager.NewScheme()
		if err != nil {
			t.Fatal(err)
		}
		err = checkManagerResponds(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(config).Build(), c.cfg)
		if (err != nil) != c.says || err != nil && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), other.Addr().String())) {
			t.Errorf("%s: %v", name, err)
		}
	}
	elected, filtered, limited := local(), local(), local()
	elected.REST = &rest.Config{Host: "https://127.0.0.1:1"} // its lease cannot be read: someone may hold it
	elected.LeaderElection.Enabled, filtered.WatchFilter, limited.Namespaces = true, "blue", []string{"team-a"}
	for name, cfg := range map[string]manager.Config{"elects a leader": elected, "has a label": filtered, "has a namespace": limited} {
		if err := checkOtherManager(t.Context(), cfg); err != nil {
			t.Errorf("a manager that %s: %v", name, err)
		}
	}
}

// A manager of the reference and one of ours for the same provider undo each other's writes, without an end (interop 3).
func TestReferenceIsInstalled(t *testing.T) {
	installed := func(name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		config.Name = name
		return config
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		installed string
		without   []policy.Provider
		want      string
	}{
		"core":                           {"capi-validating-webhook-configuration", nil, "clusterctl delete --core cluster-api"},
		"bootstrap":                      {"capi-kubeadm-bootstrap-validating-webhook-configuration", nil, "clusterctl delete --bootstrap kubeadm"},
		"control plane":                  {"capi-kubeadm-control-plane-validating-webhook-configuration", nil, "clusterctl delete --control-plane kubeadm"},
		"a provider that this one lacks": {"capi-validating-webhook-configuration", []policy.Provider{providerset.Core}, ""},
		"a provider of others":           {"capa-validating-webhook-configuration", nil, ""},
	} {
		cfg := manager.Config{Policy: policy.Default()}
		cfg.Policy.Providers.Disabled = c.without
		err := checkReference(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(installed(c.installed)).Build(), cfg)
		if (err != nil) != (c.want != "") || err != nil && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.installed)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
