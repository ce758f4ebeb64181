package rotate

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// another is an authority.
func another(t *testing.T, a pki.Algorithm) pki.Pair {
	t.Helper()
	pair, err := pki.NewAuthority(pki.Authority{Name: "kubernetes", Algorithm: a}, began)
	must(t, err)
	return pair
}

// in puts the snapshot into a phase, in effect with the Machines of now as outdated.
func in(t *testing.T, phase Phase, inEffect bool) func(*snapshot) {
	return func(s *snapshot) {
		for _, p := range []Phase{phaseTrustBoth, phaseNewSigns, phaseNewOnly} {
			state, err := read(s.Secret)
			must(t, err)
			state.install(s.Secret, another(t, ""))
			if p == phase {
				break
			}
		}
		s.Plane.Status.Authority = secrets.Fingerprint(s.Secret)
		if inEffect {
			state, err := read(s.Secret)
			must(t, err)
			state.recordInEffect(s.Secret, s.machineNames())
		}
	}
}

// newMachines replaces all Machines by others.
func newMachines(s *snapshot) {
	for i := range s.Machines {
		s.Machines[i].Name = "new-" + s.Machines[i].Name
	}
}

func restarted(s *snapshot) {
	s.Deployments[0].Spec.Rollout.After = metav1.NewTime(began.Add(time.Second))
}

func pausedDeployment(s *snapshot) { s.Deployments[0].Spec.Paused = ptr.To(true) }

func behindPlane(s *snapshot) { s.Plane.Status.Authority = "before" }

