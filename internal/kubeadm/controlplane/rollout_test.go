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

	"github.com/slipwayhq/slipway/internal/machines"
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

func newRolloutMachine(joins bool, changes ...func(*memberMachine)) memberMachine {
	p := plane()
	m := memberMachine{OwnedMachine: machines.OwnedMachine{Machine: &clusterv1.Machine{}}, Config: &bootstrapv1.KubeadmConfig{Spec: desiredConfig(p, joins)}, Template: p.Spec.MachineTemplate.Spec.InfrastructureRef}
	m.Spec.Version, m.CreationTimestamp = "v1.36.3", metav1.NewTime(rolloutNow.AddDate(0, -1, 0))
	for _, change := range changes {
		change(&m)
	}
	return m
}

func expiresIn(days int) func(*memberMachine) {
	return func(m *memberMachine) {
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
		"authority": {with(9, 10), rolloutNow.AddDate(0, 0, 9), "the CA that signs the certificates expires on 2026-06-10T00:00:00Z itself"},
	} {
		if got := expiryRolloutObstacle(tc.plane, tc.authority, rolloutNow); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestReasons(t *testing.T) { // KC-08, KC-24, CP-09
	type change = func(*controlplanev1.KubeadmControlPlane)
	days := func(p *controlplanev1.KubeadmControlPlane) { p.Spec.Rollout.Before.CertificatesExpiryDays = 10 }
	for name, tc := range map[string]struct {
		reason  string
		machine memberMachine
		change  change
		want    string
	}{
		"init":             {"", newRolloutMachine(false), nil, ""},
		"join":             {"", newRolloutMachine(true), nil, ""},
		"version":          {"", newRolloutMachine(true, func(m *memberMachine) { m.Spec.Version = "v1.35.4" }), nil, "Version: Version v1.35.4, v1.36.3 required"},
		"infrastructure":   {"", newRolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) { p.Spec.MachineTemplate.Spec.InfrastructureRef.Name = "u" }, "Infrastructure: FooTemplate t, FooTemplate u required"},
		"origin not known": {"nothing to compare", newRolloutMachine(true, func(m *memberMachine) { m.Template = clusterv1.ContractVersionedObjectReference{} }), nil, ""},
		"commands": {"", newRolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"a"}
		}, "KubeadmConfig: KubeadmConfig differs in preKubeadmCommands"},
		"cluster": {"", newRolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.ClusterConfiguration.ImageRepository = "s"
		}, "KubeadmConfig: KubeadmConfig differs in clusterConfiguration.imageRepository"},
		"CoreDNS": {"it is changed in the cluster", newRolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.ClusterConfiguration.DNS.ImageTag = "v1"
		}, ""},
		"join, of an init": {"the first Machine has no such configuration", newRolloutMachine(false), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.Name = "y"
		}, ""},
		"join, of a join": {"", newRolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.Name = "y"
		}, "KubeadmConfig: KubeadmConfig differs in joinConfiguration.nodeRegistration"},
		"discovery": {"the reference implementation writes it there", newRolloutMachine(true, func(m *memberMachine) { m.Config.Spec.JoinConfiguration.Discovery.TLSBootstrapToken = "t" }), nil, ""},
		"format":    {"the default", newRolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) { p.Spec.KubeadmConfigSpec.Format = bootstrapv1.CloudConfig }, ""},
		"metadata": {"it follows in place", newRolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"a": "b"}
		}, ""},
		"after": {"", newRolloutMachine(true), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.Rollout.After = metav1.NewTime(rolloutNow.AddDate(0, 0, -1))
		}, "RolloutAfter: KubeadmControlPlane spec.rollout.after expired"},
		"after, newer": {"it was replaced", newRolloutMachine(true, func(m *memberMachine) { m.CreationTimestamp = metav1.NewTime(rolloutNow) }), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.Rollout.After = metav1.NewTime(rolloutNow.AddDate(0, 0, -1))
		}, ""},
		"certificates": {"", newRolloutMachine(true, func(m *memberMachine) { m.Status.CertificatesExpiryDate = metav1.NewTime(rolloutNow.AddDate(0, 0, 9)) }), days, "CertificateExpiry: Certificates will expire soon, within 10 days"},
		"certificates later": {"", newRolloutMachine(true, func(m *memberMachine) {
			m.Status.CertificatesExpiryDate = metav1.NewTime(rolloutNow.AddDate(0, 0, 11))
		}), days, ""},
		"not known": {"", newRolloutMachine(true), days, ""},
		"a new one is no better": {"it would be replaced without end", newRolloutMachine(true, expiresIn(9)), func(p *controlplanev1.KubeadmControlPlane) {
			p.Spec.Rollout.Before.CertificatesExpiryDays = 366
		}, ""},
		"the authority expires": {"it signs nothing that is valid for longer", newRolloutMachine(true, expiresIn(9), func(m *memberMachine) { m.Authority = rolloutNow.AddDate(0, 0, 10) }), days, ""},
		"the authority stays":   {"", newRolloutMachine(true, expiresIn(9), func(m *memberMachine) { m.Authority = rolloutNow.AddDate(0, 0, 11) }), days, "CertificateExpiry: Certificates will expire soon, within 10 days"},
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

func candidate(name, domain string, age int, changes ...func(*memberMachine)) memberMachine {
	c := memberMachine{OwnedMachine: machines.OwnedMachine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(rolloutNow.Add(-time.Duration(age) * time.Hour))}}}}
	c.Spec.FailureDomain = domain
	for _, change := range changes {
		change(&c)
	}
	return c
}

func marked(c *memberMachine) {
	c.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
}
func outdated(c *memberMachine)  { c.Reasons = []rolloutReason{{}} }
func unhealthy(c *memberMachine) { c.Unhealthy = "has no Pod" }

func TestChoices(t *testing.T) { // KC-05, KC-06, CP-16, FD-01
	cluster := &clusterv1.Cluster{}
	cluster.Status.FailureDomains = []clusterv1.FailureDomain{{Name: "a", ControlPlane: new(true)}, {Name: "b", ControlPlane: new(true)}, {Name: "w"}}
	for name, tc := range map[string]struct {
		reason      string
		all         []memberMachine
		next, where string
	}{
		"none":                 {"", nil, "", "a"},
		"oldest":               {"", []memberMachine{candidate("x", "a", 1), candidate("y", "b", 2)}, "y", "a"},
		"crowded":              {"the fullest domain gives one", []memberMachine{candidate("x", "a", 1), candidate("y", "a", 1), candidate("z", "b", 9)}, "x", "b"},
		"outdated":             {"", []memberMachine{candidate("x", "a", 1, outdated), candidate("y", "b", 9)}, "x", "a"},
		"outdated, sick":       {"", []memberMachine{candidate("x", "a", 9, outdated), candidate("y", "b", 1, outdated, unhealthy)}, "y", "a"},
		"sick":                 {"that alone is the business of a health check", []memberMachine{candidate("x", "a", 9), candidate("y", "b", 1, unhealthy)}, "x", "a"},
		"marked":               {"a person knows better", []memberMachine{candidate("x", "a", 9, outdated, unhealthy), candidate("y", "b", 1, marked)}, "y", "a"},
		"marked, outdated":     {"", []memberMachine{candidate("x", "a", 9, marked), candidate("y", "b", 1, marked, outdated)}, "y", "b"},
		"up to date elsewhere": {"Machines that go do not count", []memberMachine{candidate("x", "a", 1, outdated), candidate("y", "a", 1, outdated), candidate("z", "b", 1)}, "x", "a"},
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
