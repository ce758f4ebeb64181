package admission

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

type kubeadmPlane = controlplanev1.KubeadmControlPlane

// kubeadmPlaneWith is a control plane of three that is valid before the changes.
func kubeadmPlaneWith(changes ...func(*kubeadmPlane)) *kubeadmPlane {
	p := &kubeadmPlane{}
	p.Name = "p"
	p.Spec.Replicas, p.Spec.Version = new(int32(3)), "v1.35.4"
	p.Spec.MachineTemplate.Spec.InfrastructureRef = ref("LocalMachineTemplate")
	for _, change := range changes {
		change(p)
	}
	return p
}

func planeReplicas(n int32) func(*kubeadmPlane) {
	return func(p *kubeadmPlane) { p.Spec.Replicas = &n }
}
func planeVersion(v string) func(*kubeadmPlane) { return func(p *kubeadmPlane) { p.Spec.Version = v } }
func planeDNS(tag string) func(*kubeadmPlane) {
	return func(p *kubeadmPlane) { p.Spec.KubeadmConfigSpec.ClusterConfiguration.DNS.ImageTag = tag }
}
func planeSurge(n intstr.IntOrString) func(*kubeadmPlane) {
	return func(p *kubeadmPlane) { p.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = &n }
}
func planeEtcd(tag string) func(*kubeadmPlane) {
	return func(p *kubeadmPlane) { p.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.ImageTag = tag }
}
func planeTimeouts(initial, join *int32) func(*kubeadmPlane) {
	return func(p *kubeadmPlane) {
		p.Spec.KubeadmConfigSpec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = initial
		p.Spec.KubeadmConfigSpec.JoinConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = join
	}
}
func planeValidity(before, leaf, authority int32) func(*kubeadmPlane) {
	return func(p *kubeadmPlane) {
		p.Spec.Rollout.Before.CertificatesExpiryDays = before
		c := &p.Spec.KubeadmConfigSpec.ClusterConfiguration
		c.CertificateValidityPeriodDays, c.CACertificateValidityPeriodDays = leaf, authority
	}
}
func planeNames(template string) func(*kubeadmPlane) {
	return func(p *kubeadmPlane) { p.Spec.MachineNaming.Template = template }
}
func externalEtcd(p *kubeadmPlane) {
	p.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://etcd:2379"}}
}
func skipDNS(p *kubeadmPlane) {
	p.Annotations = map[string]string{controlplanev1.SkipCoreDNSAnnotation: ""}
}

