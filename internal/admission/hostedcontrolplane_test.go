package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
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
