package manager

import (
	"net"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// A second manager of the same providers would take the webhooks of the first, and leave none behind when it ends.
func TestRival(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := func(l net.Listener) string { return "https://" + l.Addr().String() + "/validate" }
	answers, silent := at(other), at(gone)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // the test ends
	port := other.Addr().(*net.TCPAddr).Port
	local := func(without ...policy.Provider) manager.Config {
		cfg := manager.Config{Policy: policy.Default(), Webhook: manager.Webhook{Host: "127.0.0.1", Port: 1}}
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
		"behind a Service":        {nil, local(), false},
		"its own, of before":      {&answers, same, false},
		"it runs other providers": {&answers, local(providerset.Core), false},
	} {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: c.url}}}}
		for _, set := range providerset.All() {
			if set.Name == providerset.Core {
				config.Name = set.Validation()
			}
		}
		scheme, err := manager.NewScheme()
		if err != nil {
			t.Fatal(err)
		}
		err = rival(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(config).Build(), c.cfg)
		if (err != nil) != c.says || err != nil && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), other.Addr().String())) {
			t.Errorf("%s: %v", name, err)
		}
	}
	elected := local()
	elected.LeaderElection.Enabled = true
	if err := checkRival(t.Context(), elected); err != nil {
		t.Errorf("managers that elect a leader: %v", err)
	}
}