func TestKubeadmControlPlane(t *testing.T) { // KC-09, KC-26, KC-27, KC-29
	const config = "spec.kubeadmConfigSpec."
	for name, tc := range map[string]struct {
		reason   string
		old, new *kubeadmPlane
		want     []string
	}{
		"valid":               {"", nil, kubeadmPlaneWith(), nil},
		"one":                 {"", nil, kubeadmPlaneWith(planeReplicas(1)), nil},
		"none":                {"nothing would be left of etcd", nil, kubeadmPlaneWith(planeReplicas(0)), []string{"spec.replicas"}},
		"negative":            {"", nil, kubeadmPlaneWith(planeReplicas(-1)), []string{"spec.replicas"}},
		"even":                {"a member more without more safety", nil, kubeadmPlaneWith(planeReplicas(4)), []string{"spec.replicas"}},
		"even, external etcd": {"its members are elsewhere", nil, kubeadmPlaneWith(planeReplicas(4), externalEtcd), nil},
		"none, external etcd": {"", nil, kubeadmPlaneWith(planeReplicas(0), externalEtcd), []string{"spec.replicas"}},
		"no version":          {"", nil, kubeadmPlaneWith(planeVersion("")), []string{"spec.version"}},
		"not a version":       {"", nil, kubeadmPlaneWith(planeVersion("vX")), []string{"spec.version"}},
		"surge 0":             {"", nil, kubeadmPlaneWith(planeSurge(intstr.FromInt32(0))), nil},
		"surge 0 of one":      {"quorum", nil, kubeadmPlaneWith(planeReplicas(1), planeSurge(intstr.FromInt32(0))), []string{"spec.rollout.strategy.rollingUpdate.maxSurge"}},
		"surge 2":             {"one at a time", nil, kubeadmPlaneWith(planeSurge(intstr.FromInt32(2))), []string{"spec.rollout.strategy.rollingUpdate.maxSurge"}},
		"surge in percent":    {"", nil, kubeadmPlaneWith(planeSurge(intstr.FromString("1%"))), []string{"spec.rollout.strategy.rollingUpdate.maxSurge"}},
		"surge as text":       {"", nil, kubeadmPlaneWith(planeSurge(intstr.FromString("1"))), nil},
		"tag of etcd":         {"", nil, kubeadmPlaneWith(planeEtcd("3.6.5-0")), nil},
		"no tag of etcd":      {"Machines would not boot", nil, kubeadmPlaneWith(planeEtcd("v3.5:invalid")), []string{config + "clusterConfiguration.etcd.local.imageTag"}},
		"another timeout":     {"", nil, kubeadmPlaneWith(planeTimeouts(new(int32(5)), new(int32(6)))), []string{config + "initConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds"}},
		"one timeout":         {"", nil, kubeadmPlaneWith(planeTimeouts(nil, new(int32(6)))), []string{config + "initConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds"}},
		"same timeouts":       {"", nil, kubeadmPlaneWith(planeTimeouts(new(int32(6)), new(int32(6)))), nil},
		"expires at once":     {"Machines would be replaced without end", nil, kubeadmPlaneWith(planeValidity(365, 365, 0)), []string{"spec.rollout.before.certificatesExpiryDays"}},
		"expires by default":  {"kubeadm makes certificates for a year", nil, kubeadmPlaneWith(planeValidity(366, 0, 0)), []string{"spec.rollout.before.certificatesExpiryDays"}},
		"expires":             {"", nil, kubeadmPlaneWith(planeValidity(364, 365, 3650)), nil},
		"outlives authority":  {"", nil, kubeadmPlaneWith(planeValidity(0, 31, 30)), []string{config + "clusterConfiguration.certificateValidityPeriodDays"}},
		"stored":              {"it does not hold other changes back", kubeadmPlaneWith(planeValidity(366, 365, 0), planeEtcd("a:b")), kubeadmPlaneWith(planeValidity(366, 365, 0), planeEtcd("a:b"), planeVersion("v1.36.3")), nil},
		"changed":             {"", kubeadmPlaneWith(planeValidity(366, 365, 0)), kubeadmPlaneWith(planeValidity(367, 365, 0)), []string{"spec.rollout.before.certificatesExpiryDays"}},
		"names":               {"", nil, kubeadmPlaneWith(planeNames("{{ .cluster.name }}-{{ .kubeadmControlPlane.name }}-{{ .random }}")), nil},
		"same names":          {"", nil, kubeadmPlaneWith(planeNames("{{ .cluster.name }}")), []string{"spec.machineNaming.template"}},
		"names of others":     {"", nil, kubeadmPlaneWith(planeNames("{{ .machineSet.name }}-{{ .random }}")), []string{"spec.machineNaming.template"}},
		"two files":           {"the rules of KubeadmConfig hold", nil, kubeadmPlaneWith(func(p *kubeadmPlane) { p.Spec.KubeadmConfigSpec.Files = []bootstrapv1.File{{Path: "/a"}, {Path: "/a"}} }), []string{config + "files[1].path"}},
		"two kinds of etcd":   {"", nil, kubeadmPlaneWith(externalEtcd, func(p *kubeadmPlane) { p.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.DataDir = "/d" }), []string{config + "clusterConfiguration.etcd.local"}},
		"tag of CoreDNS":      {"", nil, kubeadmPlaneWith(planeDNS("latest")), []string{config + "clusterConfiguration.dns.imageTag"}},
		"taint of others":     {"", nil, kubeadmPlaneWith(func(p *kubeadmPlane) { p.Spec.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{Key: "a"}} }), []string{"spec.machineTemplate.spec.taints"}},
		"label":               {"", nil, kubeadmPlaneWith(func(p *kubeadmPlane) { p.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"a": "?"} }), []string{"spec.machineTemplate.metadata.labels"}},

		"next minor":           {"", kubeadmPlaneWith(), kubeadmPlaneWith(planeVersion("v1.36.3")), nil},
		"a minor skipped":      {"kubeadm does not do it", kubeadmPlaneWith(), kubeadmPlaneWith(planeVersion("v1.37.0")), []string{"spec.version"}},
		"back":                 {"", kubeadmPlaneWith(), kubeadmPlaneWith(planeVersion("v1.35.3")), []string{"spec.version"}},
		"to external etcd":     {"the data would be lost", kubeadmPlaneWith(), kubeadmPlaneWith(externalEtcd), []string{config + "clusterConfiguration.etcd"}},
		"to local etcd":        {"", kubeadmPlaneWith(externalEtcd), kubeadmPlaneWith(), []string{config + "clusterConfiguration.etcd"}},
		"CoreDNS up":           {"", kubeadmPlaneWith(planeDNS("v1.11.3")), kubeadmPlaneWith(planeDNS("v1.12.0_build.1")), nil},
		"CoreDNS down":         {"there is no way", kubeadmPlaneWith(planeDNS("v1.11.3")), kubeadmPlaneWith(planeDNS("v1.10.1")), []string{config + "clusterConfiguration.dns.imageTag"}},
		"CoreDNS of others":    {"somebody else cares for it", kubeadmPlaneWith(planeDNS("v1.11.3")), kubeadmPlaneWith(planeDNS("v1.10.1"), skipDNS), nil},
		"CoreDNS from kubeadm": {"the version that runs is not known here", kubeadmPlaneWith(), kubeadmPlaneWith(planeDNS("v1.10.1")), nil},
	} {
		r := Request{New: tc.new}
		if tc.old != nil {
			r.Old = tc.old
		}
		v := Validate(r)
		if diff := cmp.Diff(tc.want, problems(v)); diff != "" {
			t.Errorf("%s: %s: %v (-want +got):\n%s", name, tc.reason, v.Errors, diff)
		}
	}
}

