package componentconfig_test

import (
	"os"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
)

func TestProblem(t *testing.T) {
	const (
		server    = componentconfig.APIServer
		manager   = componentconfig.ControllerManager
		scheduler = componentconfig.Scheduler
		etcd      = componentconfig.Etcd
	)
	cases := map[string]struct {
		reason      string
		component   componentconfig.Component
		name, value string
		says        string // empty: allowed
	}{
		"gates":             {"", server, "feature-gates", "AllAlpha=true,Other=false", ""},
		"gates of nothing":  {"", server, "feature-gates", "AllAlpha", "must be feature gates"},
		"duration":          {"", server, "event-ttl", "3h", ""},
		"long duration":     {"the database would grow", server, "event-ttl", "8760h", "from 1m0s to 24h0m0s"},
		"no duration":       {"", server, "event-ttl", "3", "from 1m0s"},
		"log":               {"", server, "v", "4", ""},
		"talkative log":     {"it would contain Secrets", server, "v", "8", "from 0 to 4"},
		"plugins":           {"", server, "enable-admission-plugins", "AlwaysPullImages,NamespaceExists", ""},
		"plugin with file":  {"", server, "enable-admission-plugins", "ImagePolicyWebhook", "must be a list of"},
		"node restriction":  {"a node would write any other", server, "disable-admission-plugins", "NodeRestriction", "must be a list of"},
		"groups":            {"", server, "runtime-config", "api/all=true,batch/v1=false", ""},
		"ports":             {"", server, "service-node-port-range", "30000-32767", ""},
		"ports backwards":   {"", server, "service-node-port-range", "32767-30000", "a range of ports"},
		"port of the host":  {"", server, "service-node-port-range", "22-32767", "a range of ports"},
		"fraction":          {"", server, "goaway-chance", "0.01", ""},
		"no number":         {"", server, "goaway-chance", "NaN", "from 0 to 0.02"},
		"suites":            {"", server, "tls-cipher-suites", "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384", ""},
		"second line":       {"a pattern holds for the whole value", server, "tls-cipher-suites", "TLS_AES_128_GCM_SHA256\n/etc/passwd", "names of cipher suites"},
		"controllers":       {"", manager, "controllers", "*,-ttl-controller", ""},
		"workers":           {"", manager, "concurrent-deployment-syncs", "10", ""},
		"many workers":      {"", manager, "concurrent-deployment-syncs", "100000", "from 1 to 50"},
		"of another":        {"", manager, "event-ttl", "3h", "cannot be set"},
		"etcd":              {"", etcd, "auto-compaction-retention", "5m", ""},
		"size of etcd":      {"", etcd, "quota-backend-bytes", "1099511627776", "must be a number"},
		"database":          {"the management cluster's", server, "etcd-servers-overrides", "/secrets#unix:///x", "cannot be set"},
		"log file":          {"", server, "audit-log-path", "/root/.bashrc", "cannot be set"},
		"command":           {"", server, "audit-webhook-config-file", "/x", "cannot be set"},
		"socket":            {"", server, "debug-socket-path", "/x", "cannot be set"},
		"certificates":      {"", server, "cert-dir", "/x", "cannot be set"},
		"authorization":     {"", server, "authorization-mode", "AlwaysAllow", "cannot be set"},
		"address":           {"", server, "bind-address", "0.0.0.0", "cannot be set"},
		"egress":            {"", server, "egress-selector-config-file", "/x", "cannot be set"},
		"plugins of volume": {"", manager, "flex-volume-plugin-dir", "/x", "cannot be set"},
		"host paths":        {"", manager, "enable-hostpath-provisioner", "true", "cannot be set"},
		"configuration":     {"", scheduler, "config", "/x", "cannot be set"},
		"write-ahead log":   {"", etcd, "wal-dir", "/x", "cannot be set"},
		"no sync":           {"", etcd, "unsafe-no-fsync", "true", "cannot be set"},
		"no component":      {"", "kubelet", "v", "1", "cannot be set"},
	}
	for name, tc := range cases {
		got := componentconfig.FlagProblem(tc.component, tc.name, tc.value)
		if (tc.says == "") != (got == "") || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.says)
		}
	}
}

// No flag of the lists says by its name that it reaches the host.
func TestNothingReachesTheHost(t *testing.T) {
	parts := []string{"file", "-dir", "path", "socket", "url", "address", "-servers", "kubeconfig", "config-", "host", "proxy", "webhook", "cert", "-key", "port"}
	allowed := map[string]string{
		"runtime-config": "", "service-node-port-range": "a port of nodes", "http2-max-streams-per-connection": "", "kubelet-preferred-address-types": "words of a list",
	}
	for _, c := range []componentconfig.Component{componentconfig.APIServer, componentconfig.ControllerManager, componentconfig.Scheduler, componentconfig.Etcd} {
		names, values := componentconfig.FlagNames(c)
		if len(names) == 0 {
			t.Errorf("%s has no flags: the test looks at nothing", c)
		}
		for _, name := range names {
			_, known := allowed[name]
			for _, part := range parts {
				if strings.Contains(name, part) && !known {
					t.Errorf("--%s of %s", name, c)
				}
			}
			for _, value := range []string{"/etc/passwd", "unix:///x", "https://10.0.0.1", "file:///x", "../x"} {
				if componentconfig.FlagProblem(c, name, value) == "" {
					t.Errorf("--%s=%s of %s is allowed (%s)", name, value, c, values[name])
				}
			}
		}
	}
}

// The documentation lists what is allowed.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../../docs/hosted-control-plane.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []componentconfig.Component{componentconfig.APIServer, componentconfig.ControllerManager, componentconfig.Scheduler, componentconfig.Etcd} {
		names, _ := componentconfig.FlagNames(c)
		if row := "| " + string(c) + " | `" + strings.Join(names, "`, `") + "` |\n"; !strings.Contains(string(text), row) {
			t.Errorf("docs/hosted-control-plane.md lacks the row\n%s", row)
		}
	}
}
