package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/buildinfo"
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

// IA-09
func TestIPAM(t *testing.T) {
	pool := ipamv1.IPPoolReference{APIGroup: "example.org", Kind: "Pool", Name: "p"}
	address := func(ip string, prefix *int32, gateway string) *ipamv1.IPAddress {
		return &ipamv1.IPAddress{Spec: ipamv1.IPAddressSpec{Address: ip, Prefix: prefix, Gateway: gateway, PoolRef: pool}}
	}
	claim := func(pool ipamv1.IPPoolReference) *ipamv1.IPAddressClaim {
		return &ipamv1.IPAddressClaim{Spec: ipamv1.IPAddressClaimSpec{PoolRef: pool}}
	}
	other := pool
	other.Name = "q"
	tests := map[string]struct {
		reason string
		req    Request
		want   []string
	}{
		"IPv4":         {reason: "valid", req: Request{New: address("10.0.0.4", new(int32(24)), "10.0.0.1")}},
		"IPv6":         {reason: "valid, without a gateway", req: Request{New: address("fd00::4", new(int32(64)), "")}},
		"zero prefix":  {reason: "0 is a prefix", req: Request{New: address("10.0.0.4", new(int32(0)), "")}},
		"no prefix":    {reason: "required", req: Request{New: address("10.0.0.4", nil, "")}, want: []string{"spec.prefix"}},
		"long prefix":  {reason: "IPv4 has 32 bits", req: Request{New: address("10.0.0.4", new(int32(33)), "")}, want: []string{"spec.prefix"}},
		"not an IP":    {reason: "no address", req: Request{New: address("10.0.0", new(int32(24)), "")}, want: []string{"spec.address"}},
		"bad gateway":  {reason: "no address", req: Request{New: address("10.0.0.4", new(int32(24)), "gw")}, want: []string{"spec.gateway"}},
		"unchanged":    {reason: "a write that changes nothing", req: Request{Old: address("x", nil, ""), New: address("x", nil, "")}},
		"changed":      {reason: "addresses stay", req: Request{Old: address("10.0.0.4", new(int32(24)), ""), New: address("10.0.0.5", new(int32(24)), "")}, want: []string{"spec"}},
		"no claim":     {reason: "nothing to compare with", req: Request{New: address("10.0.0.4", new(int32(24)), ""), Facts: RelatedObjects{}}},
		"its claim":    {reason: "the pool of the claim", req: Request{New: address("10.0.0.4", new(int32(24)), ""), Facts: RelatedObjects{Claim: claim(pool)}}},
		"other pool":   {reason: "the claim asks for another pool", req: Request{New: address("10.0.0.4", new(int32(24)), ""), Facts: RelatedObjects{Claim: claim(other)}}, want: []string{"spec.poolRef"}},
		"claim":        {reason: "valid", req: Request{New: claim(pool)}},
		"claim moved":  {reason: "claims stay with their pool", req: Request{Old: claim(pool), New: claim(other)}, want: []string{"spec.poolRef"}},
		"claim on air": {reason: "a pool has a kind and a name", req: Request{New: claim(ipamv1.IPPoolReference{})}, want: []string{"spec.poolRef.kind", "spec.poolRef.name"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, problems(Validate(tt.req))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// IC-06, IM-08, IM-09, IP2-09, IP2-10, CP-13: templates stay as they are, except when the topology controller asks.
func TestOwnTemplates(t *testing.T) {
	image := func(image string) localv1.LocalMachineBackend {
		return localv1.LocalMachineBackend{Container: &localv1.ContainerMachine{Image: image}}
	}
	machine := func(i string) runtime.Object {
		o := &localv1.LocalMachineTemplate{}
		o.Spec.Template.Spec.Backend = image(i)
		return o
	}
	pool := func(i string) runtime.Object {
		o := &localv1.LocalMachinePoolTemplate{}
		o.Spec.Template.Spec.Template.Backend = image(i)
		return o
	}
	cluster := func(subnet string) runtime.Object {
		o := &localv1.LocalClusterTemplate{}
		o.Spec.Template.Spec.Backend.Container = &localv1.ContainerCluster{Network: localv1.ContainerNetwork{Subnet: subnet}}
		return o
	}
	hosted := func(repository string) runtime.Object {
		o := &hostedv1.HostedControlPlaneTemplate{}
		o.Spec.Template.Spec.Addons.ImageRepository = repository
		return o
	}
	for name, build := range map[string]func(string) runtime.Object{
		"LocalMachineTemplate": machine, "LocalMachinePoolTemplate": pool,
		"LocalClusterTemplate": cluster, "HostedControlPlaneTemplate": hosted,
	} {
		t.Run(name, func(t *testing.T) {
			asking := build("b")
			asking.(metav1.Object).SetAnnotations(map[string]string{clusterv1.TopologyDryRunAnnotation: ""})
			for _, step := range []struct {
				reason string
				req    Request
				want   []string
			}{
				{"created", Request{New: build("a")}, nil},
				{"the same again", Request{Old: build("a"), New: build("a")}, nil},
				{"changed", Request{Old: build("a"), New: build("b")}, []string{"spec.template"}},
				{"a dry run of a user", Request{Old: build("a"), New: build("b"), DryRun: true}, []string{"spec.template"}},
				{"the annotation alone", Request{Old: build("a"), New: asking}, []string{"spec.template"}},
				{"the topology controller asks", Request{Old: build("a"), New: asking, DryRun: true}, nil},
			} {
				if diff := cmp.Diff(step.want, problems(Validate(step.req))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", step.reason, diff)
				}
			}
		})
	}
}

// Labels in the template of a pool end on LocalMachines.
func TestLocalMachinePool(t *testing.T) {
	p := &localv1.LocalMachinePool{}
	p.Spec.Template.ObjectMeta.Labels = map[string]string{"a": "not valid"}
	want := []string{"spec.template.metadata.labels"}
	if diff := cmp.Diff(want, problems(Validate(Request{New: p}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What another system manages stays that way (IC-07).
func TestManagedByStays(t *testing.T) {
	const name = "metadata.annotations[" + clusterv1.ManagedByAnnotation + "]"
	for kind, object := range map[string]runtime.Object{
		"LocalCluster": &localv1.LocalCluster{}, "LocalMachine": &localv1.LocalMachine{}, "LocalMachinePool": &localv1.LocalMachinePool{},
	} {
		with := func(annotations map[string]string) runtime.Object {
			o := object.DeepCopyObject()
			o.(metav1.Object).SetAnnotations(annotations)
			return o
		}
		terraform, empty := map[string]string{clusterv1.ManagedByAnnotation: "terraform"}, map[string]string{clusterv1.ManagedByAnnotation: ""}
		for _, step := range []struct {
			reason string
			req    Request
			want   []string
		}{
			{"created", Request{New: with(terraform)}, nil},
			{"handed to another system", Request{Old: with(nil), New: with(terraform)}, nil},
			{"of another system than before", Request{Old: with(terraform), New: with(empty)}, nil},
			{"stays", Request{Old: with(terraform), New: with(terraform)}, nil},
			{"of none", Request{Old: with(nil), New: with(map[string]string{"a": "b"})}, nil},
			{"removed", Request{Old: with(terraform), New: with(nil)}, []string{name}},
			{"an empty value counts as well", Request{Old: with(empty), New: with(map[string]string{"a": "b"})}, []string{name}},
		} {
			if diff := cmp.Diff(step.want, problems(Validate(step.req))); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", kind, step.reason, diff)
			}
		}
	}
}

// A tenant's flags for processes of the host: refused where they are written, the rest of an object that has one already
// can still be changed.
func TestFlagsOfHostedControlPlanes(t *testing.T) { // CP-01, CP-13
	value := "/secrets#unix:///run/etcd.sock"
	hostile := hostedv1.Component{ExtraArgs: []hostedv1.Arg{{Name: "etcd-servers-overrides", Value: &value}}}
	template := func(c hostedv1.Component) *hostedv1.HostedControlPlaneTemplate {
		o := &hostedv1.HostedControlPlaneTemplate{}
		o.Spec.Template.Spec.Etcd = c
		return o
	}
	plane := func(c hostedv1.Component, days int32) *hostedv1.HostedControlPlane {
		o := &hostedv1.HostedControlPlane{}
		o.Spec.APIServer, o.Spec.CertificateValidityDays = c, days
		return o
	}
	for name, tc := range map[string]struct {
		reason string
		req    Request
		want   []string
	}{
		"template":  {"every component has its list", Request{New: template(hostile)}, []string{"spec.template.spec.etcd.extraArgs[0]"}},
		"created":   {"", Request{New: plane(hostile, 1)}, []string{"spec.apiServer.extraArgs[0]"}},
		"added":     {"", Request{Old: plane(hostedv1.Component{}, 1), New: plane(hostile, 1)}, []string{"spec.apiServer.extraArgs[0]"}},
		"there":     {"something else is changed, a finalizer perhaps", Request{Old: plane(hostile, 1), New: plane(hostile, 2)}, nil},
		"taken out": {"", Request{Old: plane(hostile, 1), New: plane(hostedv1.Component{}, 1)}, nil},
	} {
		if diff := cmp.Diff(tc.want, problems(Validate(tc.req))); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// A topology whose control plane would run on this host says it too.
func TestVersionOfATopologyOnThisHost(t *testing.T) { // CP-04
	cluster := func(version string) *clusterv1.Cluster {
		o := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
		o.Spec.Topology.ClassRef.Name, o.Spec.Topology.Version = "class", version
		return o
	}
	const says = "spec.topology.version: this host has Kubernetes v1.36.3 and not v1.37.2"
	for name, tc := range map[string]struct {
		old, now string
		onHost   bool
		warns    bool
	}{
		"new":         {"", "v1.37.2", true, true},
		"changed":     {"v1.36.3", "v1.37.2", true, true},
		"not changed": {"v1.37.2", "v1.37.2", true, false},
		"it has it":   {"", "v1.36.3", true, false},
		"elsewhere":   {"", "v1.37.2", false, false},
	} {
		r := Request{New: cluster(tc.now), Gates: Gates{ClusterTopology: true}, Facts: RelatedObjects{OnHost: tc.onHost, Class: &clusterv1.ClusterClass{}},
			KubernetesVersions: func() []string { return []string{"v1.36.3"} }}
		if tc.old != "" {
			r.Old = cluster(tc.old)
		}
		if warned := strings.Contains(strings.Join(Validate(r).Warnings, "\n"), says); warned != tc.warns {
			t.Errorf("%s: %v", name, Validate(r).Warnings)
		}
	}
}

// A version that this build does not include is said when it is written.
func TestVersionOfAHostedControlPlane(t *testing.T) { // CP-04
	plane := func(version string) *hostedv1.HostedControlPlane {
		o := &hostedv1.HostedControlPlane{}
		o.Spec.Version = version
		return o
	}
	running := plane("v1.36.3")
	running.Status.Version = "v1.36.3"
	simulated := plane("v1.2.3")
	simulated.Spec.Backend.Simulated = &hostedv1.SimulatedBackend{}
	absent := buildinfo.Kubernetes() + " and not v1.2.3"
	for name, tc := range map[string]struct {
		req  Request
		says string
	}{
		"included":     {Request{New: plane(buildinfo.Kubernetes())}, ""},
		"not included": {Request{New: plane("v1.2.3")}, absent},
		"changed":      {Request{Old: plane(buildinfo.Kubernetes()), New: plane("v1.2.3")}, absent},
		"not changed":  {Request{Old: plane("v1.2.3"), New: plane("v1.2.3")}, ""},
		"back":         {Request{Old: running, New: plane("v1.35.4")}, "the control plane is at v1.36.3 and cannot go back to v1.35.4"},
		"simulated":    {Request{New: simulated}, ""},
	} {
		v := Validate(tc.req)
		if len(v.Errors) > 0 || (len(v.Warnings) > 0) != (tc.says != "") || tc.says != "" && !strings.Contains(v.Warnings[0], tc.says) {
			t.Errorf("%s: %v", name, v)
		}
	}
}