func TestDecide(t *testing.T) { // CP-15
	paused := map[string]string{clusterv1.PausedAnnotation: ""}
	for name, tc := range map[string]struct {
		change []func(*snapshot)
		want   string // actions, or what is waited for
		fault  string // part of the message
	}{
		"begins":       {nil, "The new authority is trusted in addition to the old authority, which still signs", ""},
		"plane behind": {[]func(*snapshot){in(t, phaseTrustBoth, false), behindPlane}, "HostedControlPlane demo does not run with the certificates of Secret demo-ca yet", ""},
		"plane not available": {[]func(*snapshot){in(t, phaseTrustBoth, false), func(s *snapshot) {
			s.Plane.Status.Conditions[0].Status, s.Plane.Status.Conditions[0].Message = "False", "It starts\nx"
		}}, "HostedControlPlane demo is not available: It starts", ""},
		"in effect":             {[]func(*snapshot){in(t, phaseTrustBoth, false)}, "The control plane has followed", ""},
		"pool scales meanwhile": {[]func(*snapshot){in(t, phaseTrustBoth, false), func(s *snapshot) { s.Pools[0].Status.Replicas = ptr.To[int32](1) }}, "MachinePool mp: it has 1 of 2 Machines", ""},
		"replaces":              {[]func(*snapshot){in(t, phaseTrustBoth, true)}, "MachineDeployment md replaces its Machines; Machine mp-a of MachinePool mp is replaced", ""},
		"again in phase 2":      {[]func(*snapshot){in(t, phaseNewSigns, true)}, "MachineDeployment md replaces its Machines; Machine mp-a of MachinePool mp is replaced", ""},
		"rolls out": {[]func(*snapshot){in(t, phaseTrustBoth, true), restarted, func(s *snapshot) {
			s.Machines[2].DeletionTimestamp = &metav1.Time{Time: began}
			s.Deployments[0].Status.UpToDateReplicas = ptr.To[int32](1)
			s.Deployments[0].Status.Conditions = []metav1.Condition{{Type: clusterv1.RollingOutCondition, Status: metav1.ConditionTrue, Message: "* Rolling out 1\n* x"}}
		}}, "Waiting for 4 of 4 Machines to be replaced: MachineDeployment md: 1 of 2 Machines are up to date (Rolling out 1)", ""},
		"replaced, not available": {[]func(*snapshot){in(t, phaseTrustBoth, true), newMachines, func(s *snapshot) { s.Deployments[0].Status.AvailableReplicas = nil }},
			"MachineDeployment md: 0 of 2 Machines are available", ""},
		"replaced":            {[]func(*snapshot){in(t, phaseTrustBoth, true), newMachines}, "The new authority signs; the old authority is still trusted", ""},
		"replaced again":      {[]func(*snapshot){in(t, phaseNewSigns, true), newMachines}, "The old authority is removed", ""},
		"alone, plane behind": {[]func(*snapshot){in(t, phaseNewOnly, false), behindPlane}, "HostedControlPlane demo does not run", ""},
		"done":                {[]func(*snapshot){in(t, phaseNewOnly, false)}, "The rotation is done", ""},

		"something rolls out":  {[]func(*snapshot){func(s *snapshot) { s.Deployments[0].Status.UpToDateReplicas = nil }}, "", "cannot start: MachineDeployment md: 0 of 2 Machines are up to date; nothing was changed"},
		"paused":               {[]func(*snapshot){pausedDeployment}, "", "cannot start: MachineDeployment md is paused: resume it (slipway rollout resume md/md)"},
		"paused later":         {[]func(*snapshot){in(t, phaseTrustBoth, true), pausedDeployment}, "", "cannot continue: MachineDeployment md is paused: resume it (slipway rollout resume md/md); run the command again then"},
		"paused, all replaced": {[]func(*snapshot){in(t, phaseTrustBoth, true), newMachines, pausedDeployment}, "The new authority signs", ""},
		"OnDelete": {[]func(*snapshot){func(s *snapshot) {
			s.Deployments[0].Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
		}}, "", "MachineDeployment md replaces only Machines that are deleted (OnDelete)"},
		"restarted later": {[]func(*snapshot){func(s *snapshot) { s.Deployments[0].Spec.Rollout.After = metav1.NewTime(began.Add(time.Hour)) }}, "", "is to be restarted later"},
		"a Machine alone": {[]func(*snapshot){func(s *snapshot) { delete(s.Machines[0].Labels, clusterv1.MachineDeploymentNameLabel) }}, "", "no MachineDeployment replaces Machine md-1-a: delete them"},
		"no Deployment":   {[]func(*snapshot){func(s *snapshot) { s.Deployments = nil }}, "", "MachineDeployment md is gone, and its Machines are not"},
		"foreign pool":    {[]func(*snapshot){func(s *snapshot) { s.Pools[0].Spec.Template.Spec.InfrastructureRef.Kind = "OtherPool" }}, "", "MachinePool mp cannot be replaced, because its infrastructure is a OtherPool"},
		"foreign pool without Machines": {[]func(*snapshot){func(s *snapshot) {
			s.Pools[0].Spec.Template.Spec.InfrastructureRef.Kind = "OtherPool"
			s.Machines = s.Machines[:2]
		}}, "", "MachinePool mp cannot be replaced, because its infrastructure is a OtherPool"},
		"pool paused":      {[]func(*snapshot){func(s *snapshot) { s.Pools[0].Annotations = paused }}, "", "MachinePool mp is paused"},
		"Cluster paused":   {[]func(*snapshot){func(s *snapshot) { s.Cluster.Spec.Paused = ptr.To(true) }}, "", "the Cluster is paused"},
		"plane paused":     {[]func(*snapshot){in(t, phaseNewSigns, false), func(s *snapshot) { s.Plane.Annotations = paused }}, "", "cannot continue: HostedControlPlane demo is paused"},
		"Cluster deleted":  {[]func(*snapshot){func(s *snapshot) { s.Cluster.DeletionTimestamp = &metav1.Time{Time: began} }}, "", "the Cluster is being deleted"},
		"an older manager": {[]func(*snapshot){func(s *snapshot) { s.Plane.Status.Authority = "" }}, "", "cannot start: HostedControlPlane demo does not run with the certificates"},
		"a chain": {[]func(*snapshot){func(s *snapshot) {
			s.Secret.Data[corev1.TLSCertKey] = append(s.Secret.Data[corev1.TLSCertKey], another(t, "").CertPEM...)
		}}, "", "Secret demo-ca has 2 certificates that do not result from a rotation"},
		"no key":                    {[]func(*snapshot){func(s *snapshot) { delete(s.Secret.Data, corev1.TLSPrivateKeyKey) }}, "", "Secret demo-ca cannot be used"},
		"a key that was mixed up":   {[]func(*snapshot){in(t, phaseTrustBoth, true), func(s *snapshot) { s.Secret.Data[nextKey] = another(t, "").KeyPEM }}, "", "do not result from a rotation"},
		"a record that was damaged": {[]func(*snapshot){in(t, phaseTrustBoth, true), func(s *snapshot) { s.Secret.Data[recordKey] = []byte("{") }}, "The control plane has followed", ""},
		"a record of another phase": {[]func(*snapshot){in(t, phaseTrustBoth, true), newMachines, func(s *snapshot) { s.Secret.Data[recordKey] = record{Phase: phaseNewSigns, InEffect: true}.encoded() }}, "The control plane has followed", ""},
		"put back by hand": {[]func(*snapshot){in(t, phaseTrustBoth, true), func(s *snapshot) {
			state, err := read(s.Secret)
			must(t, err)
			s.Secret.Data[corev1.TLSCertKey] = state.signer.FirstCertPEM()
			s.Plane.Status.Authority = secrets.Fingerprint(s.Secret)
		}}, "The new authority is trusted in addition to the old authority", ""},
	} {
		s := fresh(t)
		for _, c := range tc.change {
			c(&s)
		}
		step, err := decide(s)
		if tc.fault != "" {
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.fault) && !strings.Contains(fault.UserMessage(err), tc.fault) {
				t.Errorf("%s: %v, want %q", name, err, tc.fault)
			}
			continue
		}
		var texts []string
		for _, a := range step.Actions {
			texts = append(texts, a.String())
		}
		got := step.Wait + strings.Join(texts, "; ")
		if err != nil || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tc.want)
		}
	}
}

