package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/manifest"
)

// establishedWithin is the timeout for a CRD to be established and served.
const establishedWithin = time.Minute

// Install creates the CRDs and objects of o, CRDs first, and waits until the CRDs are served. [Start] and [Main] call
// it; a test can add more later.
func (s *Server) Install(ctx context.Context, o Options) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return err
	}
	c, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	crds, err := readCRDs(o.CRDPaths)
	if err != nil {
		return err
	}
	var rest []client.Object
	for _, obj := range o.Objects {
		if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
			crds = append(crds, crd)
			continue
		}
		rest = append(rest, obj)
	}
	for _, crd := range crds {
		if err := create(ctx, c, crd); err != nil {
			return err
		}
	}
	d, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := waitUntilServed(ctx, c, d, crd.GetName()); err != nil {
			return err
		}
	}
	for _, obj := range rest {
		if err := create(ctx, c, obj); err != nil {
			return err
		}
	}
	return nil
}

func create(ctx context.Context, c client.Client, obj client.Object) error {
	err := c.Create(ctx, obj.DeepCopyObject().(client.Object))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// waitUntilServed waits until a CRD is established and discovery lists all its served versions, which happens slightly
// later.
func waitUntilServed(ctx context.Context, c client.Client, d discovery.DiscoveryInterface, name string) error {
	var crd apiextensionsv1.CustomResourceDefinition
	established := func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
			return false, err
		}
		return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}), nil
	}
	found := func(context.Context) (bool, error) {
		for _, v := range crd.Spec.Versions {
			if v.Served && !isDiscovered(d, crd.Spec.Group+"/"+v.Name, crd.Spec.Names.Plural) {
				return false, nil
			}
		}
		return true, nil
	}
	for _, condition := range []wait.ConditionWithContextFunc{established, found} {
		if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, establishedWithin, true, condition); err != nil {
			return fmt.Errorf("wait for CRD %s: %w", name, err)
		}
	}
	return nil
}

// isDiscovered reports whether discovery lists a resource.
func isDiscovered(d discovery.DiscoveryInterface, groupVersion, plural string) bool {
	list, err := d.ServerResourcesForGroupVersion(groupVersion)
	return err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural })
}

func readCRDs(paths []string) ([]client.Object, error) {
	var out []client.Object
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || (filepath.Ext(file) != ".yaml" && filepath.Ext(file) != ".yml") {
				return err
			}
			crds, err := readFile(file)
			out = append(out, crds...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read CRDs from %s: %w", path, err)
		}
	}
	return out, nil
}

// readFile returns the documents of kind CustomResourceDefinition.
func readFile(file string) ([]client.Object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	objects, err := manifest.Objects(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var out []client.Object
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			out = append(out, o)
		}
	}
	return out, nil
}
