package admission

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	sshv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// mostRequirements limits the requirements of a selector, and the values of one.
const mostRequirements, mostValues = 32, 64

// validateSSHHost validates the addresses, host keys and selectors of an SSHHost. Values that did not change are not
// checked against the operator's configuration, so that a stricter configuration does not prevent other changes.
// [Validate] calls the functions for SSHHosts, SSHClusters and SSHMachines.
func validateSSHHost(r Request, h *sshv1.SSHHost) Response {
	old, _ := r.Old.(*sshv1.SSHHost)
	spec := field.NewPath("spec")
	errs := validateSSHServer(h.Spec.SSHServer, spec)
	if jump := h.Spec.Jump; jump != nil {
		errs = append(errs, validateSSHServer(*jump, spec.Child("jump"))...)
	}
	errs = append(errs, validateHostSelector(h.Spec.OfferedTo, spec.Child("offeredTo"))...)
	errs = append(errs, validateAuthorities(h.Spec.Settings.AdditionalTrustedCAs, spec.Child("settings", "additionalTrustedCAs"))...)
	errs = append(errs, validateNodeAddress(h.Spec, spec)...)
	if message := r.Policy.DeniedHostNamespace(h.Namespace); old == nil && message != "" {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "namespace"), message))
	}
	if old == nil || old.Spec.Address != h.Spec.Address {
		errs = append(errs, deniedHost(r, h.Spec.Address, spec.Child("address"))...)
	}
	if jump := h.Spec.Jump; jump != nil && (old == nil || old.Spec.Jump == nil || old.Spec.Jump.Address != jump.Address) {
		errs = append(errs, deniedHost(r, jump.Address, spec.Child("jump", "address"))...)
	}
	return Response{Errors: errs}
}

func deniedHost(r Request, host string, path *field.Path) field.ErrorList {
	address, _ := netip.ParseAddr(host)
	if message := r.Policy.DeniedHost(host, address); message != "" {
		return field.ErrorList{field.Forbidden(path, message)}
	}
	return nil
}

func validateSSHServer(s sshv1.SSHServer, path *field.Path) (errs field.ErrorList) {
	if address, err := netip.ParseAddr(s.Address); err != nil && len(validation.IsDNS1123Subdomain(strings.ToLower(s.Address))) > 0 || err == nil && !isConnectable(address) {
		errs = append(errs, field.Invalid(path.Child("address"), s.Address, "set an IP address of a host or a DNS name"))
	}
	for i, line := range s.HostKeys {
		key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil || len(options) > 0 || len(rest) > 0 || strings.ContainsAny(line, "\r\n") {
			errs = append(errs, field.Invalid(path.Child("hostKeys").Index(i), line, "set one public key, for example the content of /etc/ssh/ssh_host_ed25519_key.pub of the host"))
			continue
		}
		if _, isCertificate := key.(*ssh.Certificate); isCertificate {
			errs = append(errs, field.Invalid(path.Child("hostKeys").Index(i), line, "set the public key of the host instead of a certificate"))
		}
	}
	return errs
}

// validateNodeAddress requires an IP address for the node, which a DNS name does not provide.
func validateNodeAddress(s sshv1.SSHHostSpec, path *field.Path) field.ErrorList {
	if _, err := netip.ParseAddr(s.Address); s.NodeAddress == "" && err != nil {
		return field.ErrorList{field.Required(path.Child("nodeAddress"), "set the IP address of the node, because spec.address is a DNS name")}
	}
	if address, err := netip.ParseAddr(s.NodeAddress); s.NodeAddress != "" && (err != nil || !isConnectable(address)) {
		return field.ErrorList{field.Invalid(path.Child("nodeAddress"), s.NodeAddress, "set an IP address")}
	}
	return nil
}

func isConnectable(a netip.Addr) bool {
	return a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast()
}

// validateHostSelector validates a label selector and limits its size, because it is evaluated for every host.
func validateHostSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	if n := len(s.MatchLabels) + len(s.MatchExpressions); n > mostRequirements {
		return field.ErrorList{field.TooMany(path, n, mostRequirements)}
	}
	for i, e := range s.MatchExpressions {
		if len(e.Values) > mostValues {
			return field.ErrorList{field.TooMany(path.Child("matchExpressions").Index(i).Child("values"), len(e.Values), mostValues)}
		}
	}
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

// validateAuthorities validates certificates in PEM format.
func validateAuthorities(text string, path *field.Path) field.ErrorList {
	rest := []byte(text)
	for n := 0; len(strings.TrimSpace(string(rest))) > 0; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return field.ErrorList{field.Invalid(path, fmt.Sprintf("certificate %d", n+1), "set certificates in PEM format")}
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return field.ErrorList{field.Invalid(path, fmt.Sprintf("certificate %d", n+1), "set certificates in PEM format")}
		}
	}
	return nil
}

