package componentconfig_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
)

// jwt is an issuer without problems.
func jwt(url string, changes ...func(*hostedv1.JWTAuthenticator)) hostedv1.JWTAuthenticator {
	prefix := ""
	a := hostedv1.JWTAuthenticator{
		Issuer:        hostedv1.JWTIssuer{URL: url, Audiences: []string{"demo"}},
		ClaimMappings: hostedv1.ClaimMappings{Username: hostedv1.PrefixedClaimOrExpression{Claim: "sub", Prefix: &prefix}},
	}
	for _, change := range changes {
		change(&a)
	}
	return a
}

func issuers(a ...hostedv1.JWTAuthenticator) hostedv1.Security {
	return hostedv1.Security{Authentication: &hostedv1.Authentication{JWT: a}}
}

func audit(rules ...hostedv1.AuditRule) hostedv1.Security {
	return hostedv1.Security{Audit: &hostedv1.Audit{Policy: &hostedv1.AuditPolicy{Rules: rules}}}
}

func TestProblems(t *testing.T) {
	const issuer = "https://issuer.example"
	tests := map[string]struct {
		reason   string
		settings hostedv1.Security
		field    string // empty: none
		says     string
	}{
		"nothing":       {"", hostedv1.Security{}, "", ""},
		"default audit": {"the policy of ours is one that is accepted", hostedv1.Security{Audit: &hostedv1.Audit{}}, "", ""},
		"an issuer":     {"", issuers(jwt(issuer)), "", ""},
		"encryption":    {"", hostedv1.Security{Encryption: &hostedv1.Encryption{Resources: []string{"secrets", "configmaps", "widgets.example.com"}}}, "", ""},
		"standard":      {"", hostedv1.Security{PodSecurity: &hostedv1.PodSecurity{Enforce: hostedv1.PodSecurityStandard{Level: "baseline", Version: "v1.36"}}}, "", ""},

		"level": {"", audit(hostedv1.AuditRule{Level: "Everything"}), "spec.audit.policy.rules[0].level", "Metadata"},
		"paths and kinds": {"such a rule matches nothing", audit(hostedv1.AuditRule{Level: "None", NonResourceURLs: []string{"/x"}, Namespaces: []string{"a"}}),
			"spec.audit.policy.rules[0].nonResourceURLs", "both"},
		"group with a version": {"", audit(hostedv1.AuditRule{Level: "None", Resources: []hostedv1.AuditResources{{Group: "a/v1"}}}), "spec.audit.policy.rules[0].resources.group", ""},

		"plain HTTP":     {"keys could be replaced on their way", issuers(jwt("http://issuer.example")), "spec.authentication.jwt[0].issuer.url", "https"},
		"file":           {"", issuers(jwt("file:///etc/passwd")), "spec.authentication.jwt[0].issuer.url", "https"},
		"socket":         {"", issuers(jwt("unix:///run/docker.sock")), "spec.authentication.jwt[0].issuer.url", "https"},
		"password":       {"", issuers(jwt("https://a:b@issuer.example")), "spec.authentication.jwt[0].issuer.url", "password"},
		"query":          {"", issuers(jwt(issuer + "?x=y")), "spec.authentication.jwt[0].issuer.url", "query"},
		"issuer twice":   {"", issuers(jwt(issuer), jwt(issuer)), "spec.authentication.jwt[1].issuer.url", "Duplicate"},
		"ServiceAccount": {"tokens of the API server itself", issuers(jwt("https://kubernetes.default.svc.cluster.local")), "spec.authentication.jwt[0].issuer.url", "disallowed"},
		"no certificate": {"", issuers(jwt(issuer, func(a *hostedv1.JWTAuthenticator) { a.Issuer.CertificateAuthority = "kind: Policy" })), "spec.authentication.jwt[0].issuer.certificateAuthority", ""},
		"no audience":    {"tokens for anyone would count", issuers(jwt(issuer, func(a *hostedv1.JWTAuthenticator) { a.Issuer.Audiences = nil })), "spec.authentication.jwt[0].issuer.audiences", "Required"},
		"no user":        {"", issuers(jwt(issuer, func(a *hostedv1.JWTAuthenticator) { a.ClaimMappings.Username = hostedv1.PrefixedClaimOrExpression{} })), "spec.authentication.jwt[0].claimMappings.username", ""},
		"no prefix":      {"", issuers(jwt(issuer, func(a *hostedv1.JWTAuthenticator) { a.ClaimMappings.Username.Prefix = nil })), "spec.authentication.jwt[0].claimMappings.username.prefix", "Required"},
		"expression": {"", issuers(jwt(issuer, func(a *hostedv1.JWTAuthenticator) {
			a.ClaimValidationRules = []hostedv1.ClaimValidationRule{{Expression: "claims.x =="}}
		})), "spec.authentication.jwt[0].claimValidationRules[0].expression", "compilation failed"},
		"no truth": {"", issuers(jwt(issuer, func(a *hostedv1.JWTAuthenticator) {
			a.UserValidationRules = []hostedv1.UserValidationRule{{Expression: "user.username"}}
		})), "spec.authentication.jwt[0].userValidationRules[0].expression", "bool"},

		"all resources":   {"what the API server needs itself among them", hostedv1.Security{Encryption: &hostedv1.Encryption{Resources: []string{"*.*"}}}, "spec.encryption.resources", ""},
		"twice":           {"", hostedv1.Security{Encryption: &hostedv1.Encryption{Resources: []string{"a", "a"}}}, "spec.encryption.resources", "multiple times"},
		"not of objects":  {"", hostedv1.Security{Encryption: &hostedv1.Encryption{Resources: []string{"serviceipallocations"}}}, "spec.encryption.resources", "cannot be encrypted"},
		"socket of a KMS": {"", hostedv1.Security{Encryption: &hostedv1.Encryption{Provider: "kms"}}, "spec.encryption.provider", "secretbox"},

		"no standard": {"", hostedv1.Security{PodSecurity: &hostedv1.PodSecurity{Warn: hostedv1.PodSecurityStandard{Level: "strict"}}}, "spec.podSecurity.warn.level", "restricted"},
		"no version":  {"", hostedv1.Security{PodSecurity: &hostedv1.PodSecurity{Audit: hostedv1.PodSecurityStandard{Level: "baseline", Version: "1"}}}, "spec.podSecurity.audit.version", ""},
		"no namespace": {"", hostedv1.Security{PodSecurity: &hostedv1.PodSecurity{Exemptions: hostedv1.PodSecurityExemptions{Namespaces: []string{"../x"}}}},
			"spec.podSecurity.exemptions.namespaces[0]", ""},
	}
	for name, test := range tests {
		errs := componentconfig.Problems(test.settings, field.NewPath("spec"), "https://kubernetes.default.svc.cluster.local")
		switch {
		case test.field == "" && len(errs) > 0:
			t.Errorf("%s: %s: %v", name, test.reason, errs)
		case test.field != "" && (len(errs) == 0 || errs[0].Field != test.field || !strings.Contains(errs[0].Error(), test.says)):
			t.Errorf("%s: %s: got %v, want %q of %s", name, test.reason, errs, test.says, test.field)
		}
	}
}

