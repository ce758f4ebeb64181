package hosted

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/hosted/process"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// live is the controller with real processes, over a management cluster in memory.
type live struct {
	*testing.T
	controller *controller
	reconciler *reconciler.Reconciler[*hostedv1.HostedControlPlane, snapshot]
	client     client.Client
	folder     processconfig.Folder
}

func newLive(t *testing.T) *live { return newLiveWith(t, false) }

// newLiveWith says whether the data of the control plane is lost with this process.
func newLiveWith(t *testing.T, temporary bool) *live {
	binary, err := apiserver.Binary()
	must(t, err)
	root, err := os.MkdirTemp("", "slipway-") // short enough for sockets
	must(t, err)
	supervisor := supervisor.New(t.Context(), supervisor.Config{
		Root: root, Command: []string{binary, "control-plane", "run", "--config"}, Versions: func() []string { return []string{version} }, Now: time.Now, SeparateUsers: true,
	})
	t.Cleanup(func() {
		if err := supervisor.Remove(context.Background(), "ns.p"); err != nil {
			t.Error(err)
		}
		supervisor.Close()
		_ = os.RemoveAll(root)
	})
	owner := cluster()
	owner.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "198.51.100.1", Port: 6443} // on no machine: it is reached beside it
	api := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(plane(), owner).WithStatusSubresource(&hostedv1.HostedControlPlane{}).Build()
	c := &controller{client: api, cache: api, backends: backend.Set{hostedv1.BackendProcess: process.New(supervisor, temporary)}, gateways: gateway{}, now: time.Now,
		applyObjects: func(context.Context, *rest.Config, addons.Params) error { return nil }, inspect: inspected}
	c.policy.ControlPlanes.Addresses = []netip.Prefix{netip.MustParsePrefix("198.51.100.1/32")}
	r := &reconciler.Reconciler[*hostedv1.HostedControlPlane, snapshot]{Controller: c.definition(), Client: api, Writer: kube.NewWriter(api, Name), Now: c.now}
	c.writer = r.Writer
	return &live{t, c, r, api, supervisor.Folder("ns.p")}
}

// until reconciles until the control plane is as it should be, and returns it.
func (l *live) until(what string, is func(*hostedv1.HostedControlPlane) bool) *hostedv1.HostedControlPlane {
	l.Helper()
	got := &hostedv1.HostedControlPlane{}
	key := client.ObjectKey{Namespace: "ns", Name: "p"}
	err := wait.PollUntilContextTimeout(l.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		if _, err := l.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
			return false, err
		}
		return l.client.Get(ctx, key, got) == nil && is(got), nil
	})
	if err != nil {
		log, _ := os.ReadFile(l.folder.Log())
		l.Fatalf("%s: %v\n%+v\n%s", what, err, got.Status, log[max(0, len(log)-4<<10):])
	}
	return got
}

// change changes the spec and returns when the control plane has restarted with it.
func (l *live) change(what string, change func(*hostedv1.HostedControlPlane)) {
	l.Helper()
	before := l.until("a control plane", func(*hostedv1.HostedControlPlane) bool { return true })
	change(before)
	must(l.T, l.client.Update(l.Context(), before))
	l.until(what, func(p *hostedv1.HostedControlPlane) bool {
		return p.Status.Process.PID != before.Status.Process.PID && condition.Set(p.Status.Conditions).IsTrue("Available")
	})
}

// access is the way to the workload cluster as its administrator.
func (l *live) access() *rest.Config {
	l.Helper()
	s, err := l.controller.observe(l.Context(), l.until("a control plane", func(*hostedv1.HostedControlPlane) bool { return true }))
	must(l.T, err)
	config, err := access(s)
	must(l.T, err)
	return config
}

func (l *live) api() kubernetes.Interface {
	l.Helper()
	api, err := kubernetes.NewForConfig(l.access())
	must(l.T, err)
	return api
}

func (l *live) createSecret(name string) {
	l.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"word": "of-" + name}}
	_, err := l.api().CoreV1().Secrets("default").Create(l.Context(), secret, metav1.CreateOptions{})
	must(l.T, err)
}

