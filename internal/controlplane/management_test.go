package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/test/testkit"
)

// Clients reach a management cluster at the addresses and by the names that its operator has named, and are asked who they are.
func TestManagementElsewhere(t *testing.T) {
	folder, err := os.MkdirTemp("", "slipway-plane-") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	dir := datadir.Dir(filepath.Join(folder, "data"))
	cfg := ManagementConfig{Dir: dir, Addresses: []string{"127.0.0.5", "127.0.0.6"}, Names: []string{"clusters.example.com", "192.0.2.7"}}
	run(t, cfg, func(kubernetes.Interface) {
		admin, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range [][2]string{{"127.0.0.1", ""}, {"127.0.0.5", ""}, {"127.0.0.6", "clusters.example.com"}, {"127.0.0.5", "192.0.2.7"}} {
			host, name := by[0], by[1]
			at := rest.CopyConfig(admin)
			at.Host, at.ServerName = strings.Replace(admin.Host, "127.0.0.1", host, 1), name
			if _, err := kubernetes.NewForConfigOrDie(at).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Errorf("at %s as %q: %v", host, name, err)
			}
			at.CertData, at.KeyData = nil, nil
			if _, err := kubernetes.NewForConfigOrDie(at).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
				t.Errorf("at %s, anyone reads namespaces", host)
			}
		}
		other := rest.CopyConfig(admin)
		other.ServerName = "other.example.com"
		if _, err := kubernetes.NewForConfigOrDie(other).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("it has a name that it was not given")
		}
	})
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

// People of an issuer that the operator names are users of the management cluster; others are not.
func TestManagementAuthentication(t *testing.T) {
	trusted, stranger := testkit.StartOIDCIssuer(t), testkit.StartOIDCIssuer(t)
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
		if err != nil || user != testkit.OIDCPrefix+testkit.OIDCSubject {
			t.Errorf("%v, user %q", err, user)
		}
		if user, err := who(t.Context(), stranger.Token(t, trusted.URL)); !apierrors.IsUnauthorized(err) {
			t.Errorf("a token that another has signed is that of %q: %v", user, err)
		}
	})
}
