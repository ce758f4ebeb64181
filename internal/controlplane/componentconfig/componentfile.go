package componentconfig

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/apis/audit"
	auditinstall "k8s.io/apiserver/pkg/apis/audit/install"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// Problems returns the errors for which kube-apiserver would reject the settings, with fields below the given
// path. Issuers in reservedIssuers are rejected because the API server issues tokens under these URLs itself.
func Problems(s hostedv1.Security, path *field.Path, reservedIssuers ...string) field.ErrorList {
	var errs field.ErrorList
	if s.Audit != nil {
		errs = append(errs, below(path.Child("audit", "policy"), auditProblems(*s.Audit))...)
	}
	if s.Encryption != nil {
		errs = append(errs, encryptionProblems(s.Encryption, path.Child("encryption"))...)
	}
	if s.Authentication != nil {
		errs = append(errs, below(path.Child("authentication"), authenticationProblems(s.Authentication, reservedIssuers))...)
	}
	if s.PodSecurity != nil {
		errs = append(errs, podSecurityProblems(s.PodSecurity, path.Child("podSecurity"))...)
	}
	return errs
}

// below prefixes the field of each error in a file with the path of the field that holds the file's content.
func below(path *field.Path, errs field.ErrorList) field.ErrorList {
	for _, e := range errs {
		e.Field = path.String() + "." + e.Field
	}
	return errs
}

// AuditPolicy returns the audit policy file, which defines the requests that are recorded.
func AuditPolicy(a hostedv1.Audit) ([]byte, error) {
	policy := defaultAuditPolicy()
	if a.Policy != nil {
		policy = *a.Policy
	}
	return json.Marshal(struct {
		metav1.TypeMeta      `json:",inline"`
		hostedv1.AuditPolicy `json:",inline"`
	}{metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"}, policy})
}

func auditProblems(a hostedv1.Audit) field.ErrorList {
	text, err := AuditPolicy(a)
	policy := &audit.Policy{}
	if err == nil {
		err = decode(text, policy, auditinstall.Install)
	}
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("rules"), err)}
	}
	return auditvalidation.ValidatePolicy(policy)
}

// defaultAuditPolicy records the metadata of requests and of reads of Secrets, without contents. It leaves
// out the reads of system components and the Events and Leases that these write continuously.
func defaultAuditPolicy() hostedv1.AuditPolicy {
	reads := []string{"get", "list", "watch"}
	return hostedv1.AuditPolicy{
		OmitStages: []hostedv1.AuditStage{"RequestReceived"},
		Rules: []hostedv1.AuditRule{
			{Level: "Metadata", Resources: []hostedv1.AuditResources{{Resources: []string{"secrets", "serviceaccounts/token"}}}},
			{Level: "None", Verbs: reads, Users: []string{"system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"}},
			{Level: "None", Verbs: reads, UserGroups: []string{"system:nodes", "system:serviceaccounts:kube-system"}},
			{Level: "None", NonResourceURLs: []string{"/healthz*", "/livez*", "/readyz*", "/version", "/openapi*", "/api", "/api/*", "/apis", "/apis/*"}},
			{Level: "None", Resources: []hostedv1.AuditResources{
				{Resources: []string{"events"}}, {Group: "events.k8s.io", Resources: []string{"events"}}, {Group: "coordination.k8s.io", Resources: []string{"leases"}},
			}},
			{Level: "Metadata"},
		},
	}
}

// Authentication returns the authentication configuration: the trusted token issuers (none if a is nil) and
// the paths that anonymous requests may read.
func Authentication(a *hostedv1.Authentication, anonymous ...string) ([]byte, error) {
	file := struct {
		metav1.TypeMeta `json:",inline"`
		JWT             []hostedv1.JWTAuthenticator     `json:"jwt,omitempty"`
		Anonymous       apiserverv1.AnonymousAuthConfig `json:"anonymous"`
	}{TypeMeta: configKind("AuthenticationConfiguration")}
	if a != nil {
		file.JWT = a.JWT
	}
	file.Anonymous.Enabled = len(anonymous) > 0
	for _, path := range anonymous {
		file.Anonymous.Conditions = append(file.Anonymous.Conditions, apiserverv1.AnonymousAuthCondition{Path: path})
	}
	return json.Marshal(file)
}

func authenticationProblems(a *hostedv1.Authentication, reservedIssuers []string) field.ErrorList {
	text, err := Authentication(a)
	config := &apiserver.AuthenticationConfiguration{}
	if err == nil {
		err = decode(text, config, apiserverinstall.Install)
	}
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("jwt"), err)}
	}
	return apiservervalidation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config, reservedIssuers)
}

// Issuers returns the URLs of the token issuers that the API server connects to.
func Issuers(s hostedv1.Security) []string {
	var urls []string
	if s.Authentication != nil {
		for _, a := range s.Authentication.JWT {
			urls = append(urls, a.Issuer.URL)
		}
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

func configKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: kind}
}

// decode decodes a file as kube-apiserver does, and rejects unknown fields.
func decode(text []byte, into runtime.Object, install func(*runtime.Scheme)) error {
	scheme := runtime.NewScheme()
	install(scheme)
	return runtime.DecodeInto(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), text, into)
}