func TestKubeadmControlPlaneMessages(t *testing.T) { // KC-26, KC-27
	for want, r := range map[string]Request{
		"spec.replicas: Forbidden: cannot be even with managed etcd: 4 members tolerate no more failures than 3; use 3 or 5": {
			New: kubeadmPlaneWith(planeReplicas(4))},
		"spec.version: Forbidden: cannot change from v1.35.4 to v1.37.0: upgrade one minor version at a time, to v1.36 first": {
			Old: kubeadmPlaneWith(), New: kubeadmPlaneWith(planeVersion("v1.37.0"))},
		"spec.version: Forbidden: cannot change from v1.35.4 to v1.34.0: etcd and the API server cannot be downgraded": {
			Old: kubeadmPlaneWith(), New: kubeadmPlaneWith(planeVersion("v1.34.0"))},
		"spec.kubeadmConfigSpec.clusterConfiguration.certificatesDir: Forbidden: cannot be changed, because the cluster and its existing Machines use it; " +
			"restore the previous value": {Old: kubeadmPlaneWith(), New: kubeadmPlaneWith(func(p *kubeadmPlane) { p.Spec.KubeadmConfigSpec.ClusterConfiguration.CertificatesDir = "/d" })},
	} {
		if got := Validate(r).Errors.ToAggregate(); got == nil || got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

func TestKubeadmControlPlaneScale(t *testing.T) { // KC-28
	for name, tc := range map[string]struct {
		plane    *kubeadmPlane
		replicas int32
		refused  bool
	}{
		"odd":                 {kubeadmPlaneWith(), 5, false},
		"even":                {kubeadmPlaneWith(), 2, true},
		"none":                {kubeadmPlaneWith(), 0, true},
		"even, external etcd": {kubeadmPlaneWith(externalEtcd), 2, false},
		"another kind":        {nil, 2, false},
	} {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: tc.replicas}}
		if v := Validate(Request{New: scale, Old: &autoscalingv1.Scale{}, Related: RelatedObjects{Scaled: tc.plane}}); (len(v.Errors) > 0) != tc.refused {
			t.Errorf("%s: %v", name, v.Errors)
		}
	}
}