// A key is in the Secret, and in nothing that people are shown.
func TestPlan(t *testing.T) {
	for phase, want := range map[Phase]string{
		phaseNone:      "to do to do to do to do to do",
		phaseTrustBoth: "done under way to do to do to do",
		phaseNewSigns:  "done done done under way to do",
	} {
		s := fresh(t)
		if phase != phaseNone {
			in(t, phase, true)(&s)
		}
		state, err := read(s.Secret)
		must(t, err)
		p := planOf(s, state, nil)
		var got []string
		for _, step := range p.Steps {
			got = append(got, step.State)
		}
		lines := strings.Join(p.Lines(), "\n")
		if strings.Join(got, " ") != want || p.UnderWay() != (phase != phaseNone) || p.Problem != "" || strings.Contains(lines, "PRIVATE") ||
			!strings.Contains(lines, "replace 4 nodes (MachineDeployment md: 2, MachinePool mp: 2)") {
			t.Errorf("%s: %v\n%s", phase, got, lines)
		}
	}
	s := fresh(t)
	pausedDeployment(&s)
	state, err := read(s.Secret)
	must(t, err)
	if lines := planOf(s, state, nil).Lines(); !strings.Contains(lines[len(lines)-1], "  The rotation of the authority of cluster \"demo\" cannot start: MachineDeployment md is paused") {
		t.Errorf("%q", lines)
	}
}

// What a person brings as the new authority has to be one, and another than the present one.
func TestGiven(t *testing.T) {
	pair := another(t, "")
	leaf, err := pair.Issue(pki.Leaf{User: "x", Client: true}, began)
	must(t, err)
	ended, err := pki.NewAuthority(pki.Authority{Name: "x", Lifetime: time.Hour}, began.Add(-2*time.Hour))
	must(t, err)
	for name, tc := range map[string]struct {
		cert, key []byte
		want      string
	}{
		"one":         {pair.CertPEM, pair.KeyPEM, ""},
		"RSA":         {another(t, pki.RSA2048).CertPEM, nil, "the new authority cannot be used"},
		"nothing":     {nil, pair.KeyPEM, "cannot be read"},
		"other key":   {pair.CertPEM, another(t, "").KeyPEM, "the private key does not belong"},
		"a leaf":      {leaf.CertPEM, leaf.KeyPEM, "is not a CA certificate"},
		"two":         {append(append([]byte{}, pair.CertPEM...), leaf.CertPEM...), pair.KeyPEM, "there are 2 certificates"},
		"ended":       {ended.CertPEM, ended.KeyPEM, "the certificate is valid from"},
		"more in PEM": {append([]byte("text\n"), pair.CertPEM...), append([]byte("text\n"), pair.KeyPEM...), ""},
	} {
		got, err := ParseCA(tc.cert, tc.key, began)
		if tc.want == "" {
			if err != nil || strings.Contains(string(got.FirstCertPEM())+string(got.KeyPEM), "text") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	s := fresh(t)
	state, err := read(s.Secret)
	must(t, err)
	if err := state.checkNew(state.signer); fault.KindOf(err) != fault.Invalid {
		t.Errorf("the present one again: %v", err)
	}
	if err := state.checkNew(pair); err != nil {
		t.Error(err)
	}
	for _, a := range []pki.Algorithm{pki.RSA2048, pki.RSA3072, pki.ECDSAP384} {
		if got := algorithmOf(another(t, a).Cert); got != a {
			t.Errorf("the successor of one of %s has a key of %s", a, got)
		}
	}
}