// secretIsReadable reads a Secret of createSecret, through the API and in etcd.
func (l *live) secretIsReadable(name string, encrypted bool) {
	l.Helper()
	secret, err := l.api().CoreV1().Secrets("default").Get(l.Context(), name, metav1.GetOptions{})
	if err != nil || string(secret.Data["word"]) != "of-"+name {
		l.Errorf("Secret %s: %v", name, err)
	}
	db, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(l.folder.Etcd(), "client.sock")}, DialTimeout: 10 * time.Second})
	must(l.T, err)
	defer func() { _ = db.Close() }()
	stored, err := db.Get(l.Context(), "/registry/secrets/default/"+name)
	must(l.T, err)
	if stored.Count != 1 {
		l.Fatalf("Secret %s is in etcd %d times", name, stored.Count)
	}
	value := string(stored.Kvs[0].Value)
	if plain := strings.Contains(value, "of-"+name); plain == encrypted || strings.HasPrefix(value, "k8s:enc:secretbox:v1:") != encrypted {
		l.Errorf("Secret %s in etcd: %.40q, want encrypted %v", name, value, encrypted)
	}
}

// Audit, encryption, tokens and Pod Security of a control plane that runs already, and taken away again.
func TestSecurityOfARealControlPlane(t *testing.T) { // H8, CP-04
	l := newLive(t)
	l.until("a control plane", func(p *hostedv1.HostedControlPlane) bool {
		return condition.Set(p.Status.Conditions).IsTrue("Available")
	})
	l.createSecret("early")
	l.secretIsReadable("early", false)

	trusted, stranger := testkit.StartOIDCIssuer(t), testkit.StartOIDCIssuer(t)
	l.controller.policy.ControlPlanes.Issuers = []string{trusted.URL}
	l.change("a control plane with all of it", func(p *hostedv1.HostedControlPlane) {
		p.Spec.Audit, p.Spec.Encryption = &hostedv1.Audit{}, &hostedv1.Encryption{}
		p.Spec.Authentication = &hostedv1.Authentication{JWT: []hostedv1.JWTAuthenticator{trusted.Trusted()}}
		p.Spec.PodSecurity = &hostedv1.PodSecurity{Enforce: hostedv1.PodSecurityStandard{Level: "restricted"}}
	})
	l.createSecret("hidden")
	l.secretIsReadable("early", false)
	l.secretIsReadable("hidden", true)
	l.recorded("hidden")
	l.identified(trusted, stranger)
	l.privilegedPodIsRefused()

	l.strangerIsNotTrusted(stranger)
	l.change("a control plane without encryption", func(p *hostedv1.HostedControlPlane) { p.Spec.Encryption = nil })
	l.createSecret("late")
	l.secretIsReadable("early", false)
	l.secretIsReadable("hidden", true)
	l.secretIsReadable("late", false)
	l.lostKeysAreSaid()
}

// One field for all of it: what it sets is in effect, and what is set besides it stays.
func TestHardenedControlPlane(t *testing.T) { // H8, CP-04
	l := newLive(t)
	p := l.until("a control plane", func(*hostedv1.HostedControlPlane) bool { return true })
	p.Spec.Hardening, p.Spec.PodSecurity = hostedv1.HardeningRestricted, &hostedv1.PodSecurity{Enforce: hostedv1.PodSecurityStandard{Level: "baseline"}}
	must(t, l.client.Update(t.Context(), p))
	l.until("a hardened control plane", func(p *hostedv1.HostedControlPlane) bool {
		return condition.Set(p.Status.Conditions).IsTrue("Available") && p.Status.EncryptionKeys != ""
	})
	l.createSecret("hidden")
	l.secretIsReadable("hidden", true)
	l.recorded("hidden")
	l.privilegedPodIsRefused()

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Port: 80}}, ExternalIPs: []string{"198.51.100.9"}}}
	if _, err := l.api().CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "Use of external IPs is denied") {
		t.Errorf("a Service that takes an address: %v", err)
	}
	access := l.access()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(access.Host, "https://"), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err == nil {
		_ = conn.Close()
		t.Error("the API server speaks TLS 1.2")
	}
	api, limited := l.api(), atomic.Bool{}
	events := &errgroup.Group{}
	events.SetLimit(20)
	for i := range 400 {
		events.Go(func() error {
			_, err := api.CoreV1().Events("default").Create(t.Context(), &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("e", i), Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"},
			}, metav1.CreateOptions{})
			if apierrors.IsTooManyRequests(err) {
				limited.Store(true)
				return nil
			}
			return err
		})
	}
	must(t, events.Wait())
	if !limited.Load() {
		t.Error("400 Events at once are not too many")
	}
}

