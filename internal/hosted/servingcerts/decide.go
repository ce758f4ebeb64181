package servingcerts

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// nodesGroup and nodePrefix define the identity of a kubelet.
const (
	nodesGroup = "system:nodes"
	nodePrefix = "system:node:"
)

// snapshot is the input of [decide].
type snapshot struct {
	// Requests of the workload cluster, for all signers.
	Requests []certificatesv1.CertificateSigningRequest
	// Machines of the Cluster.
	Machines []clusterv1.Machine
	// Reserved are names and addresses of the API server. Kubelets do not get certificates for these.
	Reserved []string
}

// decision is the decision about a pending request. The controller approves the request or creates an event.
type decision struct {
	Request *certificatesv1.CertificateSigningRequest
	// Machine whose Node sent the request. Empty means unknown.
	Machine string
	// Why is the reason why the request is not approved. Empty means that it is approved.
	Why string
}

// decide returns a decision for each pending request of a kubelet for a serving certificate, sorted by name. The
// controller calls it in each reconciliation. It is a security rule: a tenant who controls a node also controls its
// requests, and must not get a certificate for another host or the API server.
func decide(s snapshot) []decision {
	var out []decision
	for i := range s.Requests {
		if r := &s.Requests[i]; r.Spec.SignerName == certificatesv1.KubeletServingSignerName && len(r.Status.Conditions) == 0 && len(r.Status.Certificate) == 0 {
			out = append(out, s.evaluate(r))
		}
	}
	slices.SortFunc(out, func(a, b decision) int { return strings.Compare(a.Request.Name, b.Request.Name) })
	return out
}

// evaluate returns the decision about one request.
func (s snapshot) evaluate(r *certificatesv1.CertificateSigningRequest) decision {
	v := decision{Request: r}
	node, isNode := strings.CutPrefix(r.Spec.Username, nodePrefix)
	if !isNode || node == "" || !slices.Contains(r.Spec.Groups, nodesGroup) {
		v.Why = fmt.Sprintf("user %q is no kubelet", r.Spec.Username)
		return v
	}
	machine := s.machineOf(node)
	if machine == nil {
		v.Why = fmt.Sprintf("Node %s belongs to no Machine of the Cluster", node)
		return v
	}
	v.Machine = machine.Name
	if !usagesAllowed(r.Spec.Usages) {
		v.Why = fmt.Sprintf("Node %s requests a certificate for other uses than serving", node)
		return v
	}
	v.Why = s.problem(r.Spec.Request, node, machine)
	return v
}

// machineOf returns the Machine of a Node, or nil if there is none or more than one.
func (s snapshot) machineOf(node string) *clusterv1.Machine {
	var found *clusterv1.Machine
	for i := range s.Machines {
		if m := &s.Machines[i]; m.Status.NodeRef.Name == node {
			if found != nil {
				return nil
			}
			found = m
		}
	}
	return found
}

// usagesAllowed reports whether the usages are limited to serving TLS.
func usagesAllowed(usages []certificatesv1.KeyUsage) bool {
	allowed := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth}
	return slices.Contains(usages, certificatesv1.UsageServerAuth) &&
		!slices.ContainsFunc(usages, func(u certificatesv1.KeyUsage) bool { return !slices.Contains(allowed, u) })
}

// problem returns why the content of a Node's request is not permitted, or an empty string.
func (s snapshot) problem(encoded []byte, node string, machine *clusterv1.Machine) string {
	block, rest := pem.Decode(encoded)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return fmt.Sprintf("the request of Node %s cannot be read", node)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || request.CheckSignature() != nil {
		return fmt.Sprintf("the request of Node %s cannot be read", node)
	}
	if request.Subject.CommonName != nodePrefix+node || !slices.Equal(request.Subject.Organization, []string{nodesGroup}) {
		return fmt.Sprintf("Node %s requests a certificate for another identity than its own", node)
	}
	if len(request.EmailAddresses) > 0 || len(request.URIs) > 0 || len(request.DNSNames)+len(request.IPAddresses) == 0 {
		return fmt.Sprintf("Node %s requests a certificate for something else than names and addresses", node)
	}
	names, addresses := ofMachine(node, machine)
	for _, name := range request.DNSNames {
		if why := s.nameProblem(node, machine, name, slices.Contains(names, strings.ToLower(name))); why != "" {
			return why
		}
	}
	for _, ip := range request.IPAddresses {
		address := canonical(ip)
		if why := s.nameProblem(node, machine, address.String(), address.IsValid() && !address.IsLoopback() && slices.Contains(addresses, address)); why != "" {
			return why
		}
	}
	return ""
}

// nameProblem returns why a certificate may not contain a name or address, or an empty string.
func (s snapshot) nameProblem(node string, machine *clusterv1.Machine, name string, own bool) string {
	switch {
	case slices.ContainsFunc(s.Reserved, func(r string) bool { return strings.EqualFold(r, name) }):
		return fmt.Sprintf("Node %s requests a certificate for %s, which is the API server", node, name)
	case !own:
		return fmt.Sprintf("Node %s requests a certificate for %s, which status.addresses of Machine %s does not have", node, name, machine.Name)
	}
	return ""
}

// ofMachine returns the lower-case names and the addresses of a Machine.
func ofMachine(node string, m *clusterv1.Machine) (names []string, addresses []netip.Addr) {
	names = []string{strings.ToLower(node)}
	for _, a := range m.Status.Addresses {
		switch a.Type {
		case clusterv1.MachineInternalIP, clusterv1.MachineExternalIP:
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				addresses = append(addresses, ip.Unmap())
			}
		case clusterv1.MachineHostName, clusterv1.MachineInternalDNS, clusterv1.MachineExternalDNS:
			names = append(names, strings.ToLower(a.Address))
		}
	}
	return names, addresses
}

func canonical(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
