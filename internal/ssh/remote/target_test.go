package remote

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		target Target
		valid  bool
	}{
		"IPv4":            {"an address", Target{Address: "192.0.2.1", User: "root"}, true},
		"IPv6":            {"an address", Target{Address: "2001:db8::1", User: "root"}, true},
		"name":            {"a DNS name", Target{Address: "node-1.example.com", User: "ops"}, true},
		"option":          {"a name that a program could take for an option", Target{Address: "-oProxyCommand=x", User: "root"}, false},
		"space":           {"an address ends at a space", Target{Address: "192.0.2.1 x", User: "root"}, false},
		"line break":      {"a name has one line", Target{Address: "a\nb", User: "root"}, false},
		"no address":      {"there must be one", Target{User: "root"}, false},
		"user":            {"a user is no option", Target{Address: "a", User: "-x"}, false},
		"user with quote": {"a user has no quote", Target{Address: "a", User: "a'b"}, false},
		"port":            {"a port has 16 bits", Target{Address: "a", User: "root", Port: 65536}, false},
		"jump":            {"a jump host is a host", Target{Address: "a", User: "root", Jump: &Target{Address: "b", User: "root"}}, true},
		"bad jump":        {"a jump host is checked, too", Target{Address: "a", User: "root", Jump: &Target{Address: "b c", User: "root"}}, false},
		"two jumps":       {"one is supported", Target{Address: "a", User: "root", Jump: &Target{Address: "b", User: "root", Jump: &Target{Address: "c", User: "root"}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.target.check(); (err == nil) != tc.valid {
				t.Errorf("%s: %v", tc.reason, err)
			} else if err != nil && fault.KindOf(err) != fault.Invalid {
				t.Errorf("the kind is %v", fault.KindOf(err))
			}
		})
	}
}

func TestHostKeyAlgorithms(t *testing.T) {
	key, err := parseHostKey("ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=")
	if err != nil {
		t.Fatal(err)
	}
	got := hostKeyAlgorithms([]ssh.PublicKey{key})
	if got[0] != ssh.KeyAlgoECDSA256 || len(got) != 6 {
		t.Errorf("the algorithm of the pinned key must come first, and the others must remain: %v", got)
	}
	for _, a := range got {
		if a == ssh.KeyAlgoRSA || strings.Contains(a, "dss") {
			t.Errorf("%s uses SHA-1", a)
		}
	}
}

func TestKeyDiffersByCredentials(t *testing.T) {
	a := Target{Address: "a", User: "root", PrivateKey: []byte("one")}
	b := a
	b.PrivateKey = []byte("two")
	if a.key() == b.key() {
		t.Error("a host with another key needs another connection")
	}
	if diff := cmp.Diff(a.key(), a.key()); diff != "" {
		t.Error(diff)
	}
}
