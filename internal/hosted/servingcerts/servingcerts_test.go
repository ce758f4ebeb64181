package servingcerts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// pemRequest is a request for a certificate as a kubelet makes it, signed with a key of its own.
func pemRequest(t testing.TB, change func(*x509.CertificateRequest)) []byte {
	t.Helper()
	template := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}},
		DNSNames: []string{"n1"}, IPAddresses: []net.IP{net.ParseIP("172.16.0.2")},
	}
	if change != nil {
		change(template)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func requestOf(t *testing.T, change func(*x509.CertificateRequest)) certificatesv1.CertificateSigningRequest {
	return certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pemRequest(t, change), SignerName: certificatesv1.KubeletServingSignerName,
			Usages:   []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			Username: "system:node:n1", Groups: []string{"system:nodes", "system:authenticated"},
		},
	}
}

func machineWith(name, node string, addresses ...clusterv1.MachineAddress) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	m.Spec.ClusterName = "c"
	m.Status.NodeRef.Name, m.Status.Addresses = node, addresses
	return m
}

var (
	internal = clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "172.16.0.2"}
	hostname = clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: "N1.example"}
)

func TestDecide(t *testing.T) {
	one := []clusterv1.Machine{machineWith("m1", "n1", internal, hostname), machineWith("m2", "n2", clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "172.16.0.3"})}
	type request = certificatesv1.CertificateSigningRequest
	asked := func(change func(*x509.CertificateRequest)) func(*request) {
		return func(r *request) { r.Spec.Request = pemRequest(t, change) }
	}
	for name, tc := range map[string]struct {
		reason   string
		change   func(*request)
		machines []clusterv1.Machine
		why      string // empty: approved
	}{
		"a kubelet":      {"its own name and address", nil, one, ""},
		"another name":   {"one that its Machine has", asked(func(r *x509.CertificateRequest) { r.DNSNames = []string{"n1.EXAMPLE"} }), one, ""},
		"mapped address": {"the same address", asked(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.ParseIP("::ffff:172.16.0.2")} }), one, ""},
		"encipherment":   {"RSA keys need it", func(r *request) { r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageKeyEncipherment) }, one, ""},

		"no Machine yet":     {"it may get its Node in a moment", nil, one[1:], "belongs to no Machine"},
		"two Machines":       {"which one it is cannot be known", nil, append(slices.Clone(one), machineWith("m3", "n1", internal)), "belongs to no Machine"},
		"no addresses yet":   {"the infrastructure tells them", nil, []clusterv1.Machine{machineWith("m1", "n1")}, "status.addresses of Machine m1 does not have"},
		"a neighbour's":      {"a node never serves as another", asked(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.ParseIP("172.16.0.3")} }), one, "172.16.0.3, which status.addresses"},
		"a neighbour's name": {"a node never serves as another", asked(func(r *x509.CertificateRequest) { r.DNSNames = []string{"n1", "n2"} }), one, "n2, which status.addresses"},
		"wildcard":           {"no Machine has it", asked(func(r *x509.CertificateRequest) { r.DNSNames = []string{"*"} }), one, "which status.addresses"},
		"loopback": {"even where the Machine claims it", asked(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.ParseIP("127.0.0.1")} }),
			[]clusterv1.Machine{machineWith("m1", "n1", clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "127.0.0.1"})}, "127.0.0.1"},
		"the API server": {"even where the Machine claims it", asked(func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes.default.svc"} }),
			[]clusterv1.Machine{machineWith("m1", "n1", clusterv1.MachineAddress{Type: clusterv1.MachineInternalDNS, Address: "kubernetes.default.svc"})}, "which is the API server"},
		"the endpoint": {"even where the Machine claims it", asked(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.ParseIP("172.16.0.1")} }),
			[]clusterv1.Machine{machineWith("m1", "n1", clusterv1.MachineAddress{Type: clusterv1.MachineExternalIP, Address: "172.16.0.1"})}, "which is the API server"},
		"another identity":  {"the certificate would be another's", asked(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:n2" }), one, "another identity"},
		"another group":     {"the certificate would give rights", asked(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:nodes", "system:masters"} }), one, "another identity"},
		"no names":          {"a certificate for nothing", asked(func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = nil, nil }), one, "something else than names and addresses"},
		"a URI":             {"nothing checks it", asked(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }), one, "something else than names and addresses"},
		"mail":              {"nothing checks it", asked(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} }), one, "something else than names and addresses"},
		"client":            {"it would be an identity", func(r *request) { r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageClientAuth) }, one, "other uses"},
		"not for serving":   {"of no use", func(r *request) { r.Spec.Usages = r.Spec.Usages[:1] }, one, "other uses"},
		"a person":          {"only kubelets", func(r *request) { r.Spec.Username = "anna" }, one, `user "anna" is no kubelet`},
		"by name alone":     {"the group is the authenticator's word", func(r *request) { r.Spec.Groups = nil }, one, "is no kubelet"},
		"a bootstrap token": {"it is no node yet", func(r *request) { r.Spec.Username = "system:bootstrap:abcdef" }, one, "is no kubelet"},
		"no PEM":            {"", func(r *request) { r.Spec.Request = []byte("x") }, one, "cannot be read"},
		"two requests":      {"the second would be signed by some and not by others", func(r *request) { r.Spec.Request = append(r.Spec.Request, r.Spec.Request...) }, one, "cannot be read"},
		"forged": {"the key is not the requester's", func(r *request) {
			block, _ := pem.Decode(r.Spec.Request)
			block.Bytes[len(block.Bytes)-1] ^= 1
			r.Spec.Request = pem.EncodeToMemory(block)
		}, one, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			r := requestOf(t, nil)
			if tc.change != nil {
				tc.change(&r)
			}
			got := decide(snapshot{Requests: []request{r}, Machines: tc.machines, Reserved: []string{"kubernetes.default.svc", "172.16.0.1"}})
			if len(got) != 1 || (got[0].Why == "") != (tc.why == "") || !strings.Contains(got[0].Why, tc.why) {
				t.Errorf("%s: got %+v, want %q", tc.reason, got, tc.why)
			}
		})
	}
}

