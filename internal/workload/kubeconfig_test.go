package workload_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/workload"
)

// written is a kubeconfig with more in its entries.
func written(server, cluster, user string) []byte {
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
  clusters: [{name: k, cluster: {server: %q %s}}], users: [{name: u, user: {%s}}]}`, server, cluster, user)
}

// What a Secret may contain: embedded credentials and an https address.
func TestParse(t *testing.T) { // RC-01
	many := strings.Repeat(`{name: x, user: {token: t}},`, 1)
	for i := range workload.MaxKubeconfigEntries {
		many += fmt.Sprintf(`{name: x%d, user: {token: t}},`, i)
	}
	cases := map[string]struct {
		reason string
		text   []byte
		says   string // empty: accepted
	}{
		"token":             {"embedded credentials are used", written("https://x:1", "", "token: t"), ""},
		"password":          {"likewise", written("https://x:1", "", "username: a, password: b"), ""},
		"path":              {"a proxy of APIs has one per cluster", written("https://x/k8s/clusters/a", "", "token: t"), ""},
		"no user":           {"an API may ask for no credentials", []byte(`{clusters: [{name: k, cluster: {server: "https://x"}}], contexts: [{name: c, context: {cluster: k}}], current-context: c}`), ""},
		"exec":              {"a Secret must not run commands here", written("https://x:1", "", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}"), "run a command"},
		"plugin":            {"likewise", written("https://x:1", "", "auth-provider: {name: oidc}"), "plugin"},
		"token file":        {"a Secret must not read files here", written("https://x:1", "", "tokenFile: /etc/passwd"), "names files"},
		"token file beside": {"it would take precedence over the token", written("https://x:1", "", "token: t, tokenFile: /etc/passwd"), "names files"},
		"key file":          {"likewise", written("https://x:1", "", "client-key: /k"), "names files"},
		"certificate file":  {"likewise", written("https://x:1", "", "client-certificate: /k"), "names files"},
		"authority file":    {"likewise", written("https://x:1", ", certificate-authority: /ca", "token: t"), "names a file"},
		"not verified":      {"any server in between would learn the credentials", written("https://x:1", ", insecure-skip-tls-verify: true", "token: t"), "insecure-skip-tls-verify"},
		"plain HTTP":        {"it reaches services that know no TLS", written("http://x:1", "", "token: t"), "https://"},
		"no scheme":         {"client-go would choose HTTP", written("x:80", "", "token: t"), "https://"},
		"socket":            {"no file of this host", written("unix:///run/docker.sock", "", "token: t"), "https://"},
		"user in URL":       {"credentials are in the user entry", written("https://a:b@x", "", ""), "without user"},
		"query":             {"requests have their own", written("https://x?a=b", "", ""), "query"},
		"proxy":             {"proxies are the operator's choice", written("https://x", ", proxy-url: \"socks5://10.0.0.1:1080\"", "token: t"), "workloads.proxies"},
		"impersonation":     {"credentials are those of the user", written("https://x", "", "token: t, as: root"), "(as)"},
		"groups":            {"likewise", written("https://x", "", "token: t, as-groups: [system:masters]"), "(as)"},
		"another entry":     {"every entry is checked", []byte(strings.Replace(string(written("https://x", "", "token: t")), "users: [", "users: [{name: v, user: {tokenFile: /x}},", 1)), "names files"},
		"many":              {"parsing and checking are bounded", []byte(strings.Replace(string(written("https://x", "", "token: t")), "users: [", "users: ["+many, 1)), "more than 20"},
		"long":              {"likewise", append(written("https://x", "", "token: t"), bytes.Repeat([]byte("\n"), workload.MaxKubeconfigBytes)...), "256 KiB"},
		"authority":         {"it is said at once", written("https://x", ", certificate-authority-data: eA==", "token: t"), "contains no certificate"},
		"certificate":       {"likewise", written("https://x", "", "client-certificate-data: eA==, client-key-data: eA=="), "not a certificate and its key"},
		"no context":        {"", []byte(`{}`), "current-context"},
		"no cluster":        {"", []byte(`{contexts: [{name: c, context: {cluster: k}}], current-context: c}`), "names a cluster"},
		"other user":        {"", []byte(`{clusters: [{name: k, cluster: {server: "https://x"}}], contexts: [{name: c, context: {cluster: k, user: v}}], current-context: c}`), "names a user"},
		"nonsense":          {"", []byte("nonsense: ["), "cannot be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg, err := workload.ParseKubeconfig(tc.text, policy.Default())
			if tc.says == "" {
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				harmless(t, cfg)
				return
			}
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), tc.says) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.says)
			}
		})
	}
}

// harmless fails where a configuration names something outside of itself.
func harmless(t *testing.T, cfg *rest.Config) {
	t.Helper()
	c := cfg.TLSClientConfig
	if cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.BearerTokenFile != "" || c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" ||
		c.Insecure || cfg.Impersonate.UserName != "" || cfg.Impersonate.UID != "" || len(cfg.Impersonate.Groups) > 0 ||
		!strings.HasPrefix(cfg.Host, "https://") {
		t.Errorf("the configuration reaches outside of the kubeconfig: %#v", cfg)
	}
	if cfg.Proxy != nil {
		t.Error("the configuration has a proxy")
	}
}

// What the operator allows, and nothing else, is used.
func TestOperatorsRules(t *testing.T) { // RC-01
	allowed := policy.Default()
	allowed.Workloads.Proxies = []string{"http://proxy:3128"}
	cfg, err := workload.ParseKubeconfig(written("https://x", `, proxy-url: "http://proxy:3128"`, "token: t"), allowed)
	if err != nil {
		t.Fatal(err)
	}
	if proxy, err := cfg.Proxy(httptest.NewRequest(http.MethodGet, "https://x", nil)); err != nil || proxy.String() != "http://proxy:3128" {
		t.Errorf("proxy %v, %v", proxy, err)
	}
	allowed.Workloads.Ranges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for server, denied := range map[string]string{
		"https://10.1.2.3:6443": "", "https://127.0.0.1:6443": "workloads.ranges", "https://[::1]:6443": "workloads.ranges",
		"https://[::ffff:127.0.0.1]": "workloads.ranges", "https://[fe80::1%25eth0]": "workloads.ranges",
	} {
		_, err := workload.ParseKubeconfig(written(server, "", "token: t"), allowed)
		if denied == "" && err != nil || denied != "" && (err == nil || !strings.Contains(err.Error(), denied)) {
			t.Errorf("%s: got %v, want %q", server, err, denied)
		}
	}
	if _, err := workload.ParseKubeconfig(written("https://x", `, proxy-url: "http://proxy:3128"`, "token: t"), allowed); err == nil || !strings.Contains(err.Error(), "use an IP address") {
		t.Errorf("a name that the proxy resolves: %v", err)
	}
}

// A host name that means an address outside of the ranges is found out when it is resolved.
func TestNamesAreResolvedFirst(t *testing.T) { // RC-01
	asked := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	named := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	allowed := policy.Default()
	allowed.Workloads.Ranges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	cfg, err := workload.ParseKubeconfig(written(named, "", "token: t"), allowed)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: cfg.Dial, Proxy: cfg.Proxy, TLSClientConfig: &tls.Config{RootCAs: nil}}}
	_, err = client.Get(named) //nolint:bodyclose // there is none
	var f *fault.Fault
	if !errors.As(err, &f) || !strings.Contains(f.Message, "workloads.ranges") || asked {
		t.Errorf("connected to an address outside of the ranges: %v", err)
	}
}

// FuzzParse: whatever is accepted names nothing outside of itself.
func FuzzParse(f *testing.F) { // RC-01
	ca, err := pki.NewAuthority(pki.Authority{Name: "a", Algorithm: "ECDSA-P256"}, time.Unix(0, 0))
	if err != nil {
		f.Fatal(err)
	}
	text, err := pki.Access{Context: "c", User: "u", Server: "https://10.0.0.1:6443", CA: ca.CertPEM}.Embedded(ca)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(written("https://x:1", "", "token: t"))
	f.Add(written("http://x", ", insecure-skip-tls-verify: true", "exec: {command: sh}, tokenFile: /x, as: a"))
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg, err := workload.ParseKubeconfig(text, policy.Default())
		if err != nil {
			if fault.KindOf(err) != fault.Invalid || fault.As(err).Reason != workload.ReasonKubeconfigInvalid {
				t.Errorf("a fault of another kind: %v", err)
			}
			return
		}
		harmless(t, cfg)
	})
}
