package foreign

import (
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// rightsStory has a provider of a group of its own, whose rights come late.
func (w *world) rightsStory() {
	newer, _ := families()
	w.check("1, 2 the manager has rights on the groups of Cluster API", func(w *world) {
		for _, k := range []provider.Kind{newer.cluster, newer.plane, newer.config} {
			for _, verb := range []string{"get", "list", "watch", "create", "patch", "delete"} {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: rbac.User,
					ResourceAttributes: &authorizationv1.ResourceAttributes{Group: k.Group, Resource: strings.ToLower(k.Kind) + "s", Verb: verb, Namespace: w.namespace}}}
				w.create(review)
				if !review.Status.Allowed {
					w.Errorf("%s of %s is not allowed", verb, k.Kind)
				}
			}
		}
	})
	foo := provider.Foo()
	c := &clusterv1.Cluster{ObjectMeta: w.meta("foo")}
	c.Spec.InfrastructureRef = foo.Ref("foo")
	w.create(c)
	w.check("13 a kind that is not installed is named", func(w *world) {
		w.saying(c, "InfrastructureReady", "", "FooCluster")
	})
	infra := foo.New(w.namespace, "foo")
	w.check("4 missing rights are said", func(w *world) {
		w.create(foo.CRD())
		w.createOfNewKind(infra)
		w.saying(c, "InfrastructureReady", "Unknown", "FooCluster", "aggregate-to-manager")
	})
	w.check("5 other Clusters are not disturbed", func(w *world) { w.in(w.T).up(newer) })
	w.check("3, 6 rights that are given later are enough", func(w *world) {
		w.create(role())
		w.eventually(infra, func() string { return owned(infra, c, "Cluster", "foo") })
		w.provisioned(newer, infra, true)
		w.saying(c, "InfrastructureReady", "True")
	})
}

// createOfNewKind creates an object of a kind that was installed just now.
func (w *world) createOfNewKind(u *unstructured.Unstructured) {
	w.Helper()
	err := w.Create(w.Context(), u)
	for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); err = w.Create(w.Context(), u) {
		<-time.After(100 * time.Millisecond)
	}
	w.must(err)
}

// labels replaces the contract labels of the definition of an object, and touches the object: definitions are not watched.
func (w *world) labels(k provider.Kind, u *unstructured.Unstructured, labels map[string]string) {
	w.Helper()
	change(w, k.CRD(), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Labels = labels })
	touch := func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"touched": fmt.Sprint(time.Now())})
	}
	change(w, u, touch)
	<-time.After(time.Second) // what the manager has of the definition comes from its cache
	change(w, u, touch)
}

func (w *world) labelStory() {
	newer, _ := families()
	w.check("7, 8 the API version that the label names is used, the last one of a list", func(w *world) {
		w.up(newer)
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group, Version: "v1beta1", Kind: "Cluster"})
		u.SetNamespace(w.namespace)
		u.SetName("c")
		w.eventually(u, func() string {
			version, _, _ := unstructured.NestedString(u.Object, "spec", "infrastructureRef", "apiVersion")
			return unless(version == newer.cluster.GroupVersion().String(), "the v1beta1 API refers to %s", version)
		})
	})
	w.check("12 a definition whose name is not made of the kind is not found, and the one that is looked for is named", func(w *world) {
		odd := provider.Kind{GroupVersionKind: schema.GroupVersionKind{Group: newer.cluster.Group, Version: "v1", Kind: "OddCluster"}, Role: provider.InfraCluster}
		crd := odd.CRD()
		wanted := crd.Name
		crd.Name, crd.Spec.Names.Plural = "oddities."+odd.Group, "oddities"
		w.create(crd)
		w.createOfNewKind(odd.New(w.namespace, "odd"))
		c := &clusterv1.Cluster{ObjectMeta: w.meta("odd")}
		c.Spec.InfrastructureRef = odd.Ref("odd")
		w.create(c)
		w.saying(c, "InfrastructureReady", "Unknown InternalError", wanted)
	})
	k := provider.Kind{GroupVersionKind: schema.GroupVersionKind{Group: newer.cluster.Group, Version: "v1", Kind: "LabelledCluster"}, Role: provider.InfraCluster}
	crd := k.CRD()
	crd.Labels = nil
	infra, c := k.New(w.namespace, "labelled"), &clusterv1.Cluster{ObjectMeta: w.meta("labelled")}
	c.Spec.InfrastructureRef = k.Ref("labelled")
	provider.Set(infra, true, "status", "ready")
	w.create(crd)
	w.createOfNewKind(infra)
	w.create(c)
	w.check("9 a definition without a contract label is named", func(w *world) {
		w.saying(c, "InfrastructureReady", "Unknown InternalError", crd.Name)
	})
	w.check("10 so is one with a contract that is not supported, until it gets another", func(w *world) {
		w.labels(k, infra, map[string]string{"cluster.x-k8s.io/v1alpha4": "v1"})
		w.saying(c, "InfrastructureReady", "Unknown InternalError", crd.Name)
		w.labels(k, infra, map[string]string{"cluster.x-k8s.io/v1beta1": "v1"})
		w.saying(c, "InfrastructureReady", "False NotReady")
	})
	w.check("14 the contract of a definition may change", func(w *world) {
		change(w, infra, func(u *unstructured.Unstructured) { provider.Set(u, true, "status", "ready") })
		w.saying(c, "InfrastructureReady", "True")
		change(w, infra, func(u *unstructured.Unstructured) {
			provider.Set(u, map[string]any{"provisioned": true}, "status", "initialization")
			provider.Set(u, []any{map[string]any{"name": "new"}}, "status", "failureDomains")
		})
		w.labels(k, infra, map[string]string{"cluster.x-k8s.io/v1beta2": "v1"})
		w.eventually(c, func() string {
			d := c.Status.FailureDomains
			return unless(len(d) == 1 && d[0].Name == "new" && isTrue(c.Status.Initialization.InfrastructureProvisioned), "%v, %v", d, c.Status.Initialization)
		})
	})
	w.check("15 labels that are removed are missed", func(w *world) {
		w.labels(k, infra, nil)
		w.saying(c, "InfrastructureReady", "Unknown InternalError", crd.Name)
	})
	w.check("11 a label that names a version which is not served is said, and does not keep the Cluster", func(w *world) {
		w.labels(k, infra, map[string]string{"cluster.x-k8s.io/v1beta2": "v9"})
		w.saying(c, "InfrastructureReady", "Unknown", "v9")
		other := &clusterv1.Cluster{ObjectMeta: w.meta("unserved")}
		other.Spec.InfrastructureRef = k.Ref("unserved")
		w.create(other)
		w.saying(other, "InfrastructureReady", "Unknown", "v9")
		w.must(w.Delete(w.Context(), other))
		w.gone(other)
	})
	w.check("16 definitions that are deleted do not keep what referred to them", func(w *world) {
		w.labels(k, infra, map[string]string{"cluster.x-k8s.io/v1beta2": "v1"})
		w.saying(c, "InfrastructureReady", "")
		w.must(w.Delete(w.Context(), k.CRD()))
		w.must(w.Delete(w.Context(), c))
		w.gone(c)
	})
}
