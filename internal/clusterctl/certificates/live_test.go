package certificates_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take.
const patience = time.Minute

const manifest = `apiVersion: v1
kind: Namespace
metadata: {name: cert-manager}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-VERSION, namespace: cert-manager}
`

// write writes a release of a cert-manager that has kinds, and nothing that runs.
func write(t *testing.T, folder, version string) *repository.ConfigFile {
	t.Helper()
	text := strings.ReplaceAll(manifest, "VERSION", version)
	for kind, scope := range map[string]string{"Certificate": "Namespaced", "Issuer": "Namespaced"} {
		plural := strings.ToLower(kind) + "s"
		text += fmt.Sprintf("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s.cert-manager.io}\nspec: {group: cert-manager.io, scope: %s, names: {kind: %s, plural: %s}, "+
			"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n", plural, scope, kind, plural)
	}
	path := filepath.Join(folder, "cert-manager", version, "cert-manager.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "clusterctl.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "cert-manager: {url: %s, version: %s}\n", path, version), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := repository.LoadConfig(t.Context(), repository.ConfigEnvironment{Lookup: func(string) (string, bool) { return "", false }}, file)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

type world struct {
	server *apiserver.Server
	client client.Client
}

func start(t *testing.T) world {
	t.Helper()
	server := apiserver.Start(t, apiserver.Options{})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return world{server, server.Client(t, scheme)}
}

func (w world) run(t *testing.T, steps []install.Step) {
	t.Helper()
	if err := (install.Runner{Client: w.client, Timeout: patience}).Run(t.Context(), install.Plan{Steps: steps}); err != nil {
		t.Fatal(err)
	}
}

func (w world) plan(t *testing.T, config *repository.ConfigFile) certificates.Upgrade {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(w.server.Config)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := install.Kinds(d)
	if err != nil {
		t.Fatal(err)
	}
	u, err := certificates.PlanUpgrade(t.Context(), w.client, kinds, config)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// CX-26, CX-27: cert-manager is installed once, installed again where something of it is missing, and upgraded; one that init
// has not installed is left alone; without it, certificates are issued and renewed for as long as the keeper runs.
func TestCertManager(t *testing.T) {
	w, folder := start(t), t.TempDir()
	first, second := write(t, folder, "v1.0.0"), write(t, folder, "v1.1.0")
	steps, builtin, err := certificates.Steps(t.Context(), w.client, certificates.ModeAutomatic, first)
	if err != nil || builtin {
		t.Fatal(builtin, err)
	}
	w.run(t, steps)
	if again, _, err := certificates.Steps(t.Context(), w.client, certificates.ModeAutomatic, first); err != nil || len(again) != 0 {
		t.Errorf("it works, and is installed again: %v, %v", again, err)
	}
	if _, _, err := certificates.Steps(t.Context(), w.client, certificates.ModeBuiltin, first); err == nil {
		t.Error("it is installed, and slipway would take its place")
	}
	if u := w.plan(t, first); u.Reason != "" || u.From != "v1.0.0" {
		t.Errorf("up to date: %+v", u)
	}
	if err := w.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "cert-manager", Name: "of-v1.0.0"}}); err != nil {
		t.Fatal(err)
	}
	if u := w.plan(t, first); !strings.Contains(u.Reason, "3 of its objects exist, but the configured version has 4") {
		t.Errorf("an object is missing: %+v", u)
	}
	w.run(t, w.plan(t, first).Steps)
	u := w.plan(t, second)
	if u.Reason == "" {
		t.Fatalf("a newer version: %+v", u)
	}
	w.run(t, u.Steps)
	if u := w.plan(t, second); u.Reason != "" || u.From != "v1.1.0" {
		t.Errorf("upgraded: %+v", u)
	}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "cert-manager", Name: "of-v1.0.0"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("what the new version lacks: %v", err)
	}
	if u := w.plan(t, first); u.Reason != "" {
		t.Errorf("it goes back: %+v", u)
	}
	w.disown(t)
	if u := w.plan(t, second); u.Provisioner != certificates.Other || u.Reason != "" {
		t.Errorf("one that init has not installed: %+v", u)
	}
	t.Run("builtin", func(t *testing.T) { w.builtin(t, second) })
}

// disown removes the label by which the CRDs are known to be of init.
func (w world) disown(t *testing.T) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "certificates.cert-manager.io"}, crd); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(crd.DeepCopy())
	crd.Labels = nil
	if err := w.client.Patch(t.Context(), crd, patch); err != nil {
		t.Fatal(err)
	}
}

