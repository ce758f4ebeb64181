package install_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

func running(version string, without ...providerset.Name) install.RunningBuiltin {
	return install.RunningBuiltin{Sets: providerset.Without(without...), Version: version, Namespace: "slipway-system"}
}

func record(t provider.Type, name, version string) provider.Installed {
	return provider.Installed{Namespace: "slipway-system", Type: t, Name: name, Version: version, BuiltIn: true}
}

func TestSteps(t *testing.T) {
	all := []provider.Installed{
		record(provider.Core, "cluster-api", "v1.14.2"), record(provider.Bootstrap, "kubeadm", "v1.14.2"), record(provider.ControlPlane, "kubeadm", "v1.14.2"),
	}
	installed := provider.Installed{Namespace: "capi-system", Type: provider.Core, Name: "cluster-api", Version: "v1.14.1"}
	for name, tc := range map[string]struct {
		running  install.RunningBuiltin
		recorded []provider.Installed
		want     []string
		reason   string
	}{
		"first start": {running: running("v1.14.2"), want: []string{
			"apply slipway-system/cluster-api v1.14.2", "apply slipway-system/bootstrap-kubeadm v1.14.2", "apply slipway-system/control-plane-kubeadm v1.14.2",
		}, reason: "those without a repository of their name are not recorded"},
		"next start":  {running: running("v1.14.2"), recorded: all, reason: "nothing is written where nothing changes"},
		"new version": {running: running("v1.14.3", providerset.BootstrapKubeadm, providerset.ControlPlaneKubeadm), recorded: all[:1], want: []string{"apply slipway-system/cluster-api v1.14.3"}},
		"without one": {running: running("v1.14.2", providerset.BootstrapKubeadm), recorded: all, want: []string{"delete slipway-system/bootstrap-kubeadm v1.14.2"}, reason: "another one may be installed"},
		"another program's": {
			running: running("v1.14.2", providerset.BootstrapKubeadm, providerset.ControlPlaneKubeadm), recorded: []provider.Installed{installed},
			reason: "two cores in the inventory would stop every command of clusterctl",
		},
		"ours and another program's": {
			running: running("v1.14.2", providerset.BootstrapKubeadm, providerset.ControlPlaneKubeadm), recorded: []provider.Installed{installed, all[0]},
			want: []string{"delete slipway-system/cluster-api v1.14.2"},
		},
		"nothing runs": {running: install.RunningBuiltin{Version: "v1.14.2", Namespace: "slipway-system"}, recorded: []provider.Installed{installed}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range install.BuiltinSteps(tc.running, tc.recorded) {
				version, _ := s.Object.Object["version"].(string)
				got = append(got, string(s.Verb)+" "+s.Object.GetNamespace()+"/"+s.Object.GetName()+" "+version)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The verbs of this program leave the records out, others read them; a second start writes nothing, and one without providers removes
// them.
func TestRecord(t *testing.T) {
	s := apiserver.Start(t, apiserver.Options{})
	c, err := client.New(s.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := func() (out []string) {
		t.Helper()
		all, err := provider.ReadProviderObjects(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			out = append(out, p.Label()+" "+p.Version)
		}
		own, err := provider.ReadInventory(t.Context(), c)
		if err != nil || len(own) > 0 {
			t.Errorf("the verbs read %v, %v", own, err)
		}
		return out
	}
	for _, step := range []struct {
		running install.RunningBuiltin
		want    []string
	}{
		{install.RunningBuiltin{Version: "v1.14.2", Namespace: "default"}, nil},
		{install.RunningBuiltin{Sets: providerset.All(), Version: "v1.14.2", Namespace: "default"}, []string{"cluster-api v1.14.2", "bootstrap-kubeadm v1.14.2", "control-plane-kubeadm v1.14.2"}},
		{install.RunningBuiltin{Sets: providerset.All(), Version: "v1.14.3", Namespace: "default"}, []string{"cluster-api v1.14.3", "bootstrap-kubeadm v1.14.3", "control-plane-kubeadm v1.14.3"}},
		{install.RunningBuiltin{Sets: providerset.Without(providerset.Core), Version: "v1.14.3", Namespace: "default"}, []string{"bootstrap-kubeadm v1.14.3", "control-plane-kubeadm v1.14.3"}},
		{install.RunningBuiltin{Version: "v1.14.3", Namespace: "default"}, nil},
	} {
		if err := install.RecordBuiltin(t.Context(), s.Config, step.running); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, read()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