// What is decided already, and what other signers are for, is left alone.
func TestDecideLeavesOthers(t *testing.T) {
	client, denied, signed := requestOf(t, nil), requestOf(t, nil), requestOf(t, nil)
	client.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
	signed.Status.Certificate = []byte("x")
	s := snapshot{Requests: []certificatesv1.CertificateSigningRequest{client, denied, signed}, Machines: []clusterv1.Machine{machineWith("m1", "n1", internal)}}
	if got := decide(s); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

// workloads is one workload cluster.
type workloads struct {
	client  client.Client
	watched int
	err     error
}

func (w *workloads) Client(context.Context, client.ObjectKey) (client.Client, error) {
	return w.client, w.err
}

func (w *workloads) Watch(_ context.Context, _ client.ObjectKey, r workload.WatchRequest) error {
	if r.Controller == Name {
		w.watched++
	}
	return w.err
}

func (w *workloads) Changed(string, workload.ClusterMap) source.Source { return nil }

// In an API server: a kubelet's request is approved once its Machine has its Node, and before that the HostedControlPlane
// says by an event why not.
func TestReconcile(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	workload, err := client.New(server.Config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	kubelet := rest.CopyConfig(server.Config)
	kubelet.Impersonate = rest.ImpersonationConfig{UserName: "system:node:n1", Groups: []string{"system:nodes", "system:masters"}}
	r := requestOf(t, nil)
	if _, err := kubernetes.NewForConfigOrDie(kubelet).CertificatesV1().CertificateSigningRequests().Create(t.Context(), &r, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	scheme := clientgoscheme.Scheme
	for _, add := range []func() error{func() error { return clusterv1.AddToScheme(scheme) }, func() error { return hostedv1.AddToScheme(scheme) }} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	plane := &hostedv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "1"}}}}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "p"}
	machine := machineWith("m1", "", internal)
	management := fake.NewClientBuilder().WithScheme(scheme).WithObjects(plane, cluster, &machine).WithStatusSubresource(&machine).Build()
	recorder := events.NewFakeRecorder(9)
	w := &workloads{client: workload}
	now := time.Now()
	c := &controller{client: management, workloads: w, writer: kube.NewWriter(management, Name), events: recorder, now: func() time.Time { return now }}
	reconciled := func() (reconcile.Result, *certificatesv1.CertificateSigningRequest) {
		t.Helper()
		result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(plane)})
		if err != nil {
			t.Fatal(err)
		}
		got := &certificatesv1.CertificateSigningRequest{}
		if err := workload.Get(t.Context(), client.ObjectKey{Name: r.Name}, got); err != nil {
			t.Fatal(err)
		}
		return result, got
	}

	if _, got := reconciled(); len(got.Status.Conditions) != 0 || w.watched != 0 {
		t.Errorf("the control plane does not ask for it: got %+v", got.Status)
	}
	plane.Spec.Security.KubeletServingCertificates = hostedv1.KubeletServingSigned
	if err := management.Update(t.Context(), plane); err != nil {
		t.Fatal(err)
	}
	if result, got := reconciled(); len(got.Status.Conditions) != 0 || result.RequeueAfter == 0 || len(recorder.Events) != 0 || w.watched != 1 {
		t.Errorf("a Machine gets its Node in a moment: got %+v, %+v", result, got.Status)
	}
	now = now.Add(time.Minute)
	if _, got := reconciled(); len(got.Status.Conditions) != 0 || len(recorder.Events) != 1 {
		t.Errorf("later it is said: got %+v and %d events", got.Status, len(recorder.Events))
	} else if e := <-recorder.Events; !strings.Contains(e, "KubeletCertificateNotApproved") || !strings.Contains(e, "Node n1 belongs to no Machine") {
		t.Errorf("got event %q", e)
	}
	machine.Status.NodeRef.Name, machine.Status.Addresses = "n1", []clusterv1.MachineAddress{internal}
	if err := management.Status().Update(t.Context(), &machine); err != nil {
		t.Fatal(err)
	}
	if _, got := reconciled(); len(got.Status.Conditions) != 1 || got.Status.Conditions[0].Type != certificatesv1.CertificateApproved || !strings.Contains(got.Status.Conditions[0].Message, "Machine m1") {
		t.Errorf("got %+v", got.Status)
	}
	if _, got := reconciled(); len(got.Status.Conditions) != 1 {
		t.Errorf("approved once: got %+v", got.Status)
	}
	w.err = fault.New(fault.Unreachable, "NotConnected", "no connection")
	if result, _ := reconciled(); result.RequeueAfter != 0 {
		t.Errorf("the connection enqueues: got %+v", result)
	}
}
