package install_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/providerrelease"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

var server *apiserver.Server // set once, by TestMain

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, apiserver.Options{}, func(s *apiserver.Server) { server = s }))
}

func connect(t *testing.T) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	config := rest.CopyConfig(server.Config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// repositories writes releases of providers into a folder, and returns the loader of a configuration that names them.
func repositories(t *testing.T, variables map[string]string, releases ...providerrelease.Release) install.ProviderLoader {
	t.Helper()
	config := providerrelease.Write(t, t.TempDir(), releases...)
	file := filepath.Join(t.TempDir(), "clusterctl.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	parsed, err := repository.LoadConfig(t.Context(), repository.ConfigEnvironment{Lookup: func(name string) (string, bool) {
		v, ok := variables[name]
		return v, ok
	}}, file)
	if err != nil {
		t.Fatal(err)
	}
	return install.NewProviderLoader(parsed)
}

func of(label, version string) providerrelease.Release {
	return providerrelease.Release{Label: label, Version: version}
}

// plan does what the verb init does, up to the plan.
func plan(ctx context.Context, c client.Client, l install.ProviderLoader, named map[provider.Type][]string) (install.Plan, error) {
	cluster, err := install.ReadCluster(ctx, c)
	if err != nil {
		return install.Plan{}, err
	}
	choices, _, err := install.Choose(named, cluster.Installed, cluster.Builtin)
	if err != nil {
		return install.Plan{}, err
	}
	items, err := l.LoadAll(ctx, choices, "")
	if err != nil {
		return install.Plan{}, err
	}
	s := install.InstallOptions{UpdatedAt: "2026-11-24T12:00:00Z"}
	if s.Before, s.Builtin, err = certificates.Steps(ctx, c, certificates.ModeBuiltin, l.Config); err != nil {
		return install.Plan{}, err
	}
	return install.Install(items, cluster.ClusterState, s)
}

func runner(c client.Client) install.Runner {
	return install.Runner{
		Client: c, Timeout: time.Second,
		Certify: func(ctx context.Context) error { return certificates.Reconcile(ctx, c, time.Now()) },
	}
}

