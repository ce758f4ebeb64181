package controlplane

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var rolloutNow = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func plane(changes ...func(*controlplanev1.KubeadmControlPlane)) *controlplanev1.KubeadmControlPlane {
	p := &controlplanev1.KubeadmControlPlane{}
	p.Spec.Version = "v1.36.3"
	p.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooTemplate", Name: "t"}
	c := &p.Spec.KubeadmConfigSpec
	c.ClusterConfiguration.ImageRepository = "r"
	c.InitConfiguration.NodeRegistration.Name, c.JoinConfiguration.NodeRegistration.Name = "x", "x"
	for _, change := range changes {
		change(p)
	}
	return p
}

func rolloutMachine(joins bool, changes ...func(*RolloutMachine)) RolloutMachine {
	p := plane()
	m := RolloutMachine{Machine: &clusterv1.Machine{}, Config: &bootstrapv1.KubeadmConfig{Spec: desiredConfig(p, joins)}, Infra: p.Spec.MachineTemplate.Spec.InfrastructureRef}
	m.Spec.Version, m.CreationTimestamp = "v1.36.3", metav1.NewTime(rolloutNow.AddDate(0, -1, 0))
	for _, change := range changes {
		change(&m)
	}
	return m
}

func expiresIn(days int) func(*RolloutMachine) {
	return func(m *RolloutMachine) {
		m.Status.CertificatesExpiryDate = metav1.NewTime(rolloutNow.AddDate(0, 0, days))
	}
}

// What keeps Machines from being replaced before their certificates expire is in the condition RollingOut.
func TestFutile(t *testing.T) { // KC-24
	with := func(days, validity int32) *controlplanev1.KubeadmControlPlane {
		return plane(func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.Rollout.Before.CertificatesExpiryDays, p.Spec.KubeadmConfigSpec.ClusterConfiguration.CertificateValidityPeriodDays = days, validity
		})
	}
	for name, tc := range map[string]struct {
		plane     *controlplanev1.KubeadmControlPlane
		authority time.Time
		want      string
	}{
		"not set":   {with(0, 10), time.Time{}, ""},
		"shorter":   {with(9, 10), time.Time{}, ""},
		"as long":   {with(10, 10), time.Time{}, "spec.rollout.before.certificatesExpiryDays (10) is not less than certificateValidityPeriodDays (10)"},
		"a year":    {with(365, 0), time.Time{}, "certificateValidityPeriodDays (365)"},
		"authority": {with(9, 10), rolloutNow.AddDate(0, 0, 9), "the authority that signs them expires on 2026-06-10T00:00:00Z itself"},
	} {
		if got := rolloutFutile(tc.plane, tc.authority, rolloutNow); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestReasons(t *testing.T) { // KC-08, KC-24, CP-09
	type change = func(*controlplanev1.KubeadmControlPlane)
	days := func(p *controlplanev1.KubeadmControlPlane) { p.Spec.Rollout.Before.CertificatesExpiryDays = 10 }
	for name, tc := range map[string]struct {
		reason  string
		machine RolloutMachine
		change  change
		want    string
	}{
		"init":             {"", rolloutMachine(false), nil, ""},
		"join":             {"", rolloutMachine(true), nil, ""},
		"version":          {"", rolloutMachine(true, func(m *RolloutMachine) { m.Spec.Version = "v1.35.4" }), nil, "Version: Version v1.35.4, v1.36.3 required"},
		"infrastructure":   {"", rolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) { p.Spec.MachineTemplate.Spec.InfrastructureRef.Name = "u" }, "Infrastructure: FooTemplate t, FooTemplate u required"},
		"origin not known": {"nothing to compare", rolloutMachine(true, func(m *RolloutMachine) { m.Infra = clusterv1.ContractVersionedObjectReference{} }), nil, ""},
		"commands": {"", rolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"a"}
		}, "KubeadmConfig: KubeadmConfig differs in preKubeadmCommands"},
		"cluster": {"", rolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.ClusterConfiguration.ImageRepository = "s"
		}, "KubeadmConfig: KubeadmConfig differs in clusterConfiguration.imageRepository"},
		"CoreDNS": {"it is changed in the cluster", rolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.ClusterConfiguration.DNS.ImageTag = "v1"
		}, ""},
		"join, of an init": {"the first Machine has no such configuration", rolloutMachine(false), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.Name = "y"
		}, ""},
		"join, of a join": {"", rolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.Name = "y"
		}, "KubeadmConfig: KubeadmConfig differs in joinConfiguration.nodeRegistration"},
		"discovery": {"the reference implementation writes it there", rolloutMachine(true, func(m *RolloutMachine) { m.Config.Spec.JoinConfiguration.Discovery.TLSBootstrapToken = "t" }), nil, ""},
		"format":    {"the default", rolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) { p.Spec.KubeadmConfigSpec.Format = bootstrapv1.CloudConfig }, ""},
		"metadata": {"it follows in place", rolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"a": "b"}
		}, ""},
		"after": {"", rolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.Rollout.After = metav1.NewTime(rolloutNow.AddDate(0, 0, -1))
		}, "RolloutAfter: KubeadmControlPlane spec.rollout.after expired"},
		"after, newer": {"it was replaced", rolloutMachine(true, func(m *RolloutMachine) { m.CreationTimestamp = metav1.NewTime(rolloutNow) }), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.Rollout.After = metav1.NewTime(rolloutNow.AddDate(0, 0, -1))
		}, ""},
		"certificates": {"", rolloutMachine(true, func(m *RolloutMachine) { m.Status.CertificatesExpiryDate = metav1.NewTime(rolloutNow.AddDate(0, 0, 9)) }), days, "CertificateExpiry: Certificates will expire soon, within 10 days"},
		"certificates later": {"", rolloutMachine(true, func(m *RolloutMachine) {
			m.Status.CertificatesExpiryDate = metav1.NewTime(rolloutNow.AddDate(0, 0, 11))
		}), days, ""},
		"not known": {"", rolloutMachine(true), days, ""},
		"a new one is no better": {"it would be replaced without end", rolloutMachine(true, expiresIn(9)), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.Rollout.Before.CertificatesExpiryDays = 366
		}, ""},
		"the authority expires": {"it signs nothing that is valid for longer", rolloutMachine(true, expiresIn(9), func(m *RolloutMachine) { m.Authority = rolloutNow.AddDate(0, 0, 10) }), days, ""},
		"the authority stays":   {"", rolloutMachine(true, expiresIn(9), func(m *RolloutMachine) { m.Authority = rolloutNow.AddDate(0, 0, 11) }), days, "CertificateExpiry: Certificates will expire soon, within 10 days"},
	} {
		p := plane()
		if tc.change != nil {
			p = plane(tc.change)
		}
		var got []string
		for _, r := range rolloutReasons(p, tc.machine, rolloutNow) {
			got = append(got, string(r.Cause)+": "+r.Message)
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func candidate(name, domain string, age int, changes ...func(*rolloutCandidate)) rolloutCandidate {
	c := rolloutCandidate{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(rolloutNow.Add(-time.Duration(age) * time.Hour))}}}
	c.Spec.FailureDomain = domain
	for _, change := range changes {
		change(&c)
	}
	return c
}