// Every field of kubeadm's configuration either stays, or is known to change. A field that the API gets later fails here.
func TestKubeadmControlPlaneFields(t *testing.T) { // KC-27
	changes := map[string]bool{}
	for _, path := range strings.Fields(`
		clusterConfiguration.etcd clusterConfiguration.apiServer clusterConfiguration.controllerManager clusterConfiguration.scheduler
		clusterConfiguration.dns clusterConfiguration.imageRepository clusterConfiguration.featureGates
		clusterConfiguration.certificateValidityPeriodDays clusterConfiguration.encryptionAlgorithm
		initConfiguration.nodeRegistration initConfiguration.skipPhases initConfiguration.patches initConfiguration.timeouts
		joinConfiguration.nodeRegistration joinConfiguration.skipPhases joinConfiguration.patches joinConfiguration.timeouts`) {
		changes[path] = true
	}
	fixed := map[string]bool{}
	for _, f := range fixedConfiguration() {
		fixed[strings.Join(f.path, ".")] = true
	}
	for section, of := range map[string]reflect.Type{
		"clusterConfiguration": reflect.TypeFor[bootstrapv1.ClusterConfiguration](),
		"initConfiguration":    reflect.TypeFor[bootstrapv1.InitConfiguration](),
		"joinConfiguration":    reflect.TypeFor[bootstrapv1.JoinConfiguration](),
	} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if path := section + "." + name; fixed[path] == changes[path] {
				t.Errorf("%s: stays %t, changes %t", path, fixed[path], changes[path])
			}
		}
	}
	changed := kubeadmPlaneWith(func(p *kubeadmPlane) {
		c := &p.Spec.KubeadmConfigSpec
		c.ClusterConfiguration.ControlPlaneEndpoint, c.ClusterConfiguration.CertificatesDir = "a:1", "/d"
		c.ClusterConfiguration.CACertificateValidityPeriodDays = 1
		c.InitConfiguration.BootstrapTokens, c.InitConfiguration.LocalAPIEndpoint.BindPort = []bootstrapv1.BootstrapToken{{}}, 1
		c.JoinConfiguration.CACertPath, c.JoinConfiguration.Discovery.TLSBootstrapToken = "/ca", "t"
		c.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{}
	})
	for _, path := range problems(Validate(Request{Old: kubeadmPlaneWith(), New: changed})) {
		delete(fixed, strings.TrimPrefix(path, "spec.kubeadmConfigSpec."))
	}
	if len(fixed) > 0 {
		t.Errorf("may be changed: %v", fixed)
	}
}

func TestKubeadmControlPlaneDefaults(t *testing.T) { // KC-09
	in := kubeadmPlaneWith(planeVersion("1.35.4"), func(p *kubeadmPlane) { p.Spec.Replicas = nil })
	want := kubeadmPlaneWith(planeReplicas(1), planeSurge(intstr.FromInt32(1)),
		func(p *kubeadmPlane) { p.Spec.Rollout.Strategy.Type = controlplanev1.RollingUpdateStrategyType })
	got, changed := Default(Request{New: in})
	if diff := cmp.Diff(want, got); diff != "" || !changed || in.Spec.Replicas != nil {
		t.Errorf("changed %t (-want +got):\n%s", changed, diff)
	}
	if again, changed := Default(Request{New: got}); changed || again != got {
		t.Errorf("defaults have defaults: %v", again)
	}
}

func TestKubeadmControlPlaneTemplate(t *testing.T) { // KC-36
	template := func(verbosity int32) *controlplanev1.KubeadmControlPlaneTemplate {
		o := &controlplanev1.KubeadmControlPlaneTemplate{}
		o.Spec.Template.Spec.KubeadmConfigSpec.Verbosity = &verbosity
		return o
	}
	defaulted, _ := Default(Request{New: template(1)})
	labelled := template(1)
	labelled.Spec.Template.ObjectMeta.Labels = map[string]string{"a": "b"}
	asks := template(2)
	asks.Annotations = map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
	older := template(1)
	older.Spec.Template.Spec.KubeadmConfigSpec.Format = bootstrapv1.CloudConfig
	older.Spec.Template.Spec.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.ImagePullPolicy = "IfNotPresent"
	always := template(1)
	always.Spec.Template.Spec.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.ImagePullPolicy = "Always"
	surge := template(1)
	surge.Spec.Template.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(2))
	for name, tc := range map[string]struct {
		reason string
		r      Request
		want   []string
	}{
		"new":               {"", Request{New: template(1)}, nil},
		"surge":             {"", Request{New: surge}, []string{"spec.template.spec.rollout.strategy.rollingUpdate.maxSurge"}},
		"changed":           {"control planes refer to it", Request{Old: defaulted, New: template(2)}, []string{"spec.template.spec"}},
		"labels":            {"they are copied when a control plane is made", Request{Old: template(1), New: labelled}, nil},
		"without defaults":  {"stored before there were any", Request{Old: template(1), New: defaulted}, nil},
		"older defaults":    {"older versions of Cluster API wrote them", Request{Old: older, New: template(1)}, nil},
		"no default":        {"", Request{Old: always, New: template(1)}, []string{"spec.template.spec"}},
		"asked":             {"nothing is stored", Request{Old: defaulted, New: asks, DryRun: true}, nil},
		"asked and written": {"", Request{Old: defaulted, New: asks}, []string{"spec.template.spec"}},
	} {
		tc.r.New, _ = Default(tc.r)
		if diff := cmp.Diff(tc.want, problems(Validate(tc.r))); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}
