package install_test

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

func installed(t provider.Type, name string, installing bool) provider.Installed {
	return provider.Installed{Namespace: name + "-system", Name: name, Type: t, Version: "v1.2.3", Installing: installing}
}

// CX-01: what is installed the first time and later, beside what is built in, and after an interruption.
func TestChoose(t *testing.T) {
	core := installed(provider.Core, "cluster-api", false)
	cases := map[string]struct {
		named     map[provider.Type][]string
		installed []provider.Installed
		builtin   []providerset.Name
		want      string
		note      string
		reason    string
	}{
		"the first time":       {want: "cluster-api, bootstrap-kubeadm, control-plane-kubeadm"},
		"others are named":     {named: map[provider.Type][]string{provider.Bootstrap: {"rke2"}, provider.ControlPlane: {"-"}}, want: "cluster-api, bootstrap-rke2"},
		"later":                {named: map[provider.Type][]string{provider.Infrastructure: {"b", "a"}}, installed: []provider.Installed{core}, want: "infrastructure-b, infrastructure-a"},
		"nothing":              {installed: []provider.Installed{core}},
		"no name":              {named: map[provider.Type][]string{provider.Infrastructure: {"a:"}}, installed: []provider.Installed{core}, reason: "InvalidProvider"},
		"built in":             {named: map[provider.Type][]string{provider.Bootstrap: {"kubeadm"}, "IPAMProvider": {"in-cluster"}}, builtin: []providerset.Name{providerset.Core, providerset.BootstrapKubeadm}, want: "ipam-in-cluster", note: "bootstrap-kubeadm is built into"},
		"built in, a version":  {named: map[provider.Type][]string{provider.Bootstrap: {"kubeadm:v1.14.1"}}, builtin: []providerset.Name{providerset.Core, providerset.BootstrapKubeadm}, reason: install.ReasonBuiltIn},
		"interrupted at first": {installed: []provider.Installed{installed(provider.Core, "cluster-api", true)}, want: "cluster-api:v1.2.3, bootstrap-kubeadm, control-plane-kubeadm"},
		"interrupted, others":  {named: map[provider.Type][]string{provider.Addon: {"helm"}}, installed: []provider.Installed{core, installed(provider.Infrastructure, "a", true)}, want: "infrastructure-a:v1.2.3, addon-helm"},
		"interrupted, the same": {
			named:     map[provider.Type][]string{provider.Core: {"cluster-api"}, provider.Infrastructure: {"a"}},
			installed: []provider.Installed{core, installed(provider.Infrastructure, "a", true)},
			want:      "infrastructure-a:v1.2.3", note: "cluster-api is already installed",
		},
	}
	for name, tc := range cases {
		choices, notes, err := install.Choose(tc.named, tc.installed, tc.builtin)
		if tc.reason != "" {
			if fault.As(err) == nil || fault.As(err).Reason != tc.reason {
				t.Errorf("%s: %v, and not the reason %s", name, err, tc.reason)
			}
			continue
		}
		var got []string
		for _, c := range choices {
			text := c.Label()
			if c.Reference.Version != "" {
				text += ":" + c.Reference.Version
			}
			got = append(got, text)
		}
		if err != nil || strings.Join(got, ", ") != tc.want || !strings.Contains(strings.Join(notes, "\n"), tc.note) {
			t.Errorf("%s: %q with the notes %q, not %q (%v)", name, got, notes, tc.want, err)
		}
	}
}

// CX-13: what is deleted is named, and is there.
func TestNamed(t *testing.T) {
	all := []provider.Installed{installed(provider.Core, "cluster-api", false), installed(provider.Infrastructure, "a", true)}
	cases := map[string]struct {
		named   map[provider.Type][]string
		all     bool
		builtin []providerset.Name
		want    int
		kind    fault.Kind
	}{
		"all":             {all: true, want: 2},
		"one":             {named: map[provider.Type][]string{provider.Infrastructure: {"a"}}, want: 1},
		"its version":     {named: map[provider.Type][]string{provider.Infrastructure: {"a:v1.2.3"}}, want: 1},
		"another version": {named: map[provider.Type][]string{provider.Infrastructure: {"a:v9.0.0"}}, kind: fault.Gone},
		"not there":       {named: map[provider.Type][]string{"IPAMProvider": {"a"}}, kind: fault.Gone},
		"none":            {kind: fault.Invalid},
		"all and one":     {all: true, named: map[provider.Type][]string{provider.Infrastructure: {"a"}}, kind: fault.Invalid},
		"built in":        {named: map[provider.Type][]string{provider.Core: {"cluster-api"}}, builtin: []providerset.Name{providerset.Core}, kind: fault.Invalid},
	}
	for name, tc := range cases {
		got, err := install.SelectForDeletion(tc.named, tc.all, all, tc.builtin)
		if len(got) != tc.want || err != nil && fault.KindOf(err) != tc.kind || err == nil && tc.want == 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