// validateSSHCluster validates the control plane endpoint and the virtual IP address, and that the annotation
// managed-by stays.
func validateSSHCluster(r Request, c *sshv1.SSHCluster) Response {
	errs := validateManager(r)
	old, _ := r.Old.(*sshv1.SSHCluster)
	switch {
	case old == nil || old.Spec.VirtualIP != c.Spec.VirtualIP:
		errs = append(errs, validateSSHClusterSpec(r, c.Namespace, c.Spec, field.NewPath("spec"))...)
	case old.Spec.ControlPlaneEndpoint != c.Spec.ControlPlaneEndpoint && c.Spec.VirtualIP == "":
		errs = append(errs, validateEndpoint(r, c.Spec.ControlPlaneEndpoint, field.NewPath("spec", "controlPlaneEndpoint"))...)
	case old.Spec.ControlPlaneEndpoint != c.Spec.ControlPlaneEndpoint:
		errs = append(errs, validateVirtualEndpoint(c.Spec, field.NewPath("spec", "controlPlaneEndpoint"))...)
	}
	return Response{Errors: errs}
}

// validateSSHClusterSpec validates the endpoint, or the virtual IP address, which then is the endpoint. The namespace
// is empty for a template, which classes use in other namespaces, too.
func validateSSHClusterSpec(r Request, namespace string, s sshv1.SSHClusterSpec, path *field.Path) field.ErrorList {
	if s.VirtualIP == "" {
		return validateEndpoint(r, s.ControlPlaneEndpoint, path.Child("controlPlaneEndpoint"))
	}
	address, err := netip.ParseAddr(s.VirtualIP)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("virtualIP"), s.VirtualIP, "set an IP address")}
	}
	if message := r.Policy.DeniedVirtualIP(namespace, address); message != "" {
		return field.ErrorList{field.Forbidden(path.Child("virtualIP"), message)}
	}
	return validateVirtualEndpoint(s, path.Child("controlPlaneEndpoint"))
}

// validateVirtualEndpoint requires that the endpoint is the virtual IP address, if it is set.
func validateVirtualEndpoint(s sshv1.SSHClusterSpec, path *field.Path) field.ErrorList {
	if e := s.ControlPlaneEndpoint; e.IsValid() && (e.Host != s.VirtualIP || e.Port != sshv1.SSHVirtualIPPort) {
		return field.ErrorList{field.Invalid(path, e.String(), "leave it unset, because virtualIP is the endpoint")}
	}
	return nil
}

func validateEndpoint(r Request, e clusterv1.APIEndpoint, path *field.Path) field.ErrorList {
	if !e.IsValid() {
		return nil
	}
	address, err := netip.ParseAddr(e.Host)
	if err != nil && len(validation.IsDNS1123Subdomain(strings.ToLower(e.Host))) > 0 || err == nil && !isConnectable(address) {
		return field.ErrorList{field.Invalid(path.Child("host"), e.Host, "set an IP address or a DNS name that the nodes reach")}
	}
	if message := r.Policy.DeniedEndpoint(e.Host, address); message != "" {
		return field.ErrorList{field.Forbidden(path.Child("host"), message)}
	}
	return nil
}

// validateSSHMachine validates the selector and the settings, and that the annotation managed-by stays.
func validateSSHMachine(r Request, m *sshv1.SSHMachine) Response {
	return Response{Errors: append(validateManager(r), validateSSHMachineSpec(m.Spec, field.NewPath("spec"))...)}
}

func validateSSHMachineSpec(s sshv1.SSHMachineSpec, path *field.Path) field.ErrorList {
	errs := validateHostSelector(s.HostSelector, path.Child("hostSelector"))
	return append(errs, validateAuthorities(s.Settings.AdditionalTrustedCAs, path.Child("settings", "additionalTrustedCAs"))...)
}

// validateSSHTemplate validates the spec in a template like the spec of an object. An endpoint that did not change is
// not checked again, so that a stricter configuration does not prevent changes of the metadata. [validateOwnTemplate]
// calls it.
func validateSSHTemplate(r Request, path *field.Path) field.ErrorList {
	switch t := r.New.(type) {
	case *sshv1.SSHMachineTemplate:
		return validateSSHMachineSpec(t.Spec.Template.Spec, path)
	case *sshv1.SSHClusterTemplate:
		spec := t.Spec.Template.Spec
		if old, _ := r.Old.(*sshv1.SSHClusterTemplate); old != nil && old.Spec.Template.Spec.VirtualIP == spec.VirtualIP && old.Spec.Template.Spec.ControlPlaneEndpoint == spec.ControlPlaneEndpoint {
			return nil
		}
		return validateSSHClusterSpec(r, "", spec, path)
	}
	return nil
}
