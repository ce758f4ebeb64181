package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// CX-24: the providers that everyone knows can be named at once.
func TestBuiltin(t *testing.T) {
	all := provider.Builtin()
	seen, count := map[string]bool{}, map[provider.Type]int{}
	for _, p := range all {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.Label(), err)
		}
		if seen[p.Label()] {
			t.Errorf("%s is there twice", p.Label())
		}
		seen[p.Label()] = true
		count[p.Type]++
	}
	if !slices.IsSortedFunc(all, provider.Compare) {
		t.Error("they are not in their order")
	}
	for _, label := range []string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker", "infrastructure-aws", "ipam-in-cluster", "addon-helm"} {
		if !seen[label] {
			t.Errorf("%s is missing", label)
		}
	}
	for _, kind := range provider.Types() {
		if count[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
	}
	if len(all) < 60 {
		t.Errorf("only %d providers", len(all))
	}
}

// CC2-02, CC2-07: labels and file names.
func TestNames(t *testing.T) {
	want := map[provider.Type][2]string{
		provider.Core:             {"x", "core-components.yaml"},
		provider.Bootstrap:        {"bootstrap-x", "bootstrap-components.yaml"},
		provider.ControlPlane:     {"control-plane-x", "control-plane-components.yaml"},
		provider.Infrastructure:   {"infrastructure-x", "infrastructure-components.yaml"},
		provider.IPAM:             {"ipam-x", "ipam-components.yaml"},
		provider.RuntimeExtension: {"runtime-extension-x", "runtime-extension-components.yaml"},
		provider.Addon:            {"addon-x", "addon-components.yaml"},
	}
	for _, kind := range provider.Types() {
		if got := [2]string{kind.Label("x"), kind.ComponentsFile()}; got != want[kind] {
			t.Errorf("%s: %v, want %v", kind, got, want[kind])
		}
	}
}

// CC2-02
func TestValidate(t *testing.T) {
	good := provider.Provider{Name: "acme", Type: provider.Infrastructure, URL: "https://acme.example/v1.0.0/infrastructure-components.yaml"}
	cases := map[string]struct {
		reason string
		change func(*provider.Provider)
		want   string
	}{
		"right":         {"nothing to say", func(*provider.Provider) {}, ""},
		"no name":       {"nothing could refer to it", func(p *provider.Provider) { p.Name = "" }, "has no name"},
		"upper case":    {"it becomes a label and a folder", func(p *provider.Provider) { p.Name = "Acme" }, "not a valid provider name"},
		"dot":           {"the contract allows lower-case letters, digits and -", func(p *provider.Provider) { p.Name = "a.b" }, "not a valid provider name"},
		"too long":      {"a label has at most 63 characters", func(p *provider.Provider) { p.Name = strings.Repeat("a", 60) }, "not a valid label value"},
		"unknown type":  {"the types that exist are listed", func(p *provider.Provider) { p.Type = "Infra" }, "AddonProvider"},
		"core name":     {"there is one core provider", func(p *provider.Provider) { p.Name = "cluster-api" }, "reserved for the type CoreProvider"},
		"core type":     {"there is one core provider", func(p *provider.Provider) { p.Type = provider.Core }, "reserved for the type CoreProvider"},
		"no url":        {"where it is must be said", func(p *provider.Provider) { p.URL = "" }, "has no url"},
		"malformed url": {"a url may hold a token: it is not repeated", func(p *provider.Provider) { p.URL = "https://secret@[::1" }, "is invalid"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := good
			tc.change(&p)
			err := p.Validate()
			if tc.want == "" && err == nil {
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || fault.KindOf(err) != fault.Invalid || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

// CX-02: versions are pinned in the name.
func TestReference(t *testing.T) {
	for s, want := range map[string]provider.Reference{
		"aws":             {Name: "aws"},
		"aws:v2.8.0":      {Name: "aws", Version: "v2.8.0"},
		"team/aws:v2.8.0": {Namespace: "team", Name: "aws", Version: "v2.8.0"},
		"team/aws":        {Namespace: "team", Name: "aws"},
	} {
		got, err := provider.ParseReference(s)
		if err != nil || cmp.Diff(want, got) != "" || got.String() != s {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", ":", "aws:", ":v1", "/aws", "a/b/c", "AWS", "aws:v1:v2", "aws:../..", "aws:v1 2"} {
		if got, err := provider.ParseReference(s); err == nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q is read as %+v, %v", s, got, err)
		}
	}
}