// uninstall deletes everything but namespaces and CRDs.
func uninstall(t *testing.T, c client.Client, d install.DeletionOptions) install.Plan {
	t.Helper()
	p := uninstallation(t, c, d)
	if err := runner(c).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func uninstallation(t *testing.T, c client.Client, d install.DeletionOptions) install.Plan {
	t.Helper()
	found, err := discovery.NewDiscoveryClientForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := install.Kinds(found)
	if err != nil {
		t.Fatal(err)
	}
	installed, err := provider.ReadInventory(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	all, err := install.Objects(t.Context(), c, kinds, installed)
	if err != nil {
		t.Fatal(err)
	}
	return install.Uninstall(all, d)
}

// CX-01, CX-13, CX-25, CX-26: the first init installs the core and kubeadm beside what is named, with certificates; the record
// says so; a wait without Nodes ends with what to do; delete keeps namespaces and CRDs, until they are asked for.
func TestInitAndDelete(t *testing.T) {
	ctx, inner := t.Context(), connect(t)
	requests := 0
	count := func() { requests++ }
	c := interceptor.NewClient(inner, counting(count))
	l := repositories(t, map[string]string{"ACME_TOKEN": "s3cr3t-of-acme"},
		of("cluster-api", "v1.14.0"), of("cluster-api", "v1.14.1"), of("bootstrap-kubeadm", "v1.14.1"), of("control-plane-kubeadm", "v1.14.1"), of("infrastructure-acme", "v2.0.0"))
	p, err := plan(ctx, c, l, map[provider.Type][]string{provider.Infrastructure: {"acme"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(p.Lines(), "\n") + fmt.Sprint(p.Shown()); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "Secret acme-credentials in namespace acme-system (data sha256:") {
		t.Errorf("the plan shows Secrets as hashes:\n%s", text)
	}
	started := time.Now()
	if err := runner(c).Run(ctx, p); err != nil {
		t.Fatal(err)
	}
	t.Logf("init of four local repositories: %d requests, %s", requests, time.Since(started).Round(time.Millisecond))
	if requests > 300 {
		t.Errorf("init of four local repositories takes %d requests", requests)
	}
	installed, err := provider.ReadInventory(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range installed {
		got = append(got, fmt.Sprintf("%s %s %s %t", p.Label(), p.Version, p.Namespace, p.Installing))
	}
	want := []string{"cluster-api v1.14.1 clusterapi-system false", "bootstrap-kubeadm v1.14.1 bootstrapkubeadm-system false", "control-plane-kubeadm v1.14.1 controlplanekubeadm-system false", "infrastructure-acme v2.0.0 acme-system false"}
	if !slices.Equal(got, want) {
		t.Errorf("installed: %q, not %q", got, want)
	}
	checkCertificate(t, c)
	waits := install.Plan{Steps: []install.Step{}}
	for _, s := range p.Steps {
		if s.Object != nil && s.Object.GetKind() == "Deployment" && s.Object.GetName() == "acme-manager" {
			waits.Steps = append(waits.Steps, install.Step{Verb: install.Await, Object: s.Object})
		}
	}
	if err := runner(c).Run(ctx, waits); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "slipway up --node") {
		t.Errorf("a wait without Nodes: %v", err)
	}
	if _, err := plan(ctx, c, l, map[provider.Type][]string{provider.Infrastructure: {"acme"}}); fault.As(err) == nil || fault.As(err).Reason != install.ReasonInstalled {
		t.Errorf("installed twice: %v", err)
	}
	uninstall(t, c, install.DeletionOptions{})
	ns, crd := &corev1.Namespace{}, &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: "acme-system"}, ns); err != nil {
		t.Errorf("the namespace is gone: %v", err)
	}
	if err := c.Get(ctx, client.ObjectKey{Name: "acmethings.infrastructure.cluster.x-k8s.io"}, crd); err != nil {
		t.Errorf("the CRD is gone: %v", err)
	}
	d := &appsv1.DeploymentList{}
	if err := c.List(ctx, d); err != nil || len(d.Items) != 0 {
		t.Errorf("Deployments remain: %d, %v", len(d.Items), err)
	}
	if left := uninstallation(t, c, install.DeletionOptions{}); len(left.Steps) != 0 {
		t.Errorf("something is installed still: %v", left.Lines())
	}
}

// checkCertificate: the Secret has a certificate that the webhook configuration and the CRD trust.
func checkCertificate(t *testing.T, c client.Client) {
	t.Helper()
	secret, hook := &corev1.Secret{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "acme-system", Name: "acme-cert"}, secret); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "acme-validation"}, hook); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(hook.Webhooks[0].ClientConfig.CABundle) || string(secret.Data["ca.crt"]) != string(hook.Webhooks[0].ClientConfig.CABundle) {
		t.Errorf("the webhook configuration does not trust the certificate: %q", hook.Webhooks[0].ClientConfig.CABundle)
	}
	before := secret.ResourceVersion
	if err := certificates.Reconcile(t.Context(), c, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := certificates.Reconcile(t.Context(), c, time.Now().Add(61*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	renewed := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), renewed); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "acme-validation"}, hook); err != nil {
		t.Fatal(err)
	}
	if renewed.ResourceVersion == before || string(renewed.Data["ca.crt"]) != string(hook.Webhooks[0].ClientConfig.CABundle) {
		t.Error("the certificate was not renewed in its last third, or its authority did not follow")
	}
}

func counting(count func()) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			count()
			return c.Get(ctx, k, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			count()
			return c.Patch(ctx, o, p, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			count()
			return c.List(ctx, o, opts...)
		},
	}
}

var errKilled = errors.New("killed")

