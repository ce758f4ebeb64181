package admission

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// clientConfigProblems validates the address of a Runtime Extension: the URL or the Service in an ExtensionConfig that
// is created or updated. [validateExtensionConfig] calls it for [Validate].
func clientConfigProblems(c *runtimev1.ClientConfig, path *field.Path) field.ErrorList {
	switch defined := c.Service.IsDefined(); {
	case c.URL == "" && !defined:
		return field.ErrorList{field.Required(path, "either url or service is required")}
	case c.URL != "" && defined:
		return field.ErrorList{field.Forbidden(path, "only one of url and service may be set")}
	case defined:
		return validateService(&c.Service, path.Child("service"))
	}
	return validateURL(c.URL, path.Child("url"))
}

// validateURL validates a URL. Errors do not include it, because it may contain a password.
func validateURL(text string, path *field.Path) field.ErrorList {
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Forbidden(path, "must be a URL, https://host:port/path")}
	}
	var errs field.ErrorList
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{u.Scheme != "https", "the scheme must be https"},
		{u.Host == "" || u.Hostname() == "", "a host is required"},
		{u.User != nil, "user and password are not allowed"},
		{u.RawQuery != "" || u.ForceQuery, "a query is not allowed"},
		{u.Fragment != "" || strings.HasSuffix(text, "#"), "a fragment is not allowed"},
	} {
		if rule.broken {
			errs = append(errs, field.Forbidden(path, rule.text))
		}
	}
	return errs
}

func validateService(s *runtimev1.ServiceReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct{ name, value string }{{"name", s.Name}, {"namespace", s.Namespace}} {
		if part.value == "" {
			errs = append(errs, field.Required(path.Child(part.name), "namespace and name of the Service are required"))
			continue
		}
		for _, text := range validation.IsDNS1123Label(part.value) {
			errs = append(errs, field.Invalid(path.Child(part.name), part.value, text))
		}
	}
	if s.Port != nil {
		for _, text := range validation.IsValidPortNum(int(*s.Port)) {
			errs = append(errs, field.Invalid(path.Child("port"), *s.Port, text))
		}
	}
	if u, err := url.Parse(s.Path); err != nil || u.Scheme != "" || u.Host != "" || u.RawQuery != "" || u.Fragment != "" {
		errs = append(errs, field.Invalid(path.Child("path"), s.Path, "must be the path of a URL, without query and fragment"))
	}
	return errs
}
