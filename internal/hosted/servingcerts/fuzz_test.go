package servingcerts

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// FuzzDecide: whatever a node requests, a certificate is approved only for its own identity, and for names and addresses that are those of its
// Machine and not of the API server. The request is read here once more, without the code of Decide. Few changes of a request keep its
// signature, so that those who request, and what their Machines have, are changed as well.
func FuzzDecide(f *testing.F) {
	address := func(ip string) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.ParseIP(ip)} }
	}
	for _, change := range []func(*x509.CertificateRequest){
		nil, address("172.16.0.1"), address("::ffff:172.16.0.2"), address("127.0.0.1"), address("::"),
		func(r *x509.CertificateRequest) { r.DNSNames = []string{"N1.EXAMPLE", "kubernetes.default.svc"} },
		func(r *x509.CertificateRequest) { r.DNSNames = []string{"*", "n1\x00.example"} },
		func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} },
	} {
		encoded := pemRequest(f, change)
		f.Add(encoded, "system:node:n1", "n1", "172.16.0.2", "n1.example")
		f.Add(append([]byte("text\n"), encoded...), "system:node:n1", "n1", "172.16.0.1", "*")
	}
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"), "system:node:", "", "127.0.0.1", "kubernetes.default.svc")
	f.Fuzz(func(t *testing.T, encoded []byte, user, node, ip, name string) {
		machine := machineWith("m1", node, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: ip}, clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: name})
		request := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1"}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: encoded, SignerName: certificatesv1.KubeletServingSignerName, Username: user, Groups: []string{"system:nodes"}, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth},
		}}
		reserved := []string{"localhost", "kubernetes.default.svc", "172.16.0.1"}
		s := snapshot{Requests: []certificatesv1.CertificateSigningRequest{request}, Machines: []clusterv1.Machine{machine}, Reserved: reserved}
		got := decide(s)
		if len(got) != 1 || got[0].Request != &s.Requests[0] {
			t.Fatalf("of one request: %+v", got)
		}
		if got[0].Why != "" {
			return
		}
		if node == "" || user != "system:node:"+node || got[0].Machine != "m1" {
			t.Errorf("approved for user %q of Node %q: %+v", user, node, got[0])
		}
		checkApproved(t, encoded, user, ip, reserved, name, node)
	})
}

// checkApproved checks what is in a request that is approved.
func checkApproved(t *testing.T, encoded []byte, user, ip string, reserved []string, names ...string) {
	t.Helper()
	block, _ := pem.Decode(encoded)
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || r.CheckSignature() != nil {
		t.Fatalf("approved, and cannot be read: %v", err)
	}
	if r.Subject.CommonName != user || len(r.Subject.Organization) != 1 || r.Subject.Organization[0] != "system:nodes" || len(r.URIs)+len(r.EmailAddresses) > 0 {
		t.Errorf("approved for %s and %v, %v", r.Subject, r.URIs, r.EmailAddresses)
	}
	folds := func(in []string, text string) bool {
		return slices.ContainsFunc(in, func(s string) bool { return strings.EqualFold(s, text) })
	}
	for _, name := range r.DNSNames {
		if folds(reserved, name) || !folds(names, name) {
			t.Errorf("approved for the name %q", name)
		}
	}
	for _, address := range r.IPAddresses {
		if own := net.ParseIP(ip); own == nil || !own.Equal(address) || address.IsLoopback() || folds(reserved, address.String()) {
			t.Errorf("approved for the address %s of %s", address, ip)
		}
	}
}
