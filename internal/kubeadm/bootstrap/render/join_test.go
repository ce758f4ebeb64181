package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
)

func secretFile(path, name, key string) bootstrapv1.File {
	return bootstrapv1.File{Path: path, ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: name, Key: key}}}
}

func passwdFrom(name, key string) bootstrapv1.PasswdSource {
	return bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: name, Key: key}}
}

// KB-15, KB-17, KB-19, KB-20, KB-21, KB-24, BC-08
func TestJoin(t *testing.T) {
	in := Input{
		KubernetesVersion: "v1.36.3",
		Secrets:           Secrets{"s": {"k": []byte{0, 1}, "p": []byte("$6$x")}},
		Spec: bootstrapv1.KubeadmConfigSpec{
			JoinConfiguration: bootstrapv1.JoinConfiguration{Patches: bootstrapv1.Patches{Directory: "/etc/kubernetes/patches"}},
			Files: []bootstrapv1.File{
				{Path: "/a", Owner: "u:g", Permissions: "0600", Encoding: bootstrapv1.Base64, Append: ptr.To(true), Content: "eA=="},
				secretFile("/b", "s", "k"),
				{Path: "/etc/kubernetes/patches/kubeletconfiguration0+strategic.yaml", Content: "maxPods: 50\n"},
			},
			Users:               []bootstrapv1.User{{Name: "n", PasswdFrom: passwdFrom("s", "p")}, {Name: "m", Passwd: "x"}},
			BootCommands:        []string{"boot"},
			PreKubeadmCommands:  []string{"pre"},
			PostKubeadmCommands: []string{"post"},
			NTP:                 bootstrapv1.NTP{Servers: []string{"ntp"}},
			Mounts:              []bootstrapv1.MountPoints{{"a", "b"}},
			Verbosity:           ptr.To(int32(7)),
			// KB-06: what belongs to kubeadm init leaves no trace.
			ClusterConfiguration: bootstrapv1.ClusterConfiguration{ControlPlaneEndpoint: "ignored.example"},
			InitConfiguration:    bootstrapv1.InitConfiguration{SkipPhases: []string{"ignored"}},
		},
	}
	got, err := Join(in)
	if err != nil {
		t.Fatal(err)
	}
	config := `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
nodeRegistration:
  taints:
    - key: node.cluster.x-k8s.io/uninitialized
      effect: NoSchedule
discovery: {}
patches:
  directory: /etc/kubernetes/patches
`
	want := Payload{
		BootCommands: []string{"boot"},
		Files: []File{
			{Path: "/a", Owner: "u:g", Permissions: "0600", Encoding: bootstrapv1.Base64, Append: true, Content: []byte("eA==")},
			{Path: "/b", Content: []byte{0, 1}},
			{Path: "/etc/kubernetes/patches/kubeletconfiguration0+strategic.yaml", Content: []byte("maxPods: 50\n")},
			{Path: "/run/kubeadm/kubeadm-join-config.yaml", Owner: "root:root", Permissions: "0640", Content: []byte(config)},
			{Path: "/run/cluster-api/placeholder", Owner: "root:root", Permissions: "0640", Content: []byte(markerContent)},
		},
		Mounts:              []bootstrapv1.MountPoints{{"a", "b"}},
		NTP:                 bootstrapv1.NTP{Servers: []string{"ntp"}},
		Users:               []bootstrapv1.User{{Name: "n", Passwd: "$6$x"}, {Name: "m", Passwd: "x"}},
		PreKubeadmCommands:  []string{"pre"},
		Kubeadm:             "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml --v 7 && echo success > /run/cluster-api/bootstrap-success.complete",
		PostKubeadmCommands: []string{"post"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Spec.Verbosity = nil
	if got, err = Join(in); err != nil || strings.Contains(got.Kubeadm, "--v") {
		t.Errorf("without verbosity kubeadm keeps its own (KB-20): %q, %v", got.Kubeadm, err)
	}
}

// KB-22, BC-09
func TestWithUninitializedTaint(t *testing.T) {
	own := clusterv1.NodeUninitializedTaint
	other := corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule}
	sameKey := corev1.Taint{Key: own.Key, Effect: corev1.TaintEffectNoExecute}
	cases := map[string]struct {
		reason string
		in     *[]corev1.Taint
		want   []corev1.Taint
	}{
		"not set":       {"it is the only one", nil, []corev1.Taint{own}},
		"empty":         {"an empty list means no default taints, and still gets it", &[]corev1.Taint{}, []corev1.Taint{own}},
		"others":        {"it comes last", &[]corev1.Taint{other}, []corev1.Taint{other, own}},
		"there already": {"it is not added twice", &[]corev1.Taint{own, other}, []corev1.Taint{own, other}},
		"other effect":  {"a taint is its key and effect", &[]corev1.Taint{sameKey}, []corev1.Taint{sameKey, own}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := bootstrapv1.NodeRegistrationOptions{Taints: tc.in}
			before := in.DeepCopy()
			got := withUninitializedTaint(in)
			if diff := cmp.Diff(tc.want, *got.Taints); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(*before, in); diff != "" {
				t.Errorf("the stored object is not changed (-want +got):\n%s", diff)
			}
		})
	}
}