// killedAfterOne lets one write pass that changes something; what follows never happens, as after SIGKILL.
func killedAfterOne(inner client.WithWatch) client.Client {
	killed := false
	write := func(ctx context.Context, o client.Object, do func() error) error {
		if killed {
			return fmt.Errorf("%w: %w", context.Canceled, errKilled)
		}
		before := version(ctx, inner, o)
		err := do()
		killed = err == nil && version(ctx, inner, o) != before
		return err
	}
	return interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return write(ctx, o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return write(ctx, o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write(ctx, o, func() error { return c.Delete(ctx, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write(ctx, o, func() error { return c.Create(ctx, o, opts...) })
		},
	})
}

// version is the resource version of an object; empty: there is none, or it cannot be read.
func version(ctx context.Context, c client.Client, o client.Object) string {
	kind, err := c.GroupVersionKindFor(o)
	if err != nil {
		return ""
	}
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(kind)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return ""
	}
	return now.ResourceVersion
}

// CX-01, CX-13: killed after every single write of init, and then of delete, the same command again goes on from there, until
// nothing remains to be done.
func TestKilledAtEveryWrite(t *testing.T) {
	ctx, c := t.Context(), connect(t)
	l := repositories(t, nil, of("cluster-api", "v1.14.1"), of("infrastructure-killed", "v2.0.0"))
	named := map[provider.Type][]string{provider.Bootstrap: {install.None}, provider.ControlPlane: {install.None}, provider.Infrastructure: {"killed"}}
	writes := untilDone(t, func() error {
		through := killedAfterOne(c)
		p, err := plan(ctx, through, l, named)
		if fault.As(err) != nil && fault.As(err).Reason == install.ReasonInstalled {
			return nil // the last write was the last of all
		}
		if err != nil {
			return err
		}
		return runner(through).Run(ctx, p)
	})
	if installed, err := provider.ReadInventory(ctx, c); err != nil || len(installed) != 2 || installed[0].Installing || installed[1].Installing {
		t.Fatalf("after %d writes: %v, %v", writes, installed, err)
	}
	deployment := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "killed-system", Name: "killed-manager"}, deployment); err != nil {
		t.Error(err)
	}
	deletes := untilDone(t, func() error {
		return runner(killedAfterOne(c)).Run(ctx, uninstallation(t, c, install.DeletionOptions{}))
	})
	if installed, err := provider.ReadInventory(ctx, c); err != nil || len(installed) != 0 {
		t.Fatalf("deleted with %d writes: %v, %v", deletes, installed, err)
	}
	t.Logf("killed after each of %d writes of init, %d of delete", writes, deletes)
	if writes < 20 || deletes < 10 {
		t.Error("so few writes do not install and delete two providers")
	}
}

// untilDone repeats what is killed after its first write, and says how often it was.
func untilDone(t *testing.T, do func() error) int {
	t.Helper()
	var err error
	for n := range 200 {
		if err = do(); err == nil {
			return n
		}
		if !errors.Is(err, errKilled) {
			t.Fatalf("after %d writes: %v", n, err)
		}
	}
	t.Fatalf("it does not end: %v", err)
	return 0
}

// CX-01: a Deployment that does not become available ends the wait with what its Pods report; steps that fail for a reason that may
// pass are retried. CX-29.
func TestUnavailable(t *testing.T) {
	ctx, c := t.Context(), connect(t)
	l := repositories(t, nil, of("cluster-api", "v1.14.1"), of("infrastructure-broken", "v2.0.0"))
	p, err := plan(ctx, c, l, map[provider.Type][]string{provider.Bootstrap: {install.None}, provider.ControlPlane: {install.None}, provider.Infrastructure: {"broken"}})
	if err != nil {
		t.Fatal(err)
	}
	flaky, failures := failingOnce(c)
	r := runner(flaky)
	r.Pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	if err := r.Run(ctx, p); err != nil || *failures < 15 {
		t.Fatalf("every write fails once, %d in all: %v", *failures, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "broken-system", Name: "broken-manager-1", Labels: map[string]string{"app": "broken"}}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "manager", Image: "registry.example/broken:v2.0.0"}}, AutomountServiceAccountToken: new(bool),
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "broken-system", Name: "default"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	for _, o := range []client.Object{node, account, pod} {
		if err := c.Create(ctx, o); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if err := c.Delete(context.WithoutCancel(ctx), node); err != nil {
			t.Error(err)
		}
	}()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "the image is nowhere"},
	}}}
	if err := c.Status().Update(ctx, pod); err != nil {
		t.Fatal(err)
	}
	var waits []install.Step
	for _, s := range p.Steps {
		if s.Object != nil && s.Verb == install.Apply && s.Object.GetName() == "broken-manager" {
			waits = append(waits, install.Step{Verb: install.Await, Object: s.Object})
		}
	}
	err = r.Run(ctx, install.Plan{Steps: waits})
	want := "Deployment broken-manager in namespace broken-system is not available (0 of 1 replicas) after 1s (Pod broken-manager-1: container manager is waiting, ImagePullBackOff: the image is nowhere)"
	if err == nil || !strings.Contains(err.Error(), want) || !install.HasReason(err, install.ReasonUnavailable) {
		t.Errorf("%v\nwanted: %s", err, want)
	}
	uninstall(t, c, install.DeletionOptions{})
}