// Every field of ours is one that kube-apiserver reads: a file with all of them is decoded strictly.
func TestEveryFieldIsRead(t *testing.T) {
	var all hostedv1.Security
	fill(reflect.ValueOf(&all).Elem())
	for _, e := range componentconfig.Problems(all, field.NewPath("spec")) {
		if e.Type == field.ErrorTypeInternal {
			t.Error(e)
		}
	}
	text, err := componentconfig.Admission(hostedv1.Security{PodSecurity: all.PodSecurity})
	if err != nil || strings.Count(string(text), `"a"`) != 9 {
		t.Errorf("%v: levels, versions and exemptions are not all in %s", err, text)
	}
}

// fill sets everything to "a", true, or a list of one.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
		v.SetBool(true)
	}
}

// What a tenant writes is a value in a file and nothing more.
func TestValuesStayValues(t *testing.T) {
	hostile := "x\"}\n---\nkind: Policy\napiVersion: audit.k8s.io/v1\n"
	text, err := componentconfig.AuditPolicy(hostedv1.Audit{Policy: &hostedv1.AuditPolicy{Rules: []hostedv1.AuditRule{{Level: "None", Users: []string{hostile}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Rules []struct{ Users []string } }
	if err := json.Unmarshal(text, &got); err != nil || got.Rules[0].Users[0] != hostile || strings.Contains(string(text), "\n") {
		t.Errorf("%v in\n%s", err, text)
	}
}

// The namespace where kube-proxy and the network run, which are privileged, is exempt in any case and once.
func TestExemptNamespace(t *testing.T) {
	for _, namespaces := range [][]string{nil, {"kube-system"}, {"a"}} {
		p := hostedv1.PodSecurity{Exemptions: hostedv1.PodSecurityExemptions{Namespaces: namespaces}}
		if text, err := componentconfig.Admission(hostedv1.Security{PodSecurity: &p}); err != nil || strings.Count(string(text), `"kube-system"`) != 1 {
			t.Errorf("%v: %v in %s", namespaces, err, text)
		}
	}
}

// A plugin is configured where it is to run, and only there.
func TestAdmission(t *testing.T) {
	for name, tc := range map[string]struct {
		of   hostedv1.Security
		want string
	}{
		"nothing":      {hostedv1.Security{}, ""},
		"Pod Security": {hostedv1.Security{PodSecurity: &hostedv1.PodSecurity{}}, "PodSecurity"},
		"hardened":     {hostedv1.Security{Hardening: hostedv1.HardeningRestricted}.Effective(), "PodSecurity EventRateLimit"},
	} {
		text, err := componentconfig.Admission(tc.of)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Plugins []struct{ Name string } }
		if text != nil {
			if err := json.Unmarshal(text, &file); err != nil {
				t.Fatal(err)
			}
		}
		var names []string
		for _, p := range file.Plugins {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
