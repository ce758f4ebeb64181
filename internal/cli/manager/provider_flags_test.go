package manager

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

func TestProviders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slipway.yaml")
	text := "apiVersion: config.slipway.dev/v1alpha1\nkind: Configuration\nproviders: {disabled: [infrastructure-local]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		only   []string
		file   string
		want   []providerset.Name
		err    string
	}{
		"default":       {"all", nil, "", nil, ""},
		"one":           {"the rest is disabled, simulation too", []string{"cluster-api"}, "", providerset.Others(providerset.Core), ""},
		"file":          {"it disables", nil, file, []providerset.Name{providerset.InfrastructureLocal}, ""},
		"both":          {"one mechanism", []string{"cluster-api", "simulated"}, file, providerset.Others(providerset.Core, providerset.Simulated), ""},
		"contradiction": {"neither wins in silence", []string{"infrastructure-local"}, file, nil, "the configuration file disables infrastructure-local"},
		"unknown":       {"the error lists those that are known", []string{"local"}, "", nil, "there is no provider local; there are bootstrap-kubeadm, cluster-api, control-plane-hosted, control-plane-kubeadm, infrastructure-local, infrastructure-ssh, simulated"},
		"nothing":       {"a backend does not run by itself", []string{"simulated"}, "", nil, "runs nothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := providerFlags{only: tc.only}
			got, err := p.read(&provider.PolicyFlags{File: tc.file})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(tc.want)+len(got.Providers.Disabled) > 0 && !cmp.Equal(tc.want, got.Providers.Disabled) {
				t.Errorf("%s: disabled (-want +got):\n%s", tc.reason, cmp.Diff(tc.want, got.Providers.Disabled))
			}
		})
	}
}

// What is printed for one provider is what `kubectl apply` takes, without anything of another.
func TestPrintRoles(t *testing.T) {
	e := testEnv(nil)
	cmd := Command(e)
	cmd.SetArgs([]string{"--providers", "infrastructure-local", "--print-roles"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := e.Out.(*bytes.Buffer).String()
	var got []string
	for _, document := range strings.Split(text, "---\n")[1:] {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Subjects []struct{ Kind, Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		line := o.Kind + " " + o.Metadata.Name
		for _, s := range o.Subjects {
			line += ", " + s.Kind + " " + s.Name
		}
		got = append(got, line)
	}
	const subjects = ", User slipway:manager, ServiceAccount slipway-infrastructure-local"
	want := []string{
		"Namespace slipway-system",
		"ClusterRole slipway-view", "ClusterRole slipway-edit", "ClusterRole slipway-cluster-operator",
		"ClusterRole slipway-manager-infrastructure-local", "ClusterRole slipway-infrastructure-local", "ClusterRole slipway-infrastructure-local-process",
		"Role slipway-process",
		"ClusterRoleBinding slipway-infrastructure-local" + subjects,
		"ClusterRoleBinding slipway-infrastructure-local-process" + subjects,
		"RoleBinding slipway-infrastructure-local-process" + subjects,
		"ValidatingAdmissionPolicy slipway-identities-secrets", "ValidatingAdmissionPolicyBinding slipway-identities-secrets",
		"ValidatingAdmissionPolicy slipway-identities-configmaps", "ValidatingAdmissionPolicyBinding slipway-identities-configmaps",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every flag that a provider owns exists, and one whose provider does not run is told to have no effect.
func TestFlagsOfProviders(t *testing.T) {
	flags := Command(testEnv(nil)).Flags()
	for _, set := range providerset.All() {
		for _, name := range set.Flags {
			if flags.Lookup(name) == nil {
				t.Errorf("%s has no flag --%s", set.Name, name)
			}
		}
	}
	c := policy.Default()
	c.Disable(providerset.Others(providerset.InfrastructureLocal)...)
	got := ineffective([]string{"bootstrap-token-ttl", "machine-concurrency", "local-machine-concurrency", "v"}, c)
	want := map[string]providerset.Name{"bootstrap-token-ttl": providerset.BootstrapKubeadm, "machine-concurrency": providerset.Core}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
