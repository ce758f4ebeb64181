package componentconfig

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// Authentication returns the authentication configuration of kube-apiserver: the trusted token issuers (none if a is
// nil) and the paths that anonymous requests may read. Package controlplane writes it before a management or workload
// cluster starts.
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

// authenticationProblems validates the encoded authentication configuration, for [Problems].
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

// Issuers returns the URLs of the token issuers that the API server connects to. The HostedControlPlane controller
// checks that the operator allows them.
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