// recorded: who wrote the Secret is in the audit log, and its content is not.
func (l *live) recorded(name string) {
	l.Helper()
	log, err := os.ReadFile(l.folder.AuditLog())
	must(l.T, err)
	if !strings.Contains(string(log), `"verb":"create"`) || !strings.Contains(string(log), `"name":"`+name+`"`) || strings.Contains(string(log), "of-"+name) {
		l.Errorf("the audit log lacks Secret %s, or has its content:\n%.2000s", name, log)
	}
	if info, err := os.Stat(l.folder.AuditLog()); err != nil || info.Mode().Perm() != 0o600 {
		l.Errorf("the audit log is %v, %v", info.Mode(), err)
	}
}

// identified: a token of the issuer stands for a user, one of another issuer for none.
func (l *live) identified(trusted, stranger *testkit.OIDCIssuer) {
	l.Helper()
	admin := l.access()
	review := func(token string) (string, error) {
		config := rest.AnonymousClientConfig(admin)
		config.BearerToken = token
		api, err := kubernetes.NewForConfig(config)
		must(l.T, err)
		got, err := api.AuthenticationV1().SelfSubjectReviews().Create(l.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		return got.Status.UserInfo.Username, nil
	}
	var user string
	err := wait.PollUntilContextTimeout(l.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (done bool, err error) {
		user, err = review(trusted.Token(l.T, trusted.URL))
		return err == nil, nil // the keys of the issuer are read after the start
	})
	if err != nil || user != "oidc:jane" {
		l.Errorf("the token of the issuer is that of %q: %v", user, err)
	}
	for what, token := range map[string]string{
		"another issuer": stranger.Token(l.T, stranger.URL), "another that says to be it": stranger.Token(l.T, trusted.URL),
	} {
		if user, err := review(token); !apierrors.IsUnauthorized(err) {
			l.Errorf("the token of %s is that of %q: %v", what, user, err)
		}
	}
	if stranger.Requests.Load() != 0 {
		l.Error("the API server connected to an issuer that it was not told of")
	}
}

func (l *live) privilegedPodIsRefused() {
	l.Helper()
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: &yes},
	}}}}
	api := l.api()
	for namespace, says := range map[string]string{"default": "violates PodSecurity", "kube-system": ""} {
		err := wait.PollUntilContextTimeout(l.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			_, err := api.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if says == "" { // the ServiceAccount is created after the start
				return err == nil, nil
			}
			return err != nil && strings.Contains(err.Error(), says), nil
		})
		if err != nil {
			l.Errorf("a privileged Pod in %s is to be answered with %q: %v", namespace, says, err)
		}
	}
}

// Where its data would be lost with the manager's Pod, a control plane is not started, and says what to do instead.
func TestTemporaryDataIsRefused(t *testing.T) {
	l := newLiveWith(t, true)
	l.until("a condition about the data", func(p *hostedv1.HostedControlPlane) bool {
		c := condition.Set(p.Status.Conditions).Get("Available")
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "use a KubeadmControlPlane")
	})
	if entries, err := os.ReadDir(string(l.folder)); !os.IsNotExist(err) {
		t.Errorf("the control plane has data: %v, %v", entries, err)
	}
}

// strangerIsNotTrusted: an issuer that the operator does not allow changes nothing, and is said.
func (l *live) strangerIsNotTrusted(stranger *testkit.OIDCIssuer) {
	l.Helper()
	p := l.until("a control plane", func(*hostedv1.HostedControlPlane) bool { return true })
	pid, trusted := p.Status.Process.PID, p.Spec.Authentication.JWT
	p.Spec.Authentication.JWT = []hostedv1.JWTAuthenticator{stranger.Trusted()}
	must(l.T, l.client.Update(l.Context(), p))
	p = l.until("a condition about the issuer", func(p *hostedv1.HostedControlPlane) bool {
		c := condition.Set(p.Status.Conditions).Get(clusterv1.RollingOutCondition)
		return c != nil && c.Reason == reasonDenied && strings.Contains(c.Message, "controlPlanes.issuers")
	})
	if p.Status.Process.PID != pid || stranger.Requests.Load() != 0 {
		l.Error("the control plane has restarted, or connected to the issuer")
	}
	p.Spec.Authentication.JWT = trusted
	must(l.T, l.client.Update(l.Context(), p))
}

// lostKeysAreSaid: without its Secret the control plane goes on, and no new keys are made.
func (l *live) lostKeysAreSaid() {
	l.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-encryption"}}
	must(l.T, l.client.Delete(l.Context(), secret))
	l.until("a condition about the keys", func(p *hostedv1.HostedControlPlane) bool {
		c := condition.Set(p.Status.Conditions).Get(hostedv1.EncryptionKeysAvailableCondition)
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "restore it from a backup")
	})
	if err := l.client.Get(l.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		l.Errorf("the Secret is back: %v", err)
	}
}