// builtin: the keeper runs before the kinds are there, and provides them.
func (w world) builtin(t *testing.T, certManager *repository.ConfigFile) {
	for _, name := range []string{"certificates.cert-manager.io", "issuers.cert-manager.io"} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := w.client.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		w.until(t, "CRD "+name+" is gone", func() bool {
			return apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKey{Name: name}, crd))
		})
	}
	var later atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	keeper, err := certificates.NewController(w.server.Config, func() time.Time { return time.Now().Add(time.Duration(later.Load())) }, func(err error) { t.Logf("keeper: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keeper.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	for range 2 { // the second time, nothing is to be done
		if err := keeper.InstallCRDs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if u := w.plan(t, certManager); u.Provisioner != certificates.Slipway {
		t.Fatalf("slipway's own kinds: %+v", u)
	}
	w.isNotClusterctls(t)
	if steps, builtin, err := certificates.Steps(t.Context(), w.client, certificates.ModeInstall, certManager); err != nil || builtin || len(steps) == 0 {
		t.Errorf("nothing was issued yet, and cert-manager cannot be installed: %d steps, %v, %v", len(steps), builtin, err)
	}
	steps, builtin, err := certificates.Steps(t.Context(), w.client, certificates.ModeAutomatic, certManager)
	if err != nil || !builtin {
		t.Fatal(builtin, err)
	}
	w.run(t, steps)
	w.run(t, []install.Step{
		{Verb: install.Apply, Object: object("Issuer", "selfsigned", map[string]any{"selfSigned": map[string]any{}})},
		{Verb: install.Apply, Object: object("Certificate", "serving", map[string]any{
			"secretName": "serving", "dnsNames": []any{"a.default.svc"}, "issuerRef": map[string]any{"kind": "Issuer", "name": "selfsigned"},
			"privateKey": map[string]any{"algorithm": "ECDSA"},
		})},
	})
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{
		Name: "late", Annotations: map[string]string{"cert-manager.io/inject-ca-from": "default/serving"},
	}}
	none, ignore, url := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore, "https://127.0.0.1:1/"
	hook.Webhooks = []admissionregistrationv1.MutatingWebhook{{
		Name: "a.example.com", SideEffects: &none, FailurePolicy: &ignore, AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url},
	}}
	if err := w.client.Create(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	issued := w.trusted(t, nil)
	later.Store(int64(61 * 24 * time.Hour)) // the last third of the lifetime
	w.touch(t)
	renewed := w.trusted(t, issued)
	if err := w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "serving"}}); err != nil {
		t.Fatal(err)
	}
	w.trusted(t, renewed)
	_, _, err = certificates.Steps(t.Context(), w.client, certificates.ModeInstall, certManager)
	if f := fault.As(err); f == nil || f.Kind != fault.Invalid || !strings.Contains(f.Error(), "default/") {
		t.Errorf("cert-manager would be installed over certificates that slipway has issued: %v", err)
	}
	w.replace(t)
	if u := w.plan(t, certManager); u.Provisioner != certificates.Other {
		t.Errorf("another schema was applied over slipway's CRD: %+v", u)
	}
	if err := keeper.InstallCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if u := w.plan(t, certManager); u.Provisioner != certificates.Other {
		t.Errorf("slipway took it back: %+v", u)
	}
}

// isNotClusterctls: clusterctl takes what has its label for a cert-manager that it has installed.
func (w world) isNotClusterctls(t *testing.T) {
	t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := w.client.List(t.Context(), list, client.MatchingLabels{"clusterctl.cluster.x-k8s.io/core": "cert-manager"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) > 0 {
		t.Errorf("%d CRDs have clusterctl's label, %s among them", len(list.Items), list.Items[0].Name)
	}
}

// replace does what kubectl does with a manifest that it has not applied before: labels stay, lists are the manifest's.
func (w world) replace(t *testing.T) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "certificates.cert-manager.io"}}
	patch := `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`
	if err := w.client.Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
}

// touch changes the Certificate, so that the keeper looks at the clock before its time.
func (w world) touch(t *testing.T) {
	t.Helper()
	o := object("Certificate", "serving", nil)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(o.DeepCopy())
	o.SetLabels(map[string]string{"touched": "yes"})
	if err := w.client.Patch(t.Context(), o, patch); err != nil {
		t.Fatal(err)
	}
}

// trusted waits until the webhook configuration trusts a certificate other than the one before, and returns it.
func (w world) trusted(t *testing.T, before []byte) []byte {
	t.Helper()
	secret, hook := &corev1.Secret{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	w.until(t, "the webhook configuration trusts the certificate", func() bool {
		return w.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "serving"}, secret) == nil &&
			w.client.Get(t.Context(), client.ObjectKey{Name: "late"}, hook) == nil &&
			len(secret.Data["ca.crt"]) > 0 && !bytes.Equal(secret.Data["ca.crt"], before) && bytes.Equal(hook.Webhooks[0].ClientConfig.CABundle, secret.Data["ca.crt"])
	})
	return secret.Data["ca.crt"]
}

func (w world) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !done(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("after %s, not yet: %s", patience, what)
		}
	}
}

func object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion("cert-manager.io/v1")
	o.SetKind(kind)
	o.SetNamespace("default")
	o.SetName(name)
	return o
}