// KB-16
func TestJoinTemplates(t *testing.T) {
	template := func(content string) bootstrapv1.File {
		return bootstrapv1.File{Path: "/f", ContentFormat: bootstrapv1.FileContentFormatTemplate, Content: content}
	}
	fromSecret := secretFile("/f", "s", "k")
	fromSecret.ContentFormat = bootstrapv1.FileContentFormatTemplate
	cases := map[string]struct {
		reason  string
		file    bootstrapv1.File
		version string
		want    string
		says    string
	}{
		"version":         {"filled in", template("v={{ .controlPlane.version }}"), "v1.35.0", "v=v1.35.0", ""},
		"from a secret":   {"after content is resolved", fromSecret, "v1.35.0", "secret v1.35.0", ""},
		"guarded":         {"a template can ask whether there is a version", template("{{ with .controlPlane }}{{ .version }}{{ else }}none{{ end }}"), "", "none", ""},
		"without version": {"no file with a hole in it", template("{{ .controlPlane.version }}"), "", "", "controlPlaneRef"},
		"unknown":         {"no such variable", template("{{ .cluster }}"), "v1.35.0", "", "file /f"},
		"broken":          {"not a template", template("{{ .controlPlane"), "v1.35.0", "", "not a valid template"},
		"raw": {"Raw is the default's name", bootstrapv1.File{Path: "/f", ContentFormat: bootstrapv1.FileContentFormatRaw, Content: "{{ .x }}"},
			"v1.35.0", "{{ .x }}", ""},
		"default": {"content is verbatim", bootstrapv1.File{Path: "/f", Content: "{{ .x }}"}, "v1.35.0", "{{ .x }}", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Join(Input{
				KubernetesVersion: "v1.36.3", ControlPlaneVersion: tc.version,
				Secrets: Secrets{"s": {"k": []byte("secret {{ .controlPlane.version }}")}},
				Spec:    bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{tc.file}},
			})
			if tc.says != "" {
				if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s: want an Invalid fault that says %q, got %v", tc.reason, tc.says, err)
				}
				return
			}
			if err != nil || string(got.Files[0].Content) != tc.want {
				t.Errorf("%s: want %q, got %v, %v", tc.reason, tc.want, got.Files, err)
			}
		})
	}
}

// KB-15, KB-07: what the user has to correct is named.
func TestJoinRefuses(t *testing.T) {
	secrets := Secrets{"s": {"k": nil}}
	cases := map[string]struct {
		in   Input
		says string
	}{
		"no secret":   {Input{Spec: bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{secretFile("/f", "gone", "k")}}}, "file /f comes from Secret gone, which does not exist"},
		"no key":      {Input{Secrets: secrets, Spec: bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{secretFile("/f", "s", "x")}}}, `key "x" of Secret s`},
		"no password": {Input{Secrets: secrets, Spec: bootstrapv1.KubeadmConfigSpec{Users: []bootstrapv1.User{{Name: "u", PasswdFrom: passwdFrom("s", "x")}}}}, "the password of user u"},
		"no version":  {Input{}, "is not a Kubernetes version"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Join(tc.in)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("want an Invalid fault that says %q, got %v", tc.says, err)
			}
		})
	}
}

func TestSecretsOf(t *testing.T) {
	got := SecretsOf(bootstrapv1.KubeadmConfigSpec{
		Files: []bootstrapv1.File{secretFile("/a", "b", "1"), {Path: "/x"}, secretFile("/b", "a", "1"), secretFile("/c", "b", "2")},
		Users: []bootstrapv1.User{{Name: "u", PasswdFrom: passwdFrom("c", "1")}, {Name: "v"}},
	})
	if diff := cmp.Diff([]string{"b", "a", "c"}, got); diff != "" {
		t.Errorf("each once, in order (-want +got):\n%s", diff)
	}
}

