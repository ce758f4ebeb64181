package nodeimage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

func TestModuleMaker(t *testing.T) {
	const mod = "module k8s.io/kubernetes\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/a/b v1.2.0\n\tgithub.com/c/d v1.0.0 // indirect\n\tk8s.io/kubelet v0.0.0\n\tk8s.io/api v0.0.0\n)\n"
	for name, c := range map[string]struct {
		reason  string
		version string
		pins    map[string]string
		want    string
	}{
		"staging": {reason: "modules of Kubernetes' own tree are replaced by their releases, everything else keeps its version", version: "v1.36.3",
			want: "module slipway.dev/node/build\n\ngo 1.26.0\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.36.3\n\tk8s.io/kubelet => k8s.io/kubelet v0.36.3\n)\n\n" +
				"require (\n\tgithub.com/a/b v1.2.0\n\tgithub.com/c/d v1.0.0\n\tk8s.io/kubernetes v1.36.3\n)\n"},
		"prerelease": {reason: "a release candidate's modules are candidates too", version: "v1.37.0-rc.1",
			want: "module slipway.dev/node/build\n\ngo 1.26.0\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.37.0-rc.1\n\tk8s.io/kubelet => k8s.io/kubelet v0.37.0-rc.1\n)\n\n" +
				"require (\n\tgithub.com/a/b v1.2.0\n\tgithub.com/c/d v1.0.0\n\tk8s.io/kubernetes v1.37.0-rc.1\n)\n"},
		"pins": {reason: "a newer pin wins, an older one and one of a module that Kubernetes lacks do not count", version: "v1.36.3",
			pins: map[string]string{"github.com/a/b": "v1.10.0", "github.com/c/d": "v0.9.0", "github.com/e/f": "v1.0.0"},
			want: "module slipway.dev/node/build\n\ngo 1.26.0\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.36.3\n\tk8s.io/kubelet => k8s.io/kubelet v0.36.3\n)\n\n" +
				"require (\n\tgithub.com/a/b v1.10.0\n\tgithub.com/c/d v1.0.0\n\tk8s.io/kubernetes v1.36.3\n)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ModuleMaker{Kubernetes: c.version, Mod: []byte(mod), Pins: c.pins}.Make(GoRequirement{"k8s.io/kubernetes", c.version})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Mod); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if _, err := modfile.Parse("go.mod", []byte(got.Mod), nil); err != nil {
				t.Errorf("Go cannot read it: %v", err)
			}
		})
	}
}

func TestModuleMakerRefuses(t *testing.T) {
	for name, mod := range map[string]string{"no staging modules": "module m\n\ngo 1.26.0\n\nrequire github.com/a/b v1.0.0\n", "no go.mod": "package main\n"} {
		if _, err := (ModuleMaker{Kubernetes: "v1.36.3", Mod: []byte(mod)}).Make(GoRequirement{"k8s.io/kubernetes", "v1.36.3"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestStamp(t *testing.T) {
	wantStamp := []string{"k8s.io/component-base/version.gitVersion=v1.36.3", "k8s.io/component-base/version.gitMajor=1", "k8s.io/component-base/version.gitMinor=36"}
	if diff := cmp.Diff(wantStamp, VersionFlags("v1.36.3")); diff != "" {
		t.Errorf("stamp (-want +got):\n%s", diff)
	}
}
