package redact_test

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/redact"
)

// What a script prints lands in a condition, which more people read than may read Secrets.
func TestTail(t *testing.T) {
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("A", 64) + "\nAAAA\n-----END RSA PRIVATE KEY-----"
	for name, tc := range map[string]struct{ log, want string }{
		"plain":              {"+ kubeadm join\nerror: no route to host", "+ kubeadm join\nerror: no route to host"},
		"bootstrap token":    {"--token abcdef.0123456789abcdef x", "--token *** x"},
		"certificate key":    {strings.Repeat("0a", 32), "***"},
		"private key":        {"a\n" + key + "\nb", "a\n***\nb"},
		"the end of a key":   {strings.Repeat("A", 64) + "\nb", "***\nb"},
		"a key that is cut":  {"a\n" + key[:60], "a\n***"},
		"web token":          {"curl -H eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhIn0.c2ln x", "curl -H *** x"},
		"password":           {"+ PASSWORD=hunter2 run", "+ PASSWORD=*** run"},
		"password in quotes": {`password: "hunter2" run`, `***" run`},
		"a word about one":   {"the token was refused", "the token was refused"},
		"control characters": {"a\x1b]31mb\x00", "a]31mb"},
		"colors":             {"\x1b[0;37mCGROUPS_CPU\x1b[0m: \x1b[0;32menabled\x1b[0m", "CGROUPS_CPU: enabled"},
		"colors in a secret": {"--token abcdef\x1b[0m.0123456789abcdef", "--token ***"},
	} {
		if got := redact.Tail(tc.log, 4096); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := redact.Tail(strings.Repeat("0123456789\n", 1000), 100); len(got) > 100 || !strings.HasPrefix(got, "0123456789\n") {
		t.Errorf("a long log is cut at a line; got %d bytes starting %q", len(got), got[:20])
	}
}
