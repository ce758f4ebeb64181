package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/secretencryption"
	"github.com/slipwayhq/slipway/internal/testkit/issuer"
)

// storedSecret is a Secret as it is in etcd.
func storedSecret(t *testing.T, dir datadir.Dir) []byte {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + dir.Path("etcd", "client.sock")}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	r, err := c.Get(t.Context(), "/registry/secrets/default/s")
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("%v, %d entries", err, r.Count)
	}
	return r.Kvs[0].Value
}

// configVariable has, for a process that TestMain makes of this program, the configuration of the management cluster that it runs.
const configVariable = "SLIPWAY_TEST_MANAGEMENT"

// TestMain runs the tests, or is the process of a management cluster or of a control plane, of which each can run one in its life.
func TestMain(m *testing.M) {
	run := func() error { os.Exit(m.Run()); return nil }
	if text := os.Getenv(configVariable); text != "" {
		run = func() error { return serve(text) }
	}
	if folder := os.Getenv(folderVariable); folder != "" {
		run = func() error { return serveWorkload(processconfig.Folder(folder)) }
	}
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
}

// serve runs a management cluster until standard input is closed, which it is when the test ends, too.
func serve(text string) error {
	var cfg ManagementConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	m, err := StartManagement(context.Background(), cfg)
	if err != nil {
		return err
	}
	err = m.Ready(context.Background())
	if err == nil {
		_, _ = os.Stdout.WriteString("ready\n")
		_, err = io.ReadAll(os.Stdin)
	}
	return errors.Join(err, m.Stop())
}

// run runs the management cluster in a process of its own while check is called.
func run(t *testing.T, cfg ManagementConfig, check func(kubernetes.Interface)) {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), configVariable+"="+string(text))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	said, ready := "", false
	for !ready && lines.Scan() {
		if ready = lines.Text() == "ready"; !ready {
			said += lines.Text() + "\n"
		}
	}
	if !ready {
		t.Fatalf("it ended before it was ready: %v: %s", cmd.Wait(), said)
	}
	admin, err := clientcmd.BuildConfigFromFlags("", cfg.Dir.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	check(c)
	_ = stdin.Close()
	for lines.Scan() {
		said += lines.Text() + "\n"
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// The Secrets of a management cluster that has some are encrypted with its next start, with another key once that is put in front,
// and plain text again where the operator wants that; they can be read all the while.
func TestEncryptionAtRest(t *testing.T) {
	dir := datadir.Dir(t.TempDir())
	files := secretencryption.Files{Dir: dir}
	until := func(c kubernetes.Interface, reason, prefix string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
			s, err := c.CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{})
			if err != nil || string(s.Data["k"]) != "treasure" {
				t.Fatalf("%s: it cannot be read: %v", reason, err)
			}
			status, err := files.Status()
			return bytes.HasPrefix(storedSecret(t, dir), []byte(prefix)) && status.Others == 0, err
		})
		if err != nil {
			t.Fatalf("%s: %v, stored is %.40q", reason, err, storedSecret(t, dir))
		}
	}
	run(t, ManagementConfig{Dir: dir}, func(c kubernetes.Interface) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"k": []byte("treasure")}}
		if _, err := c.CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(storedSecret(t, dir), []byte("treasure")) {
			t.Fatal("the test looks in the wrong place")
		}
	})
	run(t, ManagementConfig{Dir: dir, EncryptSecrets: true, Audit: &hostedv1.Audit{}}, func(c kubernetes.Interface) {
		first, err := files.Status()
		if err != nil {
			t.Fatal(err)
		}
		until(c, "first start with encryption", "k8s:enc:secretbox:v1:"+first.Key+":")
		next, err := files.Rotate(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		until(c, "a new key while it runs", "k8s:enc:secretbox:v1:"+next+":")
		text, err := os.ReadFile(dir.Path("pki", "encryption.json"))
		if err != nil || strings.Contains(string(text), first.Key) || !strings.Contains(string(text), next) {
			t.Errorf("%v: the old key is not forgotten", err)
		}
	})
	run(t, ManagementConfig{Dir: dir}, func(c kubernetes.Interface) { until(c, "switched off", "k8s\x00") })
	log, err := os.ReadFile(dir.AuditLog())
	if err != nil || !strings.Contains(string(log), `"resource":"secrets"`) || strings.Contains(string(log), "treasure") {
		t.Errorf("%v: the audit log has %d bytes, and does not say who wrote Secrets, or what", err, len(log))
	}
}

// People of an issuer that the operator names are users of the management cluster; others are not.
func TestManagementAuthentication(t *testing.T) {
	trusted, stranger := issuer.Start(t), issuer.Start(t)
	dir := datadir.Dir(t.TempDir())
	cfg := ManagementConfig{Dir: dir, Authentication: &hostedv1.Authentication{JWT: []hostedv1.JWTAuthenticator{trusted.Trusted()}}}
	run(t, cfg, func(kubernetes.Interface) {
		admin, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		who := func(ctx context.Context, token string) (string, error) {
			config := rest.AnonymousClientConfig(admin)
			config.BearerToken = token
			c, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil {
				return "", err
			}
			return got.Status.UserInfo.Username, nil
		}
		var user string
		err = wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			var err error
			user, err = who(ctx, trusted.Token(t, trusted.URL))
			return err == nil, nil // the keys of the issuer are read after the start
		})
		if err != nil || user != issuer.Prefix+issuer.Subject {
			t.Errorf("%v, user %q", err, user)
		}
		if user, err := who(t.Context(), stranger.Token(t, trusted.URL)); !apierrors.IsUnauthorized(err) {
			t.Errorf("a token that another has signed is that of %q: %v", user, err)
		}
	})
}
