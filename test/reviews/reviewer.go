package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/crdschema"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
)

// question is a review with what the webhooks read besides it.
type question struct {
	Gates   admission.Gates              `json:"gates"`
	Objects []*unstructured.Unstructured `json:"objects"` // what the management cluster has
	// Unreadable are the names of ClusterClasses that cannot be read.
	Unreadable []string                     `json:"unreadable"`
	Review     *admissionv1.AdmissionReview `json:"review"`
}

// answer is the response to the review.
type answer struct {
	Response *admissionv1.AdmissionResponse `json:"response"`
	// Schema lists the errors of the CRD's schema, which the API server checks between the two webhooks.
	Schema []violation `json:"schema,omitempty"`
}

type violation struct{ Field, Message string }

// reviewer serves the paths of the webhooks.
type reviewer struct {
	scheme  *runtime.Scheme
	schemas map[metav1.GroupVersionResource]*crdschema.Schema
}

func newReviewer() (*reviewer, error) {
	scheme, err := manager.NewScheme()
	if err != nil {
		return nil, err
	}
	list, err := crds.All()
	if err != nil {
		return nil, err
	}
	r := &reviewer{scheme: scheme, schemas: map[metav1.GroupVersionResource]*crdschema.Schema{}}
	for _, crd := range list {
		for _, v := range crd.Spec.Versions {
			resource := metav1.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name, Resource: crd.Spec.Names.Plural}
			r.schemas[resource] = crdschema.New(crd, v.Name)
		}
	}
	return r, nil
}

func (r *reviewer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var q question
	err := json.NewDecoder(req.Body).Decode(&q)
	if err == nil && (q.Review == nil || q.Review.Request == nil) {
		err = errors.New("there is no review")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, err := r.answer(req.Context(), req.URL.Path, q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a)
}

// answer asks webhooks of their own for each review, because what they cache is of one management cluster.
func (r *reviewer) answer(ctx context.Context, path string, q question) (answer, error) {
	live := fake.NewClientBuilder().WithScheme(r.scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, isClass := o.(*clusterv1.ClusterClass); isClass && slices.Contains(q.Unreadable, key.Name) {
				return errors.New("the connection failed")
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	for _, o := range q.Objects {
		live.WithObjects(o)
	}
	paths := handlers{}
	if err := webhook.Register(paths, webhook.Options{
		Gates: q.Gates, Live: live.Build(), VersionOf: func(schema.GroupKind) string { return "" },
	}); err != nil {
		return answer{}, err
	}
	handler, ok := paths[path]
	if !ok {
		return answer{}, fmt.Errorf("no webhook at %s", path)
	}
	body, err := json.Marshal(q.Review)
	if err != nil {
		return answer{}, err
	}
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		return answer{}, fmt.Errorf("reading the response %q: %w", recorder.Body, err)
	}
	errs, err := r.schema(ctx, q.Review.Request)
	return answer{Response: review.Response, Schema: errs}, err
}

// schema returns what the schema of the CRD has against the object.
func (r *reviewer) schema(ctx context.Context, req *admissionv1.AdmissionRequest) ([]violation, error) {
	schema, known := r.schemas[req.Resource]
	if !known || req.SubResource != "" || req.Operation == admissionv1.Delete {
		return nil, nil
	}
	var content, old map[string]any
	if err := json.Unmarshal(req.Object.Raw, &content); err != nil {
		return nil, err
	}
	if len(req.OldObject.Raw) > 0 {
		if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
			return nil, err
		}
	}
	if err := schema.Complete(content); err != nil {
		return nil, err
	}
	shape, err := schema.Shape(content, old)
	if err != nil {
		return nil, err
	}
	rules, err := schema.Rules(ctx, content, old)
	if err != nil {
		return nil, err
	}
	var out []violation
	for _, e := range append(shape, rules...) {
		out = append(out, violation{e.Field, e.Error()})
	}
	return out, nil
}

// handlers are those of the webhooks by their paths.
type handlers map[string]http.Handler

func (h handlers) Register(path string, handler http.Handler) { h[path] = handler }
