package manager

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/cli/up"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// RT-17: an extension that lets no one call but the manager of `slipway up` trusts the authority of the management cluster and knows
// the name. The certificate is the one that the management cluster has issued, and the manager is configured as it is when it runs.
func TestExtensionsSeeTheManager(t *testing.T) {
	dir := datadir.Dir(apiserver.Start(t, apiserver.Options{}).Dir)
	authority, err := os.ReadFile(dir.Path("pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	callers := x509.NewCertPool()
	callers.AppendCertsFromPEM(authority)
	var seen []string
	x := hooktest.Start(t, hooktest.Options{TLS: func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, callers
	}})
	x.Serve(hooks.Discovery.Path(""), func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.TLS.PeerCertificates[0].Subject.CommonName)
		hooktest.Raw(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryResponse","status":"Success","handlers":[]}`)(w, r)
	})
	rules := policy.Default()
	for _, set := range rules.Sets() { // their identities are not of interest
		rules.Disable(set.Name)
	}
	cfg, err := embeddedConfig(term.Env{Err: io.Discard}, up.Instructions{Dir: dir, Policy: rules}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		with   manager.Extensions
		served bool
	}{
		"as the manager of slipway up": {cfg.Extensions, true},
		"without a certificate":        {manager.Extensions{}, false},
	} {
		extensions, err := manager.PlannedExtensions(tc.with)
		if err != nil {
			t.Fatal(err)
		}
		state, err := extensions.Discover(t.Context(), x.ExtensionConfig("ext"))
		if err != nil || (state.Problem == nil) != tc.served {
			t.Errorf("%s: %v, %v", name, state.Problem, err)
		}
	}
	if diff := cmp.Diff([]string{"slipway:extensions"}, seen); diff != "" {
		t.Errorf("callers that the extension saw (-want +got):\n%s", diff)
	}
}
