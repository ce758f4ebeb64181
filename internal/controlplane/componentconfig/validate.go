package componentconfig

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// Problems returns the errors for which kube-apiserver would reject the security settings of a HostedControlPlane, or
// of the operator's configuration file, with fields below the given path. Admission, package policy and package
// processconfig call it. Issuers in reservedIssuers are rejected because the API server issues tokens under these URLs
// itself.
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

// configKind returns the type of a configuration file. The functions that encode a file call it.
func configKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: kind}
}

// decode decodes a file as kube-apiserver does, and rejects unknown fields. auditProblems and the other functions of
// [Problems] call it.
func decode(text []byte, into runtime.Object, install func(*runtime.Scheme)) error {
	scheme := runtime.NewScheme()
	install(scheme)
	return runtime.DecodeInto(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), text, into)
}
