package provider

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Reference is a reference to a provider on the command line, such as the value of `slipway init --infrastructure`.
type Reference struct {
	// Namespace is empty if it is not specified.
	Namespace string
	Name      string
	// Version is empty if it is not specified.
	Version string
}

// ParseReference parses [namespace/]name[:version]. The fault is Invalid. The provider commands parse their flags with
// it.
func ParseReference(s string) (Reference, error) {
	var r Reference
	rest := s
	if namespace, name, ok := strings.Cut(s, "/"); ok {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return r, malformed(s)
		}
		r.Namespace, rest = namespace, name
	}
	name, version, versioned := strings.Cut(rest, ":")
	if len(validation.IsDNS1123Subdomain(name)) > 0 || versioned && (version == "" || strings.ContainsAny(version, ":/ \t\n")) {
		return r, malformed(s)
	}
	r.Name, r.Version = name, version
	return r, nil
}

func malformed(s string) error {
	return invalid("%q does not specify a provider; write name or name:version, for example aws or aws:v2.8.0", s)
}

// String formats the reference in the syntax of ParseReference.
func (r Reference) String() string {
	s := r.Name
	if r.Namespace != "" {
		s = r.Namespace + "/" + s
	}
	if r.Version != "" {
		s += ":" + r.Version
	}
	return s
}
