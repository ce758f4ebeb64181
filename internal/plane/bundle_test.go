package plane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/plane/pki"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// folderVariable has, for a process that TestMain makes of this program, the folder of the control plane that it runs.
const folderVariable = "SLIPWAY_TEST_WORKLOAD"

// serveWorkload runs the control plane in a folder until standard input is closed, which it is when the test ends, too.
func serveWorkload(folder workload.Folder) error {
	c, err := workload.Load(folder.Config())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.ReadAll(os.Stdin)
		stop()
	}()
	if err := RunWorkload(ctx, WorkloadConfig{Config: c, Folder: folder}); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// startWorkloadProcess runs the control plane in a folder until the test ends.
func startWorkloadProcess(t *testing.T, folder workload.Folder) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // it ends with its input, after the test
	cmd.Env = append(os.Environ(), folderVariable+"="+string(folder))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(string(folder) + "/log.txt")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			text, _ := os.ReadFile(log.Name())
			t.Errorf("%v: %s", err, text[max(0, len(text)-4000):])
		}
	})
}

// signed is the certificate that the control plane issues for a request of an administrator, once it has approved it.
func signed(t *testing.T, c kubernetes.Interface) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "someone"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	requests := c.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "someone"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", Message: "Approved by the test",
	}}
	if _, err := requests.UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		csr, err = requests.Get(ctx, "someone", metav1.GetOptions{})
		return err == nil && len(csr.Status.Certificate) > 0, err
	})
	if err != nil {
		t.Fatalf("%v: the request is not signed: %v", err, csr.Status.Conditions)
	}
	cert, err := pki.ParseCert(csr.Status.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// A control plane whose authority comes with a second certificate, that of the authority before it or after it or of the one that
// signed it, signs with the first and accepts clients of both.
func TestAuthorityWithTwoCertificates(t *testing.T) {
	folder := workload.Folder(t.TempDir())
	authorities := map[string]pki.Pair{}
	for _, name := range []string{workload.CA, workload.ProxyCA, "another"} {
		pair, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		authorities[name] = pair
	}
	ca, another := authorities[workload.CA], authorities["another"]
	bundle := slices.Concat(ca.CertPEM, another.CertPEM)
	certs := pki.Folder{Path: folder.PKI(), Now: time.Now}
	for name, pair := range map[string]pki.Pair{
		workload.CA: {CertPEM: bundle, KeyPEM: ca.KeyPEM}, workload.ProxyCA: authorities[workload.ProxyCA],
	} {
		if err := certs.Save(name, pair); err != nil {
			t.Fatal(err)
		}
	}
	c := config()
	c.Version, c.Endpoint, c.Only = buildinfo.Kubernetes(), "198.51.100.77:6443", workload.OnlyLoopback
	if err := c.Save(folder.Config()); err != nil {
		t.Fatal(err)
	}
	startWorkloadProcess(t, folder)
	client := func(authority pki.Pair) kubernetes.Interface {
		leaf, err := authority.Issue(pki.Leaf{User: "admin", Groups: []string{kubeadmAdmins}, Client: true}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		run, _, err := folder.ReadRun()
		if err != nil {
			t.Fatal(err)
		}
		api, err := kubernetes.NewForConfig(&rest.Config{
			Host: "https://" + run.Local, TLSClientConfig: rest.TLSClientConfig{CAData: bundle, CertData: leaf.CertPEM, KeyData: leaf.KeyPEM},
		})
		if err != nil {
			t.Fatal(err)
		}
		return api
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		run, _, err := folder.ReadRun()
		if err != nil || run.Local == "" {
			return false, err
		}
		_, err = client(ca).RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("it does not become ready: %v", err)
	}
	if err := signed(t, client(ca)).CheckSignatureFrom(ca.Cert); err != nil {
		t.Errorf("the first certificate is not the issuer: %v", err)
	}
	review, err := client(another).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username != "admin" {
		t.Errorf("client of the second authority: %v, %v", review, err)
	}
}
