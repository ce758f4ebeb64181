package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/test/providerrelease"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// operator installs providers from a folder into an API server without nodes.
type operator struct {
	user
	config string
	server *apiserver.Server
}

func startOperator(t *testing.T, releases ...providerrelease.Release) operator {
	t.Helper()
	folder := t.TempDir()
	config := filepath.Join(folder, "clusterctl.yaml")
	if err := os.WriteFile(config, []byte(providerrelease.Write(t, folder, releases...)+"ACME_TOKEN: s3cr3t-of-acme\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := apiserver.Start(t, apiserver.Options{})
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return operator{user{kubeconfig: server.Kubeconfig, client: server.Client(t, scheme)}, config, server}
}

// wants runs a verb, and looks for credentials in what it prints.
func (o operator) wants(t *testing.T, args string, code int, texts ...string) result {
	t.Helper()
	r := o.run(t.Context(), append(strings.Fields(args), "--config", o.config)...)
	r.wants(t, code, texts...)
	if strings.Contains(r.out+r.err, "s3cr3t") {
		t.Errorf("slipway %s prints a credential:\n%s%s", args, r.out, r.err)
	}
	return r
}

func (o operator) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := o.client.Get(t.Context(), client.ObjectKey{Namespace: "acme-system", Name: "acme-manager"}, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The verbs about providers, in the order in which an operator comes across them. CX-01, CX-04, CX-11, CX-12, CX-13.
func TestProviderVerbs(t *testing.T) {
	more := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: only-before, namespace: NAME-system}\n"
	o := startOperator(t,
		providerrelease.Release{Label: "cluster-api", Version: "v1.14.1"},
		providerrelease.Release{Label: "infrastructure-acme", Version: "v2.0.0", More: more},
		providerrelease.Release{Label: "infrastructure-acme", Version: "v2.1.0"})
	t.Run("list-images", o.listImages)
	o.wants(t, "upgrade plan", cli.ExitOK, "No provider is installed")
	init := "init --infrastructure acme:v2.0.0 --bootstrap - --control-plane - --cert-manager builtin"
	t.Run("a dry run writes nothing", func(t *testing.T) {
		r := o.wants(t, init+" --dry-run -o json", cli.ExitOK)
		var plan struct {
			Steps []struct{ Verb, Kind, DataHash string }
			Done  bool
		}
		if err := json.Unmarshal([]byte(r.out), &plan); err != nil || len(plan.Steps) < 20 || plan.Done {
			t.Errorf("%v: %s", err, r.out)
		}
		if err := o.client.Get(t.Context(), client.ObjectKey{Name: "acme-system"}, &corev1.Namespace{}); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the namespace is there: %v", err)
		}
	})
	o.wants(t, init, cli.ExitOK, "Installed provider cluster-api v1.14.1 in namespace clusterapi-system.", "Installed provider infrastructure-acme v2.0.0", "has no Node", "slipway up --node")
	o.wants(t, init, cli.ExitInvalid, "is already installed", "slipway upgrade apply")
	o.wants(t, "init --list-images", cli.ExitInvalid, `"slipway init list-images"`)
	if r := o.wants(t, "init list-images", cli.ExitOK, `"init" needs no image`); r.out != "" {
		t.Errorf("images of what is installed: %s", r.out)
	}
	o.wants(t, "init --infrastructure nowhere", cli.ExitNotFound, "nowhere")
	o.wants(t, "upgrade plan", cli.ExitOK, "CURRENT VERSION", "v2.0.0", "v2.1.0", "slipway upgrade apply --contract v1beta2", "Slipway manages the cert-manager objects itself.")
	t.Run("upgrade", o.upgrade)
	o.wants(t, "upgrade plan", cli.ExitOK, "All providers are up to date")
	o.wants(t, "upgrade apply --contract v1beta2", cli.ExitOK, "already has version v2.1.0", "There is nothing to upgrade.")
	t.Run("rollback", o.rollback)
	t.Run("delete", o.remove)
}

func (o operator) listImages(t *testing.T) {
	var out, stderr bytes.Buffer
	e := term.Env{In: strings.NewReader(""), Out: &out, Err: &stderr, Getenv: func(string) string { return "" }, Now: time.Now}
	code := cli.Run(t.Context(), strings.Fields("init list-images --infrastructure acme --bootstrap - --control-plane - --config "+o.config+" --cert-manager builtin"), e)
	if want := "registry.example/acme:v2.1.0\nregistry.example/clusterapi:v1.14.1\n"; code != cli.ExitOK || out.String() != want {
		t.Errorf("exit code %d, %q, not %q\n%s", code, out.String(), want, stderr.String())
	}
}

// upgrade: what a person has set is named, and the rest is of the new version.
func (o operator) upgrade(t *testing.T) {
	d := o.deployment(t)
	patch := client.StrategicMergeFrom(d.DeepCopy())
	d.Labels["team"] = "a"
	d.Spec.Template.Spec.Containers[0].Image = "mirror.example/acme:v2.0.0"
	if err := o.client.Patch(t.Context(), d, patch, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	o.wants(t, "upgrade apply --contract v1beta2 --dry-run", cli.ExitOK,
		`spec.template.spec.containers[name="manager"].image, set by kubectl-edit, is lost`, "metadata.labels.team, set by kubectl-edit, is preserved",
		"stop Deployment acme-manager", "delete ConfigMap only-before", "the upgrade to v2.1.0 starts")
	if got := o.deployment(t).Spec.Template.Spec.Containers[0].Image; got != "mirror.example/acme:v2.0.0" {
		t.Errorf("the dry run has changed the image to %s", got)
	}
	o.wants(t, "upgrade apply --infrastructure acme --contract v1beta2", cli.ExitInvalid, "specify either")
	o.wants(t, "upgrade apply --infrastructure acme:v9.0.0", cli.ExitNotFound, "v9.0.0")
	o.wants(t, "upgrade apply --contract v1beta2", cli.ExitOK,
		`image, set by kubectl-edit, is lost`, "Upgraded provider infrastructure-acme in namespace acme-system from v2.0.0 to v2.1.0.")
	d = o.deployment(t)
	if got := d.Spec.Template.Spec.Containers[0].Image; got != "registry.example/acme:v2.1.0" || d.Labels["team"] != "a" || *d.Spec.Replicas != 1 {
		t.Errorf("after the upgrade: image %s, labels %v, %d replicas", got, d.Labels, *d.Spec.Replicas)
	}
	if err := o.client.Get(t.Context(), client.ObjectKey{Namespace: "acme-system", Name: "only-before"}, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("what the new version lacks is there: %v", err)
	}
}

// rollback: the new version does not become available, and the former one is installed again.
func (o operator) rollback(t *testing.T) {
	providerrelease.Write(t, filepath.Dir(o.config), providerrelease.Release{Label: "infrastructure-acme", Version: "v2.2.0"})
	o.wants(t, "upgrade apply --contract v1beta2 --wait-providers", cli.ExitInvalid, "slipway up --node") // and nothing is rolled back
	o.wants(t, "upgrade apply --contract v1beta2 --wait-providers", cli.ExitInvalid, "slipway up --node") // it waits again
	o.wants(t, "upgrade apply --contract v1beta2", cli.ExitOK, "Upgraded provider infrastructure-acme in namespace acme-system from v2.1.0 to v2.2.0.")
	o.wants(t, "upgrade apply --contract v1beta2", cli.ExitOK, "There is nothing to upgrade.")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	if err := o.client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	providerrelease.Write(t, filepath.Dir(o.config), providerrelease.Release{Label: "infrastructure-acme", Version: "v2.3.0"})
	o.wants(t, "upgrade apply --contract v1beta2 --wait-providers --wait-provider-timeout 1", cli.ExitInvalid,
		"Installing the former versions again", "their former versions are installed again", "is not available (0 of 1 replicas)")
	if got := o.deployment(t).Spec.Template.Spec.Containers[0].Image; got != "registry.example/acme:v2.2.0" {
		t.Errorf("after the rollback, the image is %s", got)
	}
	o.wants(t, "upgrade plan -o json", cli.ExitOK, `"version": "v2.2.0"`, `"nextVersion": "v2.3.0"`)
	providerrelease.Write(t, filepath.Dir(o.config), providerrelease.Release{Label: "infrastructure-acme", Version: "v2.4.0", Stored: "v2", Served: []string{"v1"}})
	o.wants(t, "upgrade apply --contract v1beta2 --wait-providers --wait-provider-timeout 1", cli.ExitInvalid,
		"the former versions are not installed again, because infrastructure-acme v2.4.0 stores the objects of CRD acmethings.infrastructure.cluster.x-k8s.io in version v2, but v2.2.0 stores them in version v1")
}

func (o operator) remove(t *testing.T) {
	o.wants(t, "delete --infrastructure nowhere", cli.ExitNotFound, "installed providers: cluster-api v1.14.1, infrastructure-acme v2.4.0")
	o.wants(t, "delete --infrastructure acme --dry-run", cli.ExitOK, "delete Deployment acme-manager", "retains 1 Namespace")
	o.deployment(t)
	o.wants(t, "delete --infrastructure acme --include-crd", cli.ExitOK, "Deleted provider infrastructure-acme v2.4.0", "retains 1 Namespace")
	o.wants(t, "delete --all --infrastructure acme", cli.ExitInvalid, "--all selects every provider")
	o.wants(t, "delete --all", cli.ExitOK, "Deleted provider cluster-api")
	o.wants(t, "delete --all", cli.ExitOK, "nothing to delete")
}