// failingOnce lets the first try of each apply fail as an API server that is busy.
func failingOnce(inner client.WithWatch) (client.Client, *int) {
	failed, failures := map[string]bool{}, new(int)
	return interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			key := fmt.Sprint(o.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(o))
			if !failed[key] {
				failed[key] = true
				*failures++
				return apierrors.NewServiceUnavailable("busy")
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}), failures
}

// CC2-16: a provider that was applied with kubectl is one of the others, once its objects have the label and it has a record.
func TestAdopted(t *testing.T) {
	ctx, c := t.Context(), connect(t)
	kubectl := func(o client.Object) {
		t.Helper()
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := runner(c).Run(ctx, install.Plan{Steps: []install.Step{
		{Verb: install.Apply, Object: provider.InventoryCRD()}, {Verb: install.Serve, Object: provider.InventoryCRD()},
	}}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{provider.ComponentLabel: "", provider.NameLabel: "infrastructure-adopted"}
	kubectl(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "adopted-system", Labels: labels}})
	kubectl(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-it", Namespace: "adopted-system", Labels: labels}})
	kubectl(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-others", Namespace: "adopted-system"}})
	kubectl(provider.Installed{Namespace: "adopted-system", Name: "adopted", Type: provider.Infrastructure, Version: "v1.0.0"}.Object())
	p := uninstall(t, c, install.DeletionOptions{})
	want := "infrastructure-adopted: delete ConfigMap of-it in namespace adopted-system\ninfrastructure-adopted: delete Provider infrastructure-adopted in namespace adopted-system: deleted last, so that the command can be repeated"
	if got := strings.Join(p.Lines(), "\n"); got != want {
		t.Errorf("the plan of its deletion:\n%s", got)
	}
}

// CX-03: providers that do not go together, CRDs that cannot be found, and a provider that is named twice are refused before
// anything is written.
func TestRefused(t *testing.T) {
	old := providerrelease.Release{Label: "infrastructure-old", Version: "v0.1.0", Contract: "v1alpha4"}
	l := repositories(t, nil, old, of("cluster-api", "v1.14.1"), of("infrastructure-new", "v1.0.0"), of("bootstrap-kubeadm", "v1.14.1"), of("control-plane-kubeadm", "v1.14.1"))
	cases := map[string]struct {
		named  []string
		reason string
		says   string
	}{
		"contract": {[]string{"old:v0.1.0"}, install.ReasonContract, "infrastructure-old v0.1.0 has contract v1alpha4"},
		"twice":    {[]string{"new", "new:v1.0.0"}, install.ReasonRequest, "is specified twice"},
		"unknown":  {[]string{"nowhere"}, "UnknownProvider", `provider "nowhere" of type InfrastructureProvider is unknown`},
		"version":  {[]string{"new:v9.0.0"}, "", "v9.0.0"},
	}
	c := connect(t)
	for name, tc := range cases {
		_, err := plan(t.Context(), c, l, map[provider.Type][]string{provider.Infrastructure: tc.named})
		if err == nil || !strings.Contains(err.Error(), tc.says) || tc.reason != "" && (fault.As(err) == nil || fault.As(err).Reason != tc.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
	choices := []install.Choice{{Type: provider.Core, Reference: provider.Reference{Name: "cluster-api"}}}
	items, err := l.LoadAll(t.Context(), choices, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range items[0].Objects {
		if o.GetKind() == "CustomResourceDefinition" {
			o.SetName("thing.infrastructure.cluster.x-k8s.io")
		}
	}
	if err := install.Check(items, ""); fault.As(err) == nil || fault.As(err).Reason != install.ReasonCRDName {
		t.Errorf("the name of a CRD: %v", err)
	}
}
