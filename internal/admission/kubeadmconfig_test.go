package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/policy"
)

// KB-26: each rule, in a config and, at its place, in a template.
func TestKubeadmConfig(t *testing.T) {
	secret := bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "s", Key: "k"}}
	password := bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: "s", Key: "k"}}
	butane := bootstrapv1.IgnitionSpec{ContainerLinuxConfig: bootstrapv1.ContainerLinuxConfig{AdditionalConfig: "a"}}
	on := Gates{KubeadmBootstrapFormatIgnition: true}
	tests := map[string]struct {
		reason string
		gates  Gates
		spec   bootstrapv1.KubeadmConfigSpec
		want   []string
	}{
		"valid": {
			reason: "what cloud-config can do",
			spec: bootstrapv1.KubeadmConfigSpec{
				Files:        []bootstrapv1.File{{Path: "/a", Content: "x", Encoding: "gzip"}, {Path: "/b", ContentFrom: secret}},
				Users:        []bootstrapv1.User{{Name: "u", Passwd: "p", Inactive: new(true)}},
				BootCommands: []string{"true"},
				DiskSetup: bootstrapv1.DiskSetup{
					Partitions:  []bootstrapv1.Partition{{DiskLayout: []bootstrapv1.PartitionSpec{{Percentage: 60}, {Percentage: 40}}}},
					Filesystems: []bootstrapv1.Filesystem{{ReplaceFS: "x", Partition: "auto"}},
				},
			},
		},
		"gate off": {
			reason: "ignition needs its gate",
			spec:   bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition, Ignition: butane},
			want:   []string{"format", "ignition"},
		},
		"ignition without its format": {
			reason: "it would not be read",
			gates:  on,
			spec:   bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.CloudConfig, Ignition: butane},
			want:   []string{"format"},
		},
		"ignition": {
			reason: "gate, format and settings agree",
			gates:  on,
			spec: bootstrapv1.KubeadmConfigSpec{
				Format: bootstrapv1.Ignition, Ignition: butane,
				Files:     []bootstrapv1.File{{Path: "/a", Content: "eA==", Encoding: bootstrapv1.Base64}},
				Users:     []bootstrapv1.User{{Name: "u", Inactive: new(false)}},
				DiskSetup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{{TableType: "gpt"}, {}}},
			},
		},
		"same path": {
			reason: "the second would overwrite the first",
			spec:   bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/a"}, {Path: "/b"}, {Path: "/a"}}},
			want:   []string{"files[2].path"},
		},
		"two contents": {
			reason: "one of them would be lost",
			spec:   bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/a", Content: "x", ContentFrom: secret}}},
			want:   []string{"files[0]"},
		},
		"two passwords": {
			reason: "one of them would be lost",
			spec:   bootstrapv1.KubeadmConfigSpec{Users: []bootstrapv1.User{{Name: "u", Passwd: "p", PasswdFrom: password}}},
			want:   []string{"users[0]"},
		},
		"more than the disk": {
			reason: "101 percent",
			spec: bootstrapv1.KubeadmConfigSpec{DiskSetup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{
				{DiskLayout: []bootstrapv1.PartitionSpec{{Percentage: 61}, {Percentage: 40}}},
			}}},
			want: []string{"diskSetup.partitions[0].diskLayout"},
		},
		"not in ignition": {
			reason: "each thing that Ignition has no words for",
			gates:  on,
			spec: bootstrapv1.KubeadmConfigSpec{
				Format:       bootstrapv1.Ignition,
				Users:        []bootstrapv1.User{{Name: "u", Inactive: new(true)}},
				Files:        []bootstrapv1.File{{Path: "/a", Encoding: "gzip"}, {Path: "/b", Encoding: "gzip+base64"}},
				BootCommands: []string{"true"},
				DiskSetup: bootstrapv1.DiskSetup{
					Partitions:  []bootstrapv1.Partition{{TableType: "mbr"}},
					Filesystems: []bootstrapv1.Filesystem{{ReplaceFS: "ext4"}, {Partition: "auto"}},
				},
			},
			want: []string{"users[0].inactive", "files[0].encoding", "files[1].encoding", "bootCommands",
				"diskSetup.partitions[0].tableType", "diskSetup.filesystems[0].replaceFS", "diskSetup.filesystems[1].partition"},
		},
	}
	under := func(prefix string, paths []string) []string {
		var out []string
		for _, path := range paths {
			out = append(out, prefix+path)
		}
		return out
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := &bootstrapv1.KubeadmConfig{Spec: tt.spec}
			got := problems(Validate(Request{New: config, Gates: tt.gates}))
			if diff := cmp.Diff(under("spec.", tt.want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			template := &bootstrapv1.KubeadmConfigTemplate{}
			template.Spec.Template.Spec = tt.spec
			got = problems(Validate(Request{New: template, Gates: tt.gates}))
			if diff := cmp.Diff(under("spec.template.spec.", tt.want), got); diff != "" {
				t.Errorf("in a template: %s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// CX-08: where users read no Secrets, no bootstrap configuration copies the credentials of a cluster into a node. What is stored already can be
// changed and deleted.
func TestCredentialsAsContent(t *testing.T) {
	file := func(name string) bootstrapv1.KubeadmConfigSpec {
		return bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/a", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: name, Key: "k"}}}}}
	}
	password := func(name string) bootstrapv1.KubeadmConfigSpec {
		return bootstrapv1.KubeadmConfigSpec{Users: []bootstrapv1.User{{Name: "u", PasswdFrom: bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: name, Key: "k"}}}}}
	}
	kinds := map[string]func(bootstrapv1.KubeadmConfigSpec) runtime.Object{
		"spec.": func(s bootstrapv1.KubeadmConfigSpec) runtime.Object { return &bootstrapv1.KubeadmConfig{Spec: s} },
		"spec.template.spec.": func(s bootstrapv1.KubeadmConfigSpec) runtime.Object {
			o := &bootstrapv1.KubeadmConfigTemplate{}
			o.Spec.Template.Spec = s
			return o
		},
		"spec.kubeadmConfigSpec.": func(s bootstrapv1.KubeadmConfigSpec) runtime.Object {
			o := &controlplanev1.KubeadmControlPlane{}
			o.Spec.KubeadmConfigSpec = s
			return o
		},
		"spec.template.spec.kubeadmConfigSpec.": func(s bootstrapv1.KubeadmConfigSpec) runtime.Object {
			o := &controlplanev1.KubeadmControlPlaneTemplate{}
			o.Spec.Template.Spec.KubeadmConfigSpec = s
			return o
		},
	}
	open, closed := policy.Default(), policy.Default()
	closed.Management.EditSecrets = false
	denied := func(r Request) string {
		for _, err := range Validate(r).Errors {
			if strings.Contains(err.Detail, "credentials of a cluster") {
				return err.Field
			}
		}
		return ""
	}
	for prefix, object := range kinds {
		for _, purpose := range []string{"kubeconfig", "ca", "etcd", "sa", "proxy", "apiserver-etcd-client", "encryption"} {
			name := "c-" + purpose
			if got, want := denied(Request{New: object(file(name)), Policy: closed}), prefix+"files[0].contentFrom.secret.name"; got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			if got, want := denied(Request{New: object(password(name)), Policy: closed}), prefix+"users[0].passwdFrom.secret.name"; got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			for reason, r := range map[string]Request{
				"users read Secrets":  {New: object(file(name)), Policy: open},
				"it is stored":        {New: object(file(name)), Old: object(file(name)), Policy: closed},
				"no credentials":      {New: object(file(purpose)), Policy: closed},
				"no credentials, too": {New: object(password("c-" + purpose + "s")), Policy: closed},
			} {
				if got := denied(r); got != "" {
					t.Errorf("%s, %s: %s is denied", name, reason, got)
				}
			}
			if denied(Request{New: object(file(name)), Old: object(file("s")), Policy: closed}) == "" {
				t.Errorf("%s is let through in an update", name)
			}
		}
	}
}

// KB-28: a template may be changed, in a dry run or not.
func TestKubeadmConfigTemplateIsMutable(t *testing.T) {
	old, changed := &bootstrapv1.KubeadmConfigTemplate{}, &bootstrapv1.KubeadmConfigTemplate{}
	changed.Spec.Template.Spec.PreKubeadmCommands = []string{"true"}
	for _, dryRun := range []bool{false, true} {
		if got := Validate(Request{Old: old, New: changed, DryRun: dryRun}); len(got.Errors) > 0 {
			t.Errorf("dry run %t: %v", dryRun, got.Errors)
		}
	}
}
