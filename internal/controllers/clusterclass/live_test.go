package clusterclass

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

const (
	patience     = 2 * time.Minute
	discoverPath = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovervariables/vars"
)

// live is an API server with the controller, and an extension.
type live struct {
	t *testing.T
	client.Client
	extension *hooktest.Extension
}

func start(t *testing.T) live {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, runtimev1.AddToScheme, localv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	srv := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t, "ClusterClass", "ExtensionConfig", "LocalClusterTemplate", "LocalMachineTemplate")})
	l := live{t: t, Client: srv.Client(t, scheme), extension: hooktest.Start(t, hooktest.Options{})}
	l.extension.Handle(hooktest.Handler("vars", "DiscoverVariables"), hooktest.Respond(&hooksv1.DiscoverVariablesResponse{
		CommonResponse: hooksv1.CommonResponse{Status: hooksv1.ResponseStatusSuccess},
		Variables:      []clusterv1.ClusterClassVariable{variable("a", "integer")},
	}))
	mgr, err := ctrl.NewManager(srv.Config, manager.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultTransform: kube.PruneManagedFields}, Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	extensions, err := hook.New(hook.Config{NamespaceLabels: hook.NamespaceLabels(mgr.GetClient())})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := extensions.Discover(t.Context(), l.extension.ExtensionConfig("ext")); err != nil {
		t.Fatal(err)
	}
	extensions.Prime()
	if err := Add(reconciler.Setup{Manager: mgr, Concurrency: 1}, extensions); err != nil {
		t.Fatal(err)
	}
	testkit.RunBackground(t, mgr.Start)
	return l
}

func (l live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// eventually polls until f returns no error.
func (l live) eventually(what string, f func() error) {
	l.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err = f(); err == nil {
			return
		}
		select {
		case <-l.t.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.t.Fatalf("%s: %v", what, err)
}

func (l live) class() *clusterv1.ClusterClass {
	l.t.Helper()
	class := &clusterv1.ClusterClass{}
	l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: "default", Name: "c"}, class))
	return class
}

// condition waits until a condition has the status and the message.
func (l live) condition(conditionType, status, message string) *clusterv1.ClusterClass {
	l.t.Helper()
	var class *clusterv1.ClusterClass
	l.eventually(conditionType+" is "+status, func() error {
		class = l.class()
		if c := condition.Set(class.Status.Conditions).Get(conditionType); c == nil || string(c.Status) != status || c.Message != message {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	return class
}

// TestLive is the life of a class on a real API server.
func TestLive(t *testing.T) { // CC-01, CC-02, CC-03, CC-04, CC-05, CC-06, TM-03
	l := start(t)
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	local := func(kind string) clusterv1.ClusterClassTemplateReference {
		return clusterv1.ClusterClassTemplateReference{APIVersion: localv1.GroupVersion.String(), Kind: kind, Name: "t"}
	}
	class.Spec.Infrastructure.TemplateRef = local("LocalClusterTemplate")
	class.Spec.ControlPlane.TemplateRef = local("LocalMachineTemplate") // any template will do
	class.Spec.Variables = []clusterv1.ClusterClassVariable{variable("b", "string")}
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{Name: "p", External: &clusterv1.ExternalPatchDefinition{
		DiscoverVariablesExtension: "vars.ext", GeneratePatchesExtension: "gen.ext", Settings: map[string]string{"k": "v"},
	}}}
	l.must(l.Create(t.Context(), class))

	class = l.condition(clusterv1.ClusterClassVariablesReadyCondition, "True", "")
	if v := class.Status.Variables; len(v) != 2 || v[0].Name != "a" || v[0].Definitions[0].From != "p" || v[1].Definitions[0].From != "inline" {
		t.Errorf("variables %+v", v)
	}
	if class.Status.ObservedGeneration != class.Generation {
		t.Errorf("generation %d is observed", class.Status.ObservedGeneration)
	}
	if bodies := l.extension.Bodies(discoverPath); len(bodies) != 1 {
		t.Errorf("the extension was asked %d times", len(bodies))
	}

	// Templates that are created later get an owner.
	template := &localv1.LocalClusterTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "t"}}
	template.Spec.Template.Spec.Backend = localv1.LocalClusterBackend{Simulated: &localv1.SimulatedCluster{}}
	l.must(l.Create(t.Context(), template))
	l.eventually("the template has an owner", func() error {
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(template), template))
		if owners := template.GetOwnerReferences(); len(owners) != 1 || owners[0] != ownerReference(class) {
			return fmt.Errorf("%v", owners)
		}
		return nil
	})
	if bodies := l.extension.Bodies(discoverPath); len(bodies) != 1 {
		t.Errorf("the extension was asked %d times", len(bodies))
	}

	// A newer version of the kind.
	crd := &apiextensionsv1.CustomResourceDefinition{}
	l.must(l.Get(t.Context(), client.ObjectKey{Name: "localclustertemplates.infrastructure.slipway.dev"}, crd))
	before := crd.Labels["cluster.x-k8s.io/v1beta2"]
	crd.Labels["cluster.x-k8s.io/v1beta2"] = "v1alpha1_v1alpha2"
	l.must(l.Update(t.Context(), crd))
	l.condition(clusterv1.ClusterClassRefVersionsUpToDateCondition, "False",
		"* LocalClusterTemplate t is referred to in infrastructure.slipway.dev/v1alpha1, use infrastructure.slipway.dev/v1alpha2")
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	crd.Labels["cluster.x-k8s.io/v1beta2"] = before
	l.must(l.Update(t.Context(), crd))
	l.condition(clusterv1.ClusterClassRefVersionsUpToDateCondition, "True", "")

	// Paused: nothing is asked. Then the extension fails for the new settings; Clusters wait.
	l.extension.Serve(discoverPath, hooktest.Raw(`{"status":"Failure","message":"no database"}`))
	class = l.class()
	class.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	class.Spec.Patches[0].External.Settings["k"] = "w"
	l.must(l.Update(t.Context(), class))
	l.eventually("the class is paused", func() error {
		if !condition.Set(l.class().Status.Conditions).IsTrue(clusterv1.PausedCondition) {
			return fmt.Errorf("%+v", l.class().Status.Conditions)
		}
		return nil
	})
	class = l.class()
	class.Annotations = nil
	l.must(l.Update(t.Context(), class))
	l.eventually("discovery fails", func() error {
		if class = l.class(); !condition.Set(class.Status.Conditions).IsFalse(clusterv1.ClusterClassVariablesReadyCondition) {
			return fmt.Errorf("%+v", class.Status.Conditions)
		}
		return nil
	})
	if class.Status.ObservedGeneration == class.Generation || len(class.Status.Variables) != 2 {
		t.Errorf("generation %d of %d is observed, variables %+v", class.Status.ObservedGeneration, class.Generation, class.Status.Variables)
	}
}