// KB-12
func TestJoinFileDiscovery(t *testing.T) {
	exec := bootstrapv1.KubeConfigUser{Exec: bootstrapv1.KubeConfigAuthExec{
		Command: "/bin/login", Args: []string{"--x"}, Env: []bootstrapv1.KubeConfigAuthExecEnv{{Name: "A", Value: "1"}}, ProvideClusterInfo: ptr.To(true),
	}}
	provider := bootstrapv1.KubeConfigUser{AuthProvider: bootstrapv1.KubeConfigAuthProvider{Name: "oidc", Config: map[string]string{"a": "b"}}}
	cases := map[string]struct {
		reason string
		file   bootstrapv1.FileDiscovery
		want   string
	}{
		"filled in": {"server and CA are the cluster's; exec gets the current API version",
			bootstrapv1.FileDiscovery{KubeConfigPath: "/etc/d.conf", KubeConfig: bootstrapv1.FileDiscoveryKubeConfig{User: exec}},
			`{"apiVersion":"v1","kind":"Config","current-context":"default",
			"clusters":[{"name":"default","cluster":{"server":"https://10.0.0.1:6443","certificate-authority-data":"Q0E="}}],
			"contexts":[{"name":"default","context":{"cluster":"default","user":"default"}}],
			"users":[{"name":"default","user":{"exec":{"command":"/bin/login","args":["--x"],"env":[{"name":"A","value":"1"}],
			"apiVersion":"client.authentication.k8s.io/v1","provideClusterInfo":true,"interactiveMode":"Never"}}}]}`},
		"as given": {"what the user says stays; a CA is not added where verification is off",
			bootstrapv1.FileDiscovery{KubeConfigPath: "/etc/d.conf", KubeConfig: bootstrapv1.FileDiscoveryKubeConfig{User: provider,
				Cluster: bootstrapv1.KubeConfigCluster{Server: "https://x", TLSServerName: "n", InsecureSkipTLSVerify: ptr.To(true), ProxyURL: "socks5://p"}}},
			`{"apiVersion":"v1","kind":"Config","current-context":"default",
			"clusters":[{"name":"default","cluster":{"server":"https://x","tls-server-name":"n","insecure-skip-tls-verify":true,"proxy-url":"socks5://p"}}],
			"contexts":[{"name":"default","context":{"cluster":"default","user":"default"}}],
			"users":[{"name":"default","user":{"auth-provider":{"name":"oidc","config":{"a":"b"}}}}]}`},
		"own CA": {"the user's CA wins",
			bootstrapv1.FileDiscovery{KubeConfigPath: "/etc/d.conf", KubeConfig: bootstrapv1.FileDiscoveryKubeConfig{User: provider,
				Cluster: bootstrapv1.KubeConfigCluster{CertificateAuthorityData: []byte("mine")}}},
			`{"apiVersion":"v1","kind":"Config","current-context":"default",
			"clusters":[{"name":"default","cluster":{"server":"https://10.0.0.1:6443","certificate-authority-data":"bWluZQ=="}}],
			"contexts":[{"name":"default","context":{"cluster":"default","user":"default"}}],
			"users":[{"name":"default","user":{"auth-provider":{"name":"oidc","config":{"a":"b"}}}}]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := Join(Input{
				KubernetesVersion: "v1.36.3", Endpoint: "10.0.0.1:6443", CA: []byte("CA"),
				Spec: bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{Discovery: bootstrapv1.Discovery{File: tc.file}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if p.Files[0].Path != "/etc/d.conf" || !strings.Contains(string(p.Files[1].Content), "kubeConfigPath: /etc/d.conf") {
				t.Fatalf("%s: the file is written where kubeadm looks for it, got %s", tc.reason, p.Files[0].Path)
			}
			var got, want any
			if err := yaml.Unmarshal(p.Files[0].Content, &got); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(strings.ReplaceAll(tc.want, "\t", "")), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if _, err := clientcmd.Load(p.Files[0].Content); err != nil {
				t.Errorf("a client must be able to read it: %v", err)
			}
		})
	}
	p, err := Join(Input{KubernetesVersion: "v1.36.3", Spec: bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{
		Discovery: bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{KubeConfigPath: "/mine"}}}}})
	if err != nil || len(p.Files) != 2 || !strings.Contains(string(p.Files[0].Content), "kubeConfigPath: /mine") {
		t.Errorf("a path without kubeConfig is the user's own file: %v, %v", p.Files, err)
	}
}
