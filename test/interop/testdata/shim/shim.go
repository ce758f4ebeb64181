// Package slipway is what the webhooks in a copy of the reference call, so that the reference's tests test Slipway: each function reviews
// objects with both, prints how the results compare, and returns Slipway's.
package slipway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// outcome is how two results compare. The prefix is read by the test that runs the reference's tests.
type outcome struct {
	Call      string `json:"call"`
	Outcome   string `json:"outcome"`
	Reference string `json:"reference,omitempty"`
	Slipway   string `json:"slipway,omitempty"`
	Schema    string `json:"schema,omitempty"`
}

// The outcomes.
const (
	same     = "same"     // both accept, or both refuse
	bySchema = "schema"   // one of them refuses fields that the CRD's schema refuses, too
	accepted = "accepted" // by Slipway alone
	refused  = "refused"  // by Slipway alone
	warnings = "warnings" // both accept, one with more warnings
	defaults = "defaults" // other defaults
)

func (o outcome) print() {
	text, _ := json.Marshal(o) // of strings alone
	fmt.Printf("slipway-review: %s\n", text)
}

// result is of a review.
type result struct {
	warnings admission.Warnings
	err      error
	schema   []violation
}

// compare prints how the results compare.
func compare(call string, reference, ours result) {
	o := outcome{Call: call, Outcome: same, Reference: text(reference), Slipway: text(ours)}
	switch {
	case reference.err != nil && ours.err == nil:
		o.Outcome = accepted
		if v := violated(fieldsOf(reference.err), ours.schema); v != "" {
			o.Outcome, o.Schema = bySchema, v
		}
	case reference.err == nil && ours.err != nil:
		o.Outcome = refused
		if v := violatedAll(fieldsOf(ours.err), ours.schema); v != "" {
			o.Outcome, o.Schema = bySchema, v
		}
	case reference.err == nil && len(reference.warnings) != len(ours.warnings):
		o.Outcome = warnings
	}
	o.print()
}

func text(r result) string {
	out := strings.Join(r.warnings, "; ")
	if out != "" {
		out = "warnings: " + out + "; "
	}
	if r.err != nil {
		return out + r.err.Error()
	}
	return out
}

// violatedAll returns a violation if the schema refuses each of the fields.
func violatedAll(fields []string, schema []violation) (out string) {
	for _, f := range fields {
		if out = violated([]string{f}, schema); out == "" {
			return ""
		}
	}
	return out
}

// violated returns the violation of one of the fields by the schema.
func violated(fields []string, schema []violation) string {
	for _, f := range fields {
		f = normal(f)
		for _, v := range schema {
			if at := normal(v.Field); strings.Contains(f, ".") && strings.Contains(at, ".") && (within(f, at) || within(at, f)) {
				return v.Message
			}
		}
	}
	return ""
}

// indexed is the index or key of an item.
var indexed = regexp.MustCompile(`\[[^]]*\]`)

// normal is a field as all errors call it: items have no index, and fields of ClusterClasses the names that the reference has in errors.
func normal(f string) string {
	return strings.NewReplacer(".templateRef", ".ref", ".template.", ".").Replace(indexed.ReplaceAllString(f, ""))
}

// within reports whether a field is another one or a part of it.
func within(f, of string) bool { return f == of || strings.HasPrefix(f, of+".") }

func fieldsOf(err error) (out []string) {
	for _, e := range errorsOf(err) {
		out = append(out, e.Field)
	}
	return out
}

// errorsOf are the errors of fields in an error.
func errorsOf(err error) (out field.ErrorList) {
	var one *field.Error
	var many utilerrors.Aggregate
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &one):
		return field.ErrorList{one}
	case errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0:
		for _, c := range status.Status().Details.Causes {
			out = append(out, &field.Error{Type: field.ErrorTypeInvalid, Field: c.Field, Detail: c.Message})
		}
		return out
	case errors.As(err, &many):
		for _, e := range many.Errors() {
			out = append(out, errorsOf(e)...)
		}
		return out
	case err != nil:
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return nil
}

// Background is the context of functions without one.
func Background() context.Context { return context.Background() }

// Validate is for the functions of a webhook that validate; the last parameters are the reference's result.
func Validate(ctx context.Context, reader client.Reader, old, object client.Object, warnings admission.Warnings, err error) (admission.Warnings, error) {
	ours := validate(ctx, reader, old, object)
	compare(name("validate", old, object), result{warnings: warnings, err: err}, ours)
	return ours.warnings, ours.err
}

