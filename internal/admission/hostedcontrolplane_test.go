package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/policy"
)

// A tenant's settings of the API server, a process of the host: what it would not start with, and whom it would connect
// to, is refused where it is written; an object that the operator's rules have overtaken can still be changed otherwise.
func TestSecurityOfHostedControlPlanes(t *testing.T) { // CP-01, CP-13
	const allowed = "https://issuer.example"
	prefix := ""
	issuer := func(url string) hostedv1.Security {
		return hostedv1.Security{Authentication: &hostedv1.Authentication{JWT: []hostedv1.JWTAuthenticator{{
			Issuer:        hostedv1.JWTIssuer{URL: url, Audiences: []string{"demo"}},
			ClaimMappings: hostedv1.ClaimMappings{Username: hostedv1.PrefixedClaimOrExpression{Claim: "sub", Prefix: &prefix}},
		}}}}
	}
	template := func(s hostedv1.Security, days int32) *hostedv1.HostedControlPlaneTemplate {
		o := &hostedv1.HostedControlPlaneTemplate{}
		o.Spec.Template.Spec.Security, o.Spec.Template.Spec.CertificateValidityDays = s, days
		return o
	}
	plane := func(s hostedv1.Security, days int32) *hostedv1.HostedControlPlane {
		o := &hostedv1.HostedControlPlane{}
		o.Spec.Security, o.Spec.CertificateValidityDays = s, days
		return o
	}
	operator := policy.Default()
	operator.ControlPlanes.Issuers = []string{allowed}
	kms := hostedv1.Security{Encryption: &hostedv1.Encryption{Provider: "kms"}}
	level := hostedv1.Security{Audit: &hostedv1.Audit{Policy: &hostedv1.AuditPolicy{Rules: []hostedv1.AuditRule{{Level: "All"}}}}}
	standard := hostedv1.Security{PodSecurity: &hostedv1.PodSecurity{Enforce: hostedv1.PodSecurityStandard{Level: "strict"}}}
	switchedOff := func(flag, value string) *hostedv1.HostedControlPlane {
		o := plane(hostedv1.Security{PodSecurity: &hostedv1.PodSecurity{Enforce: hostedv1.PodSecurityStandard{Level: "restricted"}}}, 1)
		o.Spec.APIServer.ExtraArgs = []hostedv1.Arg{{Name: flag, Value: &value}}
		return o
	}
	for name, tc := range map[string]struct {
		reason string
		req    Request
		want   []string
	}{
		"all of it":               {"what is on without further settings", Request{New: plane(hostedv1.Security{Audit: &hostedv1.Audit{}, Encryption: &hostedv1.Encryption{}}, 1)}, nil},
		"allowed issuer":          {"", Request{New: plane(issuer(allowed), 1), Policy: operator}, nil},
		"no operator":             {"nothing is allowed by default", Request{New: plane(issuer(allowed), 1), Policy: policy.Default()}, []string{"spec.authentication.jwt[0].issuer.url"}},
		"below an allowed issuer": {"another issuer", Request{New: plane(issuer(allowed+"/x"), 1), Policy: operator}, []string{"spec.authentication.jwt[0].issuer.url"}},
		"host of the cloud":       {"credentials of the host", Request{New: plane(issuer("http://169.254.169.254/"), 1), Policy: operator}, []string{"spec.authentication.jwt[0].issuer.url", "spec.authentication.jwt[0].issuer.url"}},
		"template":                {"", Request{New: template(issuer("https://other.example"), 1), Policy: operator}, []string{"spec.template.spec.authentication.jwt[0].issuer.url"}},
		"overtaken":               {"a finalizer is taken off", Request{Old: plane(issuer(allowed), 1), New: plane(issuer(allowed), 2)}, nil},
		"overtaken template":      {"", Request{Old: template(issuer(allowed), 1), New: template(issuer(allowed), 1)}, nil},
		"changed":                 {"", Request{Old: plane(issuer(allowed), 1), New: plane(issuer("https://other.example"), 1), Policy: operator}, []string{"spec.authentication.jwt[0].issuer.url"}},
		"socket":                  {"", Request{New: plane(kms, 1)}, []string{"spec.encryption.provider"}},
		"level":                   {"", Request{New: template(level, 1)}, []string{"spec.template.spec.audit.policy.rules[0].level"}},
		"standard":                {"", Request{New: plane(standard, 1)}, []string{"spec.podSecurity.enforce.level"}},
		"standard without effect": {"the plugin is switched off", Request{New: switchedOff("disable-admission-plugins", "LimitRanger,PodSecurity")}, []string{"spec.podSecurity"}},
	} {
		if diff := cmp.Diff(tc.want, problems(Validate(tc.req))); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
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
		r := Request{New: cluster(tc.now), Gates: Gates{ClusterTopology: true}, Related: RelatedObjects{RunsOnHost: tc.onHost, Class: &clusterv1.ClusterClass{}},
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
		"back":         {Request{Old: running, New: plane("v1.35.4")}, "the control plane is at v1.36.3 and cannot be downgraded to v1.35.4"},
		"simulated":    {Request{New: simulated}, ""},
	} {
		v := Validate(tc.req)
		if len(v.Errors) > 0 || (len(v.Warnings) > 0) != (tc.says != "") || tc.says != "" && !strings.Contains(v.Warnings[0], tc.says) {
			t.Errorf("%s: %v", name, v)
		}
	}
}
