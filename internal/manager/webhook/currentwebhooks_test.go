package webhook

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/providerset"
)

// PA-02: of managers that share a management cluster the last one that started serves the webhooks. When it has ended, or another
// program listens at its port, one that still runs finds that out; one that answers keeps them.
func TestFind(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	at := func(a net.Addr) *string { return new("https://" + a.String() + "/validate") }
	type found struct {
		host    string
		answers bool
	}
	sets := providerset.All()
	core := sets[slices.IndexFunc(sets, func(s providerset.Set) bool { return s.Name == providerset.Core })]
	for name, c := range map[string]struct {
		url  *string
		sets []providerset.Set
		want []found
	}{
		"answers":                     {url: at(server.Listener.Addr()), want: []found{{server.Listener.Addr().String(), true}}},
		"ended":                       {url: at(gone.Addr()), want: []found{{gone.Addr().String(), false}}},
		"another program":             {url: at(plain.Listener.Addr()), want: []found{{plain.Listener.Addr().String(), false}}},
		"a host without a port":       {url: new("https://127.0.0.1/validate"), want: []found{{"127.0.0.1", false}}},
		"behind a Service":            {},
		"of a provider that it lacks": {url: at(gone.Addr()), sets: []providerset.Set{}},
	} {
		t.Run(name, func(t *testing.T) {
			config := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: c.url, CABundle: authority}}}}
			config.Name = core.ValidatingWebhookName()
			var got []found
			for _, e := range FindCurrentWebhooks(t.Context(), fake.NewClientBuilder().WithObjects([]client.Object{config}...).Build(), Address{Sets: c.sets}) {
				if e.Set.Name != providerset.Core {
					t.Errorf("a provider without a configuration: %s", e.Set.Name)
				}
				got = append(got, found{e.Host, e.Responds(t.Context())})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