// ValidateDelete is for the function of a webhook that validates deletions.
func ValidateDelete(ctx context.Context, reader client.Reader, object client.Object, warnings admission.Warnings, err error) (admission.Warnings, error) {
	a := review(ctx, reader, validatePath, request(ctx, admissionv1.Delete, object, nil))
	ours := a.result()
	compare(name("delete", nil, object), result{warnings: warnings, err: err}, ours)
	return ours.warnings, ours.err
}

func validate(ctx context.Context, reader client.Reader, old, object client.Object) result {
	if _, err := json.Marshal(object); err != nil {
		return result{err: err} // no client can send it
	}
	operation := admissionv1.Create
	if !isNil(old) {
		operation = admissionv1.Update
	}
	return review(ctx, reader, validatePath, request(ctx, operation, old, object)).result()
}

// Default is for the function of a webhook that sets defaults. What the reference refuses there, Slipway may refuse when it validates.
func Default(ctx context.Context, reader client.Reader, object, theirs client.Object, expected error) error {
	err := mutate(ctx, reader, nil, object)
	ours := result{err: err}
	if err == nil && expected != nil {
		ours = validate(ctx, reader, nil, object)
	}
	call := name("default", nil, object)
	if expected == nil && err == nil && !reflect.DeepEqual(content(theirs), content(object)) {
		outcome{Call: call, Outcome: defaults, Slipway: "(-reference +Slipway)\n" + cmp.Diff(content(theirs), content(object))}.print()
		return nil
	}
	compare(call, result{err: expected}, ours)
	return ours.err
}

// mutate sets the defaults of an object.
func mutate(ctx context.Context, reader client.Reader, old, object client.Object) error {
	r := request(ctx, admissionv1.Create, old, object)
	if len(r.OldObject.Raw) > 0 {
		r.Operation = admissionv1.Update
	}
	response := review(ctx, reader, mutatePath, r).Response
	if !response.Allowed {
		return &apierrors.StatusError{ErrStatus: *response.Result}
	}
	if len(response.Patch) == 0 {
		return nil
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	must(err)
	data, err := patch.Apply(encode(object))
	must(err)
	value := reflect.ValueOf(object).Elem()
	kind := object.GetObjectKind().GroupVersionKind()
	value.SetZero()
	must(json.Unmarshal(data, object))
	object.GetObjectKind().SetGroupVersionKind(kind)
	return nil
}

// Handle is for the webhook of a scale subresource.
func Handle(ctx context.Context, reader client.Reader, r admission.Request, expected admission.Response) admission.Response {
	r.Resource = metav1.GroupVersionResource{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Resource: "kubeadmcontrolplanes"}
	r.SubResource = "scale"
	response := admission.Response{AdmissionResponse: *review(ctx, reader, validatePath, r.AdmissionRequest).Response}
	if response.Result == nil {
		response.Result = &metav1.Status{}
	}
	compare("scale", resultOf(&expected.AdmissionResponse), resultOf(&response.AdmissionResponse))
	return response
}

// Errors is for functions that validate a part of an object: those of Slipway's errors count whose field has one of these in its path.
func Errors(object Object, reference field.ErrorList, parts ...string) field.ErrorList {
	ours := validate(part(), object.Reader, object.Old, object.New)
	var out field.ErrorList
	var status apierrors.APIStatus
	if ours.err != nil && !errors.As(ours.err, &status) {
		out = errorsOf(ours.err)
	}
	for _, e := range errorsOf(ours.err) {
		for _, part := range parts {
			if strings.Contains(e.Field, part) {
				out = append(out, e)
				break
			}
		}
	}
	ours.err = out.ToAggregate()
	compare(name(strings.Join(parts, ", ")+" of", object.Old, object.New), result{err: reference.ToAggregate()}, ours)
	return out
}

// Replicas is for functions that compute the default of spec.replicas.
func Replicas(old, object client.Object, expected int32, expectedErr error) (int32, error) {
	object = object.DeepCopyObject().(client.Object)
	ours := result{err: mutate(part(), nil, old, object)}
	if ours.err == nil && expectedErr != nil {
		ours = validate(part(), nil, old, object)
	}
	spec, _ := content(object)["spec"].(map[string]any)
	n, _ := spec["replicas"].(float64)
	call := name("replicas of", old, object)
	if ours.err == nil && expectedErr == nil && int32(n) != expected {
		outcome{Call: call, Outcome: defaults, Reference: fmt.Sprint(expected), Slipway: fmt.Sprint(n)}.print()
	} else {
		compare(call, result{err: expectedErr}, ours)
	}
	return int32(n), ours.err
}

// List and First are for functions with one error.
func List(err *field.Error) field.ErrorList {
	if err == nil {
		return nil
	}
	return field.ErrorList{err}
}

// First is the opposite of List.
func First(list field.ErrorList) *field.Error {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}