func marked(c *rolloutCandidate) {
	c.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
}
func outdated(c *rolloutCandidate)  { c.Outdated = true }
func unhealthy(c *rolloutCandidate) { c.Unhealthy = true }

func TestChoices(t *testing.T) { // KC-05, KC-06, CP-16, FD-01
	cluster := &clusterv1.Cluster{}
	cluster.Status.FailureDomains = []clusterv1.FailureDomain{{Name: "a", ControlPlane: new(true)}, {Name: "b", ControlPlane: new(true)}, {Name: "w"}}
	for name, tc := range map[string]struct {
		reason      string
		all         []rolloutCandidate
		next, where string
	}{
		"none":                 {"", nil, "", "a"},
		"oldest":               {"", []rolloutCandidate{candidate("x", "a", 1), candidate("y", "b", 2)}, "y", "a"},
		"crowded":              {"the fullest domain gives one", []rolloutCandidate{candidate("x", "a", 1), candidate("y", "a", 1), candidate("z", "b", 9)}, "x", "b"},
		"outdated":             {"", []rolloutCandidate{candidate("x", "a", 1, outdated), candidate("y", "b", 9)}, "x", "a"},
		"outdated, sick":       {"", []rolloutCandidate{candidate("x", "a", 9, outdated), candidate("y", "b", 1, outdated, unhealthy)}, "y", "a"},
		"sick":                 {"that alone is the business of a health check", []rolloutCandidate{candidate("x", "a", 9), candidate("y", "b", 1, unhealthy)}, "x", "a"},
		"marked":               {"a person knows better", []rolloutCandidate{candidate("x", "a", 9, outdated, unhealthy), candidate("y", "b", 1, marked)}, "y", "a"},
		"marked, outdated":     {"", []rolloutCandidate{candidate("x", "a", 9, marked), candidate("y", "b", 1, marked, outdated)}, "y", "b"},
		"up to date elsewhere": {"Machines that go do not count", []rolloutCandidate{candidate("x", "a", 1, outdated), candidate("y", "a", 1, outdated), candidate("z", "b", 1)}, "x", "a"},
	} {
		got, _ := nextToDelete(tc.all, cluster)
		if tc.next != "" && got.Name != tc.next {
			t.Errorf("%s: %s: deletes %s, want %s", name, tc.reason, got.Name, tc.next)
		}
		if where := domainForNew(tc.all, cluster); where != tc.where {
			t.Errorf("%s: %s: a new one in %s, want %s", name, tc.reason, where, tc.where)
		}
	}
	if got := domainForNew(nil, &clusterv1.Cluster{}); got != "" {
		t.Errorf("a Cluster without failure domains: %q", got)
	}
}
