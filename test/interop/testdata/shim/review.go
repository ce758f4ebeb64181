package slipway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

const (
	validatePath = "/validate"
	mutatePath   = "/mutate"
)

// question and answer are what test/reviews of Slipway reads and writes.
type question struct {
	Gates      map[string]bool              `json:"gates"`
	Objects    []map[string]any             `json:"objects"`
	Unreadable []string                     `json:"unreadable"`
	Review     *admissionv1.AdmissionReview `json:"review"`
}

type answer struct {
	Response *admissionv1.AdmissionResponse `json:"response"`
	Schema   []violation                    `json:"schema"`
}

type violation struct{ Field, Message string }

func (a answer) result() result {
	out := resultOf(a.Response)
	out.schema = a.Schema
	return out
}

func resultOf(r *admissionv1.AdmissionResponse) result {
	out := result{warnings: r.Warnings}
	if !r.Allowed {
		out.err = &apierrors.StatusError{ErrStatus: *r.Result}
	}
	return out
}

// partKey marks the context of a part of an object: its tests do not care for the gate of the object.
type partKey struct{}

func part() context.Context { return context.WithValue(context.Background(), partKey{}, true) }

// review posts a request, with the gates that are on and the objects that the webhook reads.
func review(ctx context.Context, reader client.Reader, path string, r admissionv1.AdmissionRequest) answer {
	r.UID = "1"
	body, err := json.Marshal(question{
		Gates: map[string]bool{
			"ClusterTopology":                feature.Gates.Enabled(feature.ClusterTopology) || ctx.Value(partKey{}) != nil,
			"KubeadmBootstrapFormatIgnition": feature.Gates.Enabled(feature.KubeadmBootstrapFormatIgnition),
			"MachineTaintPropagation":        feature.Gates.Enabled(feature.MachineTaintPropagation),
			"RuntimeSDK":                     feature.Gates.Enabled(feature.RuntimeSDK),
		},
		Objects:    objects(ctx, reader, r.Object.Raw),
		Unreadable: unreadable(ctx, reader),
		Review:     &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &r},
	})
	must(err)
	response, err := http.Post(os.Getenv("SLIPWAY_REVIEWS")+path, "application/json", bytes.NewReader(body))
	must(err)
	defer response.Body.Close()
	var out answer
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	must(err)
	if response.StatusCode != http.StatusOK {
		panic(fmt.Sprintf("the review of Slipway failed: %s", text.String()))
	}
	must(json.Unmarshal(text.Bytes(), &out))
	return out
}

// request is about an object; what a test has in the context counts.
func request(ctx context.Context, operation admissionv1.Operation, old, object client.Object) admissionv1.AdmissionRequest {
	some := object
	if isNil(some) {
		some = old
	}
	kind, err := apiutil.GVKForObject(some, scheme())
	must(err)
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	out := admissionv1.AdmissionRequest{
		Operation: operation, Name: some.GetName(), Namespace: some.GetNamespace(),
		Kind:        metav1.GroupVersionKind(kind),
		RequestKind: (*metav1.GroupVersionKind)(&kind),
		Resource:    metav1.GroupVersionResource(resource),
		Object:      runtime.RawExtension{Raw: encode(object)}, OldObject: runtime.RawExtension{Raw: encode(old)},
	}
	if given, err := admission.RequestFromContext(ctx); err == nil {
		out.DryRun = given.DryRun
		if len(given.OldObject.Raw) > 0 && len(out.OldObject.Raw) == 0 && operation != admissionv1.Delete {
			out.OldObject.Raw = given.OldObject.Raw
		}
	}
	if operation == admissionv1.Delete { // it has only what is deleted
		out.Object.Raw, out.OldObject.Raw = nil, encode(some)
	}
	return out
}

// scheme has the kinds that are reviewed.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, addonsv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme, ipamv1.AddToScheme, runtimev1.AddToScheme,
	} {
		must(add(s))
	}
	return s
}

func encode(o client.Object) []byte {
	if isNil(o) {
		return nil
	}
	data, err := json.Marshal(typed(o))
	must(err)
	return data
}

// typed is the object with its kind.
func typed(o client.Object) client.Object {
	o = o.DeepCopyObject().(client.Object)
	if kind, err := apiutil.GVKForObject(o, scheme()); err == nil {
		o.GetObjectKind().SetGroupVersionKind(kind)
	}
	return o
}

func content(o client.Object) map[string]any {
	out := map[string]any{}
	must(json.Unmarshal(encode(o), &out))
	return out
}

func name(verb string, old, object client.Object) string {
	if isNil(object) {
		return verb
	}
	if !isNil(old) {
		verb += " an updated"
	}
	return verb + " " + reflect.TypeOf(object).Elem().Name()
}

func isNil(o client.Object) bool { return o == nil || reflect.ValueOf(o).IsNil() }

func must(err error) {
	if err != nil {
		panic(err)
	}
}
