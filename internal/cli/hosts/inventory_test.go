package hosts

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
)

func TestParseInventory(t *testing.T) {
	yes := true
	cases := map[string]struct {
		reason, text string
		want         []entry
	}{
		"defaults": {
			"a host overrides the defaults, and labels are merged",
			"defaults: {user: ops, keyFile: k, sudo: true, labels: {a: '1', b: '2'}}\nhosts:\n- address: 192.0.2.1\n- address: 192.0.2.2\n  user: root\n  labels: {b: '3'}\n",
			[]entry{
				{Address: "192.0.2.1", User: "ops", KeyFile: "k", Sudo: &yes, Labels: map[string]string{"a": "1", "b": "2"}},
				{Address: "192.0.2.2", User: "root", KeyFile: "k", Sudo: &yes, Labels: map[string]string{"a": "1", "b": "3"}},
			},
		},
		"misspelled": {"an unknown field would be ignored", "hosts:\n- adress: 192.0.2.1\n", nil},
		"empty":      {"there is nothing to add", "hosts: []\n", nil},
		"no YAML":    {"anything else", "\t{", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseInventory([]byte(tc.text))
			if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.want != nil) {
				t.Errorf("%s: %v %s", tc.reason, err, diff)
			}
		})
	}
}

func TestNameFor(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "host-192-0-2-1", "2001:db8::1": "host-2001-db8-1", "Rack1-1.example.com": "rack1-1", "web_1": "web-1",
	} {
		if got := nameFor(address); got != want {
			t.Errorf("%s: %s instead of %s", address, got, want)
		}
	}
}

func TestParseJump(t *testing.T) {
	cases := map[string]*jump{
		"192.0.2.1":              {"root", "192.0.2.1", 22},
		"ops@gate.example.com":   {"ops", "gate.example.com", 22},
		"ops@192.0.2.1:2222":     {"ops", "192.0.2.1", 2222},
		"ops@[2001:db8::1]:2222": {"ops", "2001:db8::1", 2222},
		"2001:db8::1":            {"root", "2001:db8::1", 22},
		"":                       nil,
	}
	for text, want := range cases {
		got, err := parseJump(text)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"@", "ops@", "a:b", "a:99999"} {
		if _, err := parseJump(text); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestComplete(t *testing.T) {
	cases := map[string]struct {
		reason string
		entry  entry
		valid  bool
	}{
		"good":     {"an address and a key", entry{Address: "192.0.2.1", KeyFile: "k"}, true},
		"no key":   {"a key is required", entry{Address: "192.0.2.1"}, false},
		"name":     {"must be one of an object", entry{Address: "192.0.2.1", KeyFile: "k", Name: "A_b"}, false},
		"selector": {"must be one", entry{Address: "192.0.2.1", KeyFile: "k", OfferedTo: "==="}, false},
		"jump":     {"must be one", entry{Address: "192.0.2.1", KeyFile: "k", Jump: "@"}, false},
		"DNS name": {"a node needs an IP address", entry{Address: "a.example.com", KeyFile: "k"}, false},
		"node":     {"it is there", entry{Address: "a.example.com", NodeAddress: "192.0.2.1", KeyFile: "k"}, true},
		"nothing":  {"an address is required", entry{KeyFile: "k"}, false},
	}
	for name, tc := range cases {
		got, err := tc.entry.complete()
		if (err == nil) != tc.valid {
			t.Errorf("%s: %v: %s", name, err, tc.reason)
		}
		if err == nil && (got.User != "root" || *got.Sudo) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got, err := (entry{Address: "192.0.2.1", KeyFile: "k", User: "ops"}).complete(); err != nil || !*got.Sudo {
		t.Errorf("users other than root need sudo: %+v %v", got, err)
	}
}

func TestObjects(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "k"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := entry{Address: "192.0.2.1", KeyFile: "~/k", User: "ops", Jump: "gate@192.0.2.9", HostKeys: []string{"h"}, JumpHostKeys: []string{"j"}, OfferedTo: "all"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	h, err := e.read(dir)
	if err != nil {
		t.Fatal(err)
	}
	object, err := h.object("inventory")
	if err != nil {
		t.Fatal(err)
	}
	want := infrav1.SSHHostSpec{
		SSHServer: infrav1.SSHServer{Address: "192.0.2.1", Port: 22, User: "ops", HostKeys: []string{"h"}, CredentialsRef: infrav1.SSHCredentialsReference{Name: "host-192-0-2-1-ssh"}},
		Jump:      &infrav1.SSHServer{Address: "192.0.2.9", Port: 22, User: "gate", HostKeys: []string{"j"}, CredentialsRef: infrav1.SSHCredentialsReference{Name: "host-192-0-2-1-ssh-jump"}},
		Sudo:      infrav1.SSHSudoAlways, OfferedTo: &metav1.LabelSelector{},
	}
	if diff := cmp.Diff(want, object.Spec); diff != "" {
		t.Error(diff)
	}
	secrets := h.secrets("inventory")
	if len(secrets) != 2 || string(secrets[0].Data["ssh-privatekey"]) != "key" || secrets[0].Name != object.Spec.CredentialsRef.Name || secrets[1].Name != object.Spec.Jump.CredentialsRef.Name {
		t.Errorf("%+v", secrets)
	}
}

func TestPrintHosts(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	since := metav1.NewTime(now.Add(-time.Hour))
	hosts := []infrav1.SSHHost{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}, Spec: infrav1.SSHHostSpec{SSHServer: infrav1.SSHServer{Address: "192.0.2.2"}}, Status: infrav1.SSHHostStatus{
			State: infrav1.SSHHostQuarantined, StateSince: &since, Conditions: []metav1.Condition{{Type: infrav1.AvailableCondition, Status: "False", Reason: "UnknownKubelet", Message: "A kubelet runs\x1b[2J"}},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Status: infrav1.SSHHostStatus{State: infrav1.SSHHostInUse, Claim: &infrav1.SSHHostClaim{Namespace: "t", Name: "m"}}},
	}
	var out bytes.Buffer
	if err := printHosts(&out, now, rowsOf(hosts), ""); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, part := range []string{"Quarantined  60m", "t/m", "n/b: A kubelet runs"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Index(text, "InUse") > strings.Index(text, "Quarantined") {
		t.Errorf("hosts must be sorted, and text escaped:\n%q", text)
	}
	out.Reset()
	if err := printHosts(&out, now, nil, none("hosts", "", false)); err != nil || !strings.Contains(out.String(), "slipway hosts add") {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestFailedChecks(t *testing.T) {
	good, bad := checked{Findings: []finding{{Check: "Swap"}}}, checked{Findings: []finding{{Check: "Disk", Fatal: true}}}
	if err := failedChecks([]checked{good}); err != nil {
		t.Error(err)
	}
	for _, r := range []checked{bad, {Error: "unreachable"}} {
		if err := failedChecks([]checked{good, r}); fault.KindOf(err) != fault.Invalid || !strings.HasPrefix(fault.UserMessage(err), "1 of 2") {
			t.Errorf("%v", err)
		}
	}
}
