package controlplane

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
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func config() processconfig.Config {
	return processconfig.Config{
		Cluster: "demo", Version: "v1.36.3", Endpoint: "172.31.0.1:6443",
		ServiceCIDRs: []string{"172.31.112.0/20"}, PodCIDRs: []string{"172.31.128.0/17"},
	}
}

// freeEndpoint is an address where nothing listens.
func freeEndpoint(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// A control plane is not started with data that a newer version wrote, or without the data that it had.
func TestWorkloadDataIsGuarded(t *testing.T) {
	c := config()
	c.Version, c.Endpoint = buildinfo.Kubernetes(), freeEndpoint(t) // that of config() is another cluster's where one runs
	for name, test := range map[string]struct{ recorded, reason string }{
		"newer": {"v99.0.0", "DataVersion"}, "gone": {"v1.30.0", processconfig.ReasonDataMissing},
	} {
		folder := processconfig.Folder(t.TempDir())
		if err := folder.WriteRun(processconfig.Run{PID: 1, Version: test.recorded}); err != nil {
			t.Fatal(err)
		}
		if name == "newer" {
			if err := os.MkdirAll(filepath.Join(folder.Etcd(), "member"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		err := RunWorkload(t.Context(), WorkloadConfig{Config: c, Folder: folder, Now: time.Now})
		if f := fault.As(err); f == nil || f.Reason != test.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// folderVariable has, for a process that TestMain makes of this program, the folder of the control plane that it runs.
const folderVariable = "SLIPWAY_TEST_WORKLOAD"

// serveWorkload runs the control plane in a folder until standard input is closed, which it is when the test ends, too.
func serveWorkload(folder processconfig.Folder) error {
	c, err := processconfig.Load(folder.Config())
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

// startWorkloadProcess runs the control plane in a folder until it is to stop, or the test ends.
func startWorkloadProcess(t *testing.T, folder processconfig.Folder) (stop func()) {
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
	return func() { _ = stdin.Close() }
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

// running is a control plane in a process of its own, whose authority comes with a second certificate.
type running struct {
	t           *testing.T
	folder      processconfig.Folder
	ca, another pki.Pair
	bundle      []byte
	stop        func()
}

func runControlPlane(t *testing.T) running {
	t.Helper()
	r := running{t: t, folder: processconfig.Folder(t.TempDir())}
	authority := func() pki.Pair {
		pair, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	r.ca, r.another = authority(), authority()
	r.bundle = slices.Concat(r.ca.CertPEM, r.another.CertPEM)
	certs := pki.Folder{Path: r.folder.PKI(), Now: time.Now}
	for name, pair := range map[string]pki.Pair{processconfig.CA: {CertPEM: r.bundle, KeyPEM: r.ca.KeyPEM}, processconfig.ProxyCA: authority()} {
		if err := certs.Save(name, pair); err != nil {
			t.Fatal(err)
		}
	}
	c := config()
	c.Version, c.Endpoint, c.RunMode = buildinfo.Kubernetes(), "198.51.100.77:6443", processconfig.RunOnLoopback
	if err := c.Save(r.folder.Config()); err != nil {
		t.Fatal(err)
	}
	r.stop = startWorkloadProcess(t, r.folder)
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		run, _, err := r.folder.ReadRun()
		if err != nil || run.Local == "" {
			return false, err
		}
		_, err = r.client(r.ca).RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("it does not become ready: %v", err)
	}
	return r
}

// client of an administrator with a certificate of the authority.
func (r running) client(authority pki.Pair) kubernetes.Interface {
	r.t.Helper()
	leaf, err := authority.Issue(pki.Leaf{User: "admin", Groups: []string{kubeadmAdmins}, Client: true}, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	run, _, err := r.folder.ReadRun()
	if err != nil {
		r.t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + run.Local, TLSClientConfig: rest.TLSClientConfig{CAData: r.bundle, CertData: leaf.CertPEM, KeyData: leaf.KeyPEM},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return api
}

// A control plane whose authority comes with a second certificate, that of the authority before it or after it or of the one that
// signed it, signs with the first and accepts clients of both.
func TestAuthorityWithTwoCertificates(t *testing.T) {
	r := runControlPlane(t)
	if err := signed(t, r.client(r.ca)).CheckSignatureFrom(r.ca.Cert); err != nil {
		t.Errorf("the first certificate is not the issuer: %v", err)
	}
	review, err := r.client(r.another).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username != "admin" {
		t.Errorf("client of the second authority: %v, %v", review, err)
	}
}

// A control plane that stops ends the watches of its clients, of which each node has dozens, instead of waiting for them.
func TestStopEndsWatches(t *testing.T) {
	r := runControlPlane(t)
	patience, cancel := context.WithTimeout(t.Context(), 45*time.Second) // an API server that waits for its clients waits for a minute
	defer cancel()
	watch, err := r.client(r.ca).CoreV1().RESTClient().Get().Resource("namespaces").Param("watch", "true").Stream(patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Close() }()
	if _, err := watch.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the watch brings nothing: %v", err)
	}
	r.stop()
	if _, err := io.Copy(io.Discard, watch); err != nil {
		t.Errorf("the watch does not end: %v", err)
	}
}
