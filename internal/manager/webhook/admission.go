package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/slipwayhq/slipway/internal/admission"
)

// reviewer decodes the admission reviews that the API server sends, and evaluates the rules of package admission.
// [Register] serves its methods mutate and validate.
type reviewer struct {
	objects map[metav1.GroupVersionResource]runtime.Object
	opts    Options
	related *relatedReader
	// restored is nil for [InProcessAdmission], whose objects are never in an older version.
	restored *restoration
}

// newReviewer returns a reviewer for all kinds. [Register] and [NewInProcessAdmission] call it.
func newReviewer(opts Options) reviewer {
	objects := map[metav1.GroupVersionResource]runtime.Object{}
	for _, set := range opts.sets() {
		for _, k := range kindsOf(set) {
			objects[metav1.GroupVersionResource(k.resource)] = k.object
		}
	}
	return reviewer{objects: objects, opts: opts, related: newRelatedReader(opts)}
}

// read converts an admission review to a request for package admission.
func (r reviewer) read(req ctrladmission.Request) (admission.Request, error) {
	empty, known := r.objects[req.Resource]
	if !known {
		return admission.Request{}, fmt.Errorf("no rules for %s in %s/%s", req.Resource.Resource, req.Resource.Group, req.Resource.Version)
	}
	if req.SubResource == scaleSubresource {
		empty = &autoscalingv1.Scale{}
	}
	out := admission.Request{New: empty.DeepCopyObject(), Gates: r.opts.Gates, Policy: r.opts.Policy, KubernetesVersions: r.opts.KubernetesVersions, DryRun: req.DryRun != nil && *req.DryRun}
	if err := json.Unmarshal(req.Object.Raw, out.New); err != nil {
		return out, unreadable("the object", err)
	}
	if len(req.OldObject.Raw) == 0 {
		return out, nil
	}
	out.Old = empty.DeepCopyObject()
	if err := json.Unmarshal(req.OldObject.Raw, out.Old); err != nil {
		return out, unreadable("the previous object", err)
	}
	return out, nil
}

// mutate returns a patch with the missing defaults. The API server calls it through the webhooks
// slipway-defaulting-PROVIDER.
func (r reviewer) mutate(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	request, err := r.read(req)
	if err != nil {
		return ctrladmission.Errored(http.StatusBadRequest, err)
	}
	if err := r.related.read(ctx, &request, true); err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	defaulted, changed := admission.Default(request)
	if !changed {
		return ctrladmission.Allowed("")
	}
	patch, err := difference(request.New, defaulted)
	if err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	return ctrladmission.Patched("", patch...)
}

// difference computes a patch from the Go representation of both objects, so that fields unknown to this
// representation are not changed.
func difference(before, after runtime.Object) ([]jsonpatch.Operation, error) {
	from, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreatePatch(from, to)
}

// validate decides whether the object may be written. The API server calls it through the webhooks
// slipway-validation-PROVIDER.
func (r reviewer) validate(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	if req.Operation == admissionv1.Delete {
		return r.validateDeletion(ctx, req)
	}
	request, err := r.read(req)
	if err != nil {
		return ctrladmission.Errored(http.StatusBadRequest, err)
	}
	if r.restored != nil {
		errs, err := r.restored.violations(ctx, req, request.New)
		if err != nil {
			return ctrladmission.Errored(http.StatusBadRequest, err)
		}
		if len(errs) > 0 {
			return refusal(req, admission.Response{Errors: errs})
		}
	}
	if err := r.related.read(ctx, &request, false); err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	if err := r.related.scaled(ctx, req.Resource.Resource, &request); err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	verdict := admission.Validate(request)
	if len(verdict.Errors) == 0 {
		return ctrladmission.Allowed("").WithWarnings(verdict.Warnings...)
	}
	return refusal(req, verdict)
}

// refusal returns the response for an invalid object.
func refusal(req ctrladmission.Request, verdict admission.Response) ctrladmission.Response {
	kind := schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}
	status := apierrors.NewInvalid(kind, req.Name, verdict.Errors).Status()
	return ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: false, Result: &status, Warnings: verdict.Warnings,
	}}
}

// validateDeletion decides whether the object may be deleted.
func (r reviewer) validateDeletion(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	req.Object = req.OldObject
	request, err := r.read(req)
	if err != nil {
		return ctrladmission.Errored(http.StatusBadRequest, err)
	}
	if err := r.related.read(ctx, &request, false); err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	if refusal := admission.RefuseDeletion(request.New, request.Related); refusal != "" {
		return ctrladmission.Denied(refusal)
	}
	return ctrladmission.Allowed("")
}
